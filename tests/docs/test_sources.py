"""What holds for all source files."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pumice


def test_no_name_of_a_module_is_given_twice() -> None:
    doubled = {}
    for path in Path(pumice.__file__).parent.rglob("*.py"):
        body = ast.parse(path.read_text()).body
        names = Counter(
            target.id for node in body if isinstance(node, ast.Assign) for target in node.targets if isinstance(target, ast.Name)
        )
        if found := [name for name, times in names.items() if times > 1]:
            doubled[path.name] = found
    assert doubled == {}
