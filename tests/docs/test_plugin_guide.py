"""The guide's table of attributes is true."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pumice import scheduler
from pumice.scheduler.engine.view import View
from pumice.scheduler.framework.hooks import HOOKS
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.queue import Queue
from pumice.testing import cluster, node, pod, podgroup

GUIDE = Path(__file__).parents[2] / "docs/plugins.md"
TYPES = {"str": str, "int": int, "float": float, "bool": bool, "dict": dict, "list": list, "tuple": tuple, "Mapping": Mapping}
TYPES |= {"ndarray": np.ndarray, "Job": Job, "Queue": Queue}


def seen() -> dict[str, Any]:
    made = cluster(node("n").cpu(4), podgroup("g"), pod("g-0").cpu(1).gang("g"))
    task = made.tasks["default/g-0"]
    assert task.job is not None
    return {"task": task, "job": task.job, "queue": task.job.queue, "nodes": View(made.nodes)}


def rows() -> list[tuple[str, str, str]]:
    text = GUIDE.read_text()
    lines = text[text.index("| of | attribute") : text.index("## All hooks")].strip().splitlines()[2:]
    lines = [line for line in lines if line.startswith("|")]
    found, of = [], ""
    for line in lines:
        first, names, kind, _ = (cell.strip() for cell in line.strip("|").split("|"))
        of = first or of
        found += [(of, name, kind) for name in re.findall("`([^`]+)`", names)]
    return found


@pytest.mark.parametrize(("of", "name", "kind"), rows())
def test_every_attribute_of_the_guide_is_there_and_of_its_type(of: str, name: str, kind: str) -> None:
    value = seen()[of]
    for step in name.split("(")[0].split("."):
        value = getattr(value, step)
    if "(" in name:
        value = value("cpu")
    assert isinstance(value, TYPES[kind])


def names_between(begin: str, end: str) -> set[str]:
    """The first column's names in backticks, of the table between two places of the guide."""
    text = GUIDE.read_text().partition(begin)[2].partition(end)[0]
    return {name for line in text.splitlines() if line.startswith("| `") for name in re.findall("`([^`]+)`", line.split("|")[1])}


def test_the_guide_lists_all_hooks() -> None:
    assert names_between("## All hooks", "## What can be imported") == set(HOOKS)


def test_the_guide_lists_all_that_can_be_imported() -> None:
    text = GUIDE.read_text().partition("## What can be imported")[2]
    listed = {name for line in text.splitlines() if line.startswith("| ") for name in re.findall("`([^`]+)`", line)}
    assert listed == set(scheduler.__all__)
    assert len(listed) <= 30
    assert all(getattr(scheduler, name) is not None for name in listed)
