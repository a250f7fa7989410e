"""Text of others is printed so that no terminal obeys it: names in tables, answers, warnings and errors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.errors import InputError
from pumice.cli.main import cli
from pumice.cli.tables import complain
from pumice.text_table import columns, shown, shown_in_line, wide_columns

ODD = {
    "escape": "\x1b[2J",
    "title": "\x1b]0;owned\x07",
    "bell": "\x07",
    "nothing": "\x00",
    "two lines": "a\nPod default/b",
    "return": "a\rb",
    "next line": "a\x85b",
    "control sequence": "\x9b2J",
    "right to left": "\u202egpj.exe",
    "isolate": "\u2066a\u2069",
    "separator": "a\u2028b",
    "no width": "a\u200bb",
}
HEEDED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
NODE = {"apiVersion": "v1", "kind": "Node", "status": {"allocatable": {"cpu": "1", "pods": "9"}}}
POD = {"apiVersion": "v1", "kind": "Pod"}


def told(odd: str) -> str:
    return shown_in_line(odd)


def cluster_of(odd: str) -> list[dict[str, Any]]:
    """Everything that is named in tables has the odd text in its name."""
    fits = {"containers": [{"name": "c", "image": "i"}]}
    too_big = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "9", f"example.com/{odd}": "1"}}}]}
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": f"g{odd}"}}
    gang = {"annotations": {"scheduling.k8s.io/group-name": f"g{odd}"}}
    return [
        NODE | {"metadata": {"name": f"n{odd}"}},
        POD | {"metadata": {"name": f"p{odd}"}, "spec": fits},
        POD | {"metadata": {"name": f"q{odd}"}, "spec": too_big},
        group | {"spec": {"minMember": 2, "queue": f"q{odd}"}},
        POD | {"metadata": {"name": f"m{odd}"} | gang, "spec": too_big | {"schedulerName": "volcano"}},
    ]


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_no_command_over_files_lets_a_name_command_the_terminal(odd: str, tmp_path: Path) -> None:
    path = tmp_path / "input.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": cluster_of(odd)}))
    for command in (
        ["cycle"],
        ["cycle", "-o", "json"],
        ["score", "--pod", f"p{odd}"],
        ["check"],
        ["lint"],
        ["why", f"pod/q{odd}"],
        ["why", f"pod/no{odd}"],
    ):
        result = CliRunner().invoke(cli, [*command, "-f", str(path)], standalone_mode=False)
        written = result.stdout + result.stderr + str(result.exception or "")
        assert not HEEDED.search(result.stdout + result.stderr), (command, written)
        assert isinstance(result.exception, InputError | SystemExit | None), (command, result.exception)
        if command == ["cycle"]:
            rows = [line for line in result.stdout.splitlines() if told(odd) in line]
            assert rows and "Bound" in result.stdout


@given(st.text(max_size=20))
def test_whatever_is_in_a_cell_stays_in_its_row(text: str) -> None:
    for table in (columns(("A", "B"), [(text, text)]), wide_columns((("A", 3), ("B", 3)), [(text, text)])):
        assert table.count("\n") == 1 and not HEEDED.search(table)
    assert not HEEDED.search(shown(text))
    assert shown_in_line(text) == text or not text.isascii() or not text.isprintable()


def test_an_error_is_a_line_whatever_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    complain(str(InputError('"a\nb\x1b" is no name', where="x\ny.yaml", subject="Pod a\nb")))
    assert capsys.readouterr().err == 'x\\u000ay.yaml: Pod a\\u000ab: "a\\u000ab\\u001b" is no name\n'
