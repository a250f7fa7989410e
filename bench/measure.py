"""One row of the table: what was measured, against what budget, and what was decided meanwhile."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from pumice.scheduler.framework.decisions import Decisions

T = TypeVar("T")


class Row(NamedTuple):
    """One measured figure. `budget`, `peer` and `cpu` are in `unit`; `peer` is the figure of the peer (Volcano, kube-scheduler) for the
    same work."""

    name: str
    budget: float | None
    peer: float | None
    cpu: float
    wall: float
    unit: str = "s"
    counts: dict[str, Any] = {}
    naive: float | None = None  #: how many times longer a full scan takes, measured in the same run

    @property
    def within(self) -> bool:
        if self.budget is None:
            return True
        return self.cpu >= self.budget if self.unit.endswith("/s") else self.cpu <= self.budget


def rate(name: str, per_second: float, budget: float | None = None, **counts: Any) -> Row:
    """The row of a number per second; a higher number is better."""
    return Row(name, budget, None, per_second, per_second, "/s", counts)


def measured(name: str, budget: float, peer: float | None, build: Callable[[], T], act: Callable[[T], Any], repeat: int) -> Row:
    """The row of the median CPU and wall seconds of act(made), where each made = build() is not timed."""
    cpu, wall, counts = [], [], {}
    for _ in range(repeat):
        made = build()
        gc.collect()
        gc.freeze()  # as every process of Pumice that keeps a cluster does
        started, clock = time.process_time(), time.perf_counter()
        result = act(made)
        cpu.append(time.process_time() - started)
        wall.append(time.perf_counter() - clock)
        if isinstance(result, Decisions):
            counts = {"bound": len(result.binds), "evicted": len(result.evictions), "pipelined": len(result.pipelined)}
        gc.unfreeze()
    return Row(name, budget, peer, statistics.median(cpu), statistics.median(wall), "s", counts)
