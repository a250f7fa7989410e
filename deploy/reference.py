"""Tables made of what they are about: values of the chart, flags of the programs, metrics.

`python deploy/reference.py` writes the values into docs/chart.md anew. The site (`make docs`) has a page with all three. What they say
stands where it is used: values in the chart's values.yaml and values.schema.json, flags in the commands, metrics in the programs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import yaml

from pumice.cli.main import cli
from pumice.http.metrics import Family
from pumice.live.controllers.metrics import ControllerMetrics
from pumice.live.scheduler.metrics import LiveMetrics
from pumice.live.scheduler.shadow_comparison import ShadowMetrics

ROOT = Path(__file__).parents[1]
CHART = ROOT / "deploy/chart"
CHART_PAGE = ROOT / "docs/chart.md"
PROGRAMS = ("scheduler", "controllers", "webhooks")
VALUES = "## Values\n"  #: the heading below which the table is in the chart's page


def values() -> Iterator[tuple[str, str, str]]:
    """Each value of the chart: its path, its default, its description."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    for name, default in defaults.items():
        yield from _values(name, default, schema["properties"][name])


def _values(path: str, default: Any, schema: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    if "properties" in schema:
        for name, each in default.items():
            yield from _values(f"{path}.{name}", each, schema["properties"][name])
    else:
        shown = "a configuration" if isinstance(default, str) and "\n" in default else f"`{json.dumps(default, ensure_ascii=False)}`"
        yield f"`{path}`", shown, schema["description"]


def flags(program: str) -> Iterator[tuple[str, str, str]]:
    """Each flag of a program: its names, its default, what it does. Those without effect are left out."""
    command = cli.get_command(click.Context(cli), program)
    assert command is not None
    context = click.Context(command, info_name=f"pumice {program}")
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            default = None if option.multiple else option.get_default(context)
            shown = f"`{default}`" if default else ""
            yield ", ".join(f"`{name}`" for name in option.opts), shown, option.help or ""


def metrics(families: Iterable[Family]) -> Iterator[tuple[str, str, str, str]]:
    for family in families:
        yield f"`{family.name}`", family.kind, ", ".join(f"`{label}`" for label in family.labels), family.text


def measured() -> dict[str, list[Family]]:
    """What each program serves."""
    found = {"scheduler": LiveMetrics().families(), "controllers": ControllerMetrics().families()}
    return found | {"scheduler --shadow": ShadowMetrics().declared}


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |\n" for line in lines)


def values_table() -> str:
    return table(("value", "default", "what it is"), values())


def chart_page() -> str:
    """The page of the chart, with the table of now."""
    text, heading, _ = CHART_PAGE.read_text().partition(VALUES)
    return f"{text}{heading}\nMade by `deploy/reference.py` of the chart.\n\n{values_table()}"


def page() -> str:
    """All of it as one page, for the site."""
    parts = ["# Reference\n\n## Values of the chart\n\n", values_table()]
    for program in PROGRAMS:
        parts += [f"\n## Flags of `pumice {program}`\n\n", table(("flag", "default", "what it does"), flags(program))]
    for program, families in measured().items():
        parts += [f"\n## Metrics of `pumice {program}`\n\n", table(("metric", "type", "labels", "what it is"), metrics(families))]
    return "".join(parts)


if __name__ == "__main__":
    CHART_PAGE.write_text(chart_page())
