"""The rules between fields that the tables of types declare: each can be read, and names nothing that is not there."""

from __future__ import annotations

import ast
import builtins
from pathlib import Path

import pytest

from pumice.cluster.apiserver.scheme import builtin_shapes
from pumice.cluster.apiserver.validation import struct_rules

TABLES = sorted((Path(builtin_shapes.__file__).parent / "types").glob("*.txt"))
STRUCTS = [
    f"{table.stem}.{part.split(maxsplit=1)[0]}"
    for table in TABLES
    for part in ("\n" + table.read_text()).split("\n")
    if part and part[0] not in " #"
]
RULED = [name for name in STRUCTS if builtin_shapes.shape_of(name).between]
KNOWN = {*vars(builtins), *struct_rules._NAMES, "this", "old", "found"}


@pytest.mark.parametrize("name", RULED)
def test_rules_between_fields_name_fields_that_there_are(name: str) -> None:
    shape = builtin_shapes.shape_of(name)
    found = struct_rules.between(shape)
    assert found is not None
    for line in shape.between:
        if not line.startswith("as "):
            nodes = list(ast.walk(ast.parse(struct_rules._source(line).strip())))
            names = [node for node in nodes if isinstance(node, ast.Name)]
            bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
            assert {node.id for node in names} <= {*KNOWN, *bound, *shape.fields}, line
