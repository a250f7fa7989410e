"""The guide from Volcano and back names commands, objects and files that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from pumice.cli.main import cli
from pumice.live.webhooks.hooks import HOOKS, SERVICE, Caller

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/from-volcano.md").read_text()
COMMANDS = re.findall(r"^    (?:\S+ \| )?(.+)$", GUIDE, re.MULTILINE)
OURS = [shlex.split(line, comments=True) for line in COMMANDS if line.startswith("pumice ")]


def installed(kind: str) -> set[str]:
    items = [item for path in (ROOT / "deploy/manifests").glob("*.yaml") for item in yaml.safe_load_all(path.read_text())]
    return {item["metadata"]["name"] for item in items if item["kind"] == kind}


@pytest.mark.parametrize("words", OURS, ids=" ".join)
def test_our_commands_are_understood(words: list[str]) -> None:
    command: click.Command | None = cli
    rest = words[1:]
    while isinstance(command, click.Group):
        name, *rest = rest
        command = command.get_command(click.Context(command), name)
    assert command is not None
    command.make_context(words[1], rest)


def test_the_objects_that_are_changed_are_those_that_are_installed() -> None:
    named = set(re.findall(r"deployment[/ ](volcano-\w+)", GUIDE))
    assert named == installed("Deployment")
    assert set(re.findall(r"get configmap (\S+)", GUIDE)) | {"volcano-controller-configmap"} <= installed("ConfigMap")
    assert {f"{SERVICE}-queues-validate", f"{SERVICE}-jobs-mutate"} <= {Caller().configuration(hook) for hook in HOOKS.values()}
    assert f"grep {SERVICE}-" in GUIDE and SERVICE in installed("Service")


def test_files_are_there() -> None:
    named = set(re.findall(r"(?:deploy|src)/[\w./-]*\w", GUIDE))
    assert len(named) >= 5
    assert [path for path in named if not (ROOT / path).exists()] == []
