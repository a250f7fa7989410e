"""Colours stand where a terminal is, and nowhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from pumice.cli.tables import painted

FIRST = str(Path(__file__).parents[2] / "examples/first.yaml")


def test_heads_are_bold_and_states_coloured_where_they_stand_alone() -> None:
    text = painted("NAME   PHASE     WHY\na      Running   2 Pending, of which 1 Pending\n\nOTHER\nb   Failed")
    assert text.splitlines() == [
        "\x1b[1mNAME   PHASE     WHY\x1b[0m",
        "a      \x1b[32mRunning\x1b[0m   2 Pending, of which 1 Pending",
        "",
        "\x1b[1mOTHER\x1b[0m",
        "b   \x1b[31mFailed\x1b[0m",
    ]


@pytest.mark.parametrize(("words", "colour"), [((), True), (("NO_COLOR=1",), False), (("TERM=dumb",), False)])
def test_a_terminal_gets_colours_unless_it_wants_none(words: tuple[str, ...], colour: bool) -> None:
    settings = dict(word.split("=") for word in words)
    inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pumice", "cycle", "-f", FIRST]
    subprocess.run(command, stdout=theirs, check=True, timeout=60, env={**inherited, "TERM": "xterm", **settings})
    printed = os.read(ours, 100_000).decode()
    os.close(ours)
    os.close(theirs)
    assert "train-worker-0" in printed
    assert ("\x1b[" in printed) == colour
