"""How the cluster tells who comes and goes: entries of its log, for those who catch up later."""

from __future__ import annotations

from typing import NamedTuple

from pumice.model.task import Task


class Change(NamedTuple):
    """One entry of `Cluster.log`: a task came to a row (+1) or left it (-1), as filters see it."""

    row: int
    task: Task
    sign: int
