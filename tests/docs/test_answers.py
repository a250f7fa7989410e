"""docs/answers.md shows what the commands really print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.cli.main import cli

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/answers.md").read_text()
SHOWN = re.findall(r"```console\n\$ (pumice .*?)\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_the_page_shows_what_is_printed(command: str, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(cli, shlex.split(command)[1:])
    assert result.stdout.rstrip() == output.rstrip()


def test_every_rule_of_lint_is_on_the_page() -> None:
    source = "".join(path.read_text() for path in (ROOT / "src/pumice/answers/lint").glob("*.py"))
    rules = set(re.findall(r'Finding\(\s*f?"([a-z{}-]+)"', source)) - {"{field}-beyond-cluster", "capability-below-{field}"}
    assert {rule for rule in rules if f"`{rule}`" not in PAGE} == set()
    assert len(rules) > 10
