"""What commands refuse, and what programs are given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pumice.cli.main import cli
from tests.recording.week import record_week

AT = "2023-11-14T22:35:00Z"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    made: Path = tmp_path_factory.mktemp("recordings")
    record_week(made)
    return str(made)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_an_instant_of_a_recording_is_asked_about_as_a_cluster_is(folder: str) -> None:
    told = json.loads(run("cycle", "--recording", folder, "--at", AT, "-o", "json").stdout)
    assert told["binds"] == {} and set(told["pending"]) == {"default/huge-0", "default/huge-1", "default/huge-2"}
    assert json.loads(run("why", "job/huge", "--recording", folder, "--at", AT, "-o", "json").stdout)["state"] == "waits"
    assert run("score", "--pod", "huge-0", "--recording", folder, "--at", AT).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("cycle",), "say which instant of the recording with --at"),
        (("cycle", "--at", "noon"), '"noon" is not a time'),
        (("cycle", "--at", AT, "--seed", "1"), "keeps the order of its nodes"),
        (("cycle", "--at", "2020-01-01T00:00:00Z"), "begins at 2023-11-14T22:13:20Z, with cycle 1"),
    ],
)
def test_what_cannot_be_asked_is_told(arguments: tuple[str, ...], told: str, folder: str) -> None:
    result = run(*arguments, "--recording", folder)
    assert told in result.output + str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--why", "default/train-0"), "say which with --cycle"),
        (("--cycle", "99999"), "ends with cycle"),
        (("--cycle", "10"), "decided the same as cycle"),
        (("--cycle", "602", "--why", "default/none"), "there is no pod default/none"),
        (("--cycle", "602", "--why", "deployment/none"), "there is no job default/none"),
        (("--list", "--cycle", "602"), "leave out --cycle and --conf"),
    ],
)
def test_cycles_that_are_not_there_are_told(arguments: tuple[str, ...], told: str, folder: str) -> None:
    result = run("replay", folder, *arguments)
    assert told in result.output + str(result.exception)


def test_programs_are_told_in_json(folder: str, tmp_path: Path) -> None:
    listed = json.loads(run("replay", folder, "--list", "-o", "json").stdout)
    assert [(each["bound"], each["evicted"]) for each in listed] == [(1, 0), (7, 0), (0, 2), (2, 0)]
    whole = json.loads(run("replay", folder, "-o", "json").stdout)
    assert (whole["bound"], whole["evicted"], whole["differing"], whole["differences"]) == (10, 2, 0, [])
    one = json.loads(run("replay", folder, "--cycle", "602", "-o", "json").stdout)
    assert one["recorded"][4] == one["now"][4] and one["differences"] == []
    (tmp_path / "fifo.conf").write_text("actions: allocate\ntiers: [{plugins: [{name: gang}]}]\n")
    other = run("replay", folder, "--conf", str(tmp_path / "fifo.conf"), "-o", "json")
    assert other.exit_code == 1 and json.loads(other.stdout)["differing"] >= 1
