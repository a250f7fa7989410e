"""The guide from Volcano and back names commands, objects and files that exist."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from pumice.cli.main import cli
from pumice.controllers.admission.webhooks import HOOKS, SERVICE, ClientConfig

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
    rest, above = words[1:], click.Context(cli, **cli.context_settings)
    while isinstance(command, click.Group):
        name, *rest = rest
        command = command.get_command(above, name)
    assert command is not None
    command.make_context(words[1], rest, parent=above)


def test_the_objects_that_are_changed_are_those_that_are_installed() -> None:
    named = set(re.findall(r"deployment[/ ](volcano-\w+)", GUIDE))
    assert named == installed("Deployment")
    assert set(re.findall(r"get configmap (\S+)", GUIDE)) | {"volcano-controller-configmap"} <= installed("ConfigMap")
    assert {f"{SERVICE}-queues-validate", f"{SERVICE}-jobs-mutate"} <= {ClientConfig().configuration(hook) for hook in HOOKS.values()}
    assert f"grep {SERVICE}-" in GUIDE and SERVICE in installed("Service")


def test_files_are_there() -> None:
    named = set(re.findall(r"(?:deploy|src)/[\w./-]*\w", GUIDE))
    assert len(named) >= 5
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_guide_s_settings_are_values_of_the_chart() -> None:
    """Also of the other pages that show the chart."""
    values = yaml.safe_load((ROOT / "deploy/chart/values.yaml").read_text())
    pages = "".join((ROOT / f"docs/{name}.md").read_text() for name in ("from-volcano", "chart", "page"))
    settings = re.findall(r"--set(?:-file)? '?([\w.=,:{}-]+)", pages)
    named = [pair.partition("=")[0] for setting in settings for pair in re.split(r",(?=[\w.]+=)", setting)]
    assert len(named) > 8
    for name in named:
        found = values
        for step in name.split("."):
            found = found[step]


def test_an_upgrade_in_the_documents_keeps_the_values_that_were_set() -> None:
    pages = "".join(path.read_text().replace("\\\n", " ") for path in (ROOT / "docs").glob("*.md"))
    upgrades = re.findall(r"^    (helm upgrade .*)$", pages, re.MULTILINE)
    assert len(upgrades) >= 5
    forgetful = [line for line in upgrades if not re.search(r" --reuse-values| -f | --set-file ", line)]
    assert forgetful == []


def test_the_table_of_values_is_that_of_the_chart() -> None:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "deploy/reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs/chart.md").read_text() == module.chart_page(), "run python deploy/reference.py"
    page = module.page()
    assert "| `mode` |" in page and "| `--schedule-period` | `1s` |" in page and "| `pumice_leading` | gauge |" in page
