"""Text of others is printed so that no terminal obeys it: names in tables, answers, warnings and errors."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given, strategies as st

from pumice.api.errors import InputError
from pumice.cli.main import cli
from pumice.cli.object_output import as_json, as_yaml
from pumice.cli.tables import complain
from pumice.cli.up import ShownLog
from pumice.escaped_text import shown, shown_in_line
from pumice.live.log_format import Json, Logfmt
from pumice.text_table import columns, wide_columns

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


def outputs(odd: str, commands: list[list[str]], path: Path) -> list[str]:
    """What commands over a file say, which holds nothing that a terminal obeys."""
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": cluster_of(odd)}))
    said = []
    for command in commands:
        result = CliRunner().invoke(cli, [*command, "-f", str(path)], standalone_mode=False)
        written = result.stdout + result.stderr + str(result.exception or "")
        assert not HEEDED.search(result.stdout + result.stderr), (command, written)
        assert isinstance(result.exception, InputError | SystemExit | None), (command, result.exception)
        said.append(result.stdout)
    return said


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_no_command_over_files_lets_a_name_command_the_terminal(odd: str, tmp_path: Path) -> None:
    commands = [["cycle"], ["cycle", "-o", "json"], ["score", "--pod", f"p{odd}"], ["check"], ["lint"]]
    cycled, *_ = outputs(odd, [*commands, ["why", f"pod/q{odd}"], ["why", f"pod/no{odd}"]], tmp_path / "input.json")
    assert any(told(odd) in line for line in cycled.splitlines()) and "Bound" in cycled


def test_nor_does_any_output_of_them_in_another_form(tmp_path: Path) -> None:
    odd = "".join(ODD.values()).replace("/", "")
    of_pods = [["score", f"p{odd}"], ["why", f"pod/q{odd}"], ["whatif", f"pod/q{odd}"], ["eta", f"pod/q{odd}"]]
    in_json = [[*command, "-o", "json"] for command in (["cycle"], ["lint"], *of_pods)]
    in_yaml = [["cycle", "-o", "yaml"], ["score", f"p{odd}", "-o", "yaml"]]
    said = outputs(odd, [*in_json, *in_yaml, *of_pods, ["lint", "-o", "sarif"]], tmp_path / "input.json")
    for text in said[: len(in_json)]:
        json.loads(text or "null")
    assert [yaml.safe_load(text) for text in said[len(in_json) : len(in_json) + 2]] == [json.loads(said[0]), json.loads(said[2])]


@given(st.text(max_size=20))
def test_whatever_is_in_a_cell_stays_in_its_row(text: str) -> None:
    for table in (columns(("A", "B"), [(text, text)]), wide_columns((("A", 3), ("B", 3)), [(text, text)])):
        assert table.count("\n") == 1 and not HEEDED.search(table)
    assert not HEEDED.search(shown(text))
    assert shown_in_line(text) == text or not text.isascii() or not text.isprintable()


def test_an_error_is_a_line_whatever_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    complain(str(InputError('"a\nb\x1b" is no name', where="x\ny.yaml", subject="Pod a\nb")))
    assert capsys.readouterr().err == 'x\\u000ay.yaml: Pod a\\u000ab: "a\\u000ab\\u001b" is no name\n'


TEXTS = st.text(max_size=5) | st.sampled_from(list(ODD.values()))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_yaml_and_json_are_escaped_and_mean_the_same(value: Any) -> None:
    in_yaml, in_json = as_yaml(value), as_json(value)
    assert not HEEDED.search(in_yaml) and not HEEDED.search(in_json)
    assert yaml.safe_load(in_yaml) == value and json.loads(in_json) == value


@given(st.text())
def test_a_line_of_any_log_is_a_line(text: str) -> None:
    record = logging.LogRecord("a", logging.WARNING, "a.py", 1, "%s is odd", (text,), None)
    in_json = Json().format(record)
    for line in (Logfmt().format(record), in_json):
        assert "\n" not in line and not HEEDED.search(line)
    assert json.loads(in_json)["msg"] == f"{text} is odd"
    assert not HEEDED.search(ShownLog().format(record))
