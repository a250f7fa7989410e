"""usage: keep pods off nodes that are measured to be busy, and prefer the idlest.

Measurements lag behind. So pods that they cannot show yet (just placed, or started less than a measuring interval ago) are added as
an estimate from their requests and limits. A node without a measurement of the last five minutes is neither refused nor preferred.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, field

from pumice.api import duration
from pumice.api.quantity import QuantityError, quantity
from pumice.scheduler.engine import MAX_SCORE, Filter, Reach, Reason, Refused, Scorer, Scores, View
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.world import measured
from pumice.scheduler.model import CPU, MEMORY, Task, Template, status

INTERVAL_S = 30.0  #: between measurements, unless the configuration says otherwise
UNSEEN = status.ALLOCATED | status.PIPELINED | status.BINDING | status.BOUND
CPU_BUSY = Reason("node cpu usage exceeds the threshold", final=True)
MEMORY_BUSY = Reason("node memory usage exceeds the threshold", final=True)


class Thresholds(Struct):
    """Thresholds in percent. The names with a period of time (5m) are those of older configurations."""

    cpu: float | None = None
    mem: float | None = None
    old_cpu: float | None = field(name="CPUUsageAvg.5m", default=None)
    old_mem: float | None = field(name="MEMUsageAvg.5m", default=None)


class Estimator(Struct):
    """How much of its requests a pod is assumed to use before it is measured."""

    request_ratio: float = 0.7
    burst_ratio: float = 0.0  #: of the part of its limit above its request
    risk_threshold: float = 0.6  #: from this load of the node on, estimates are multiplied by `risk_factor`
    risk_factor: float = 1.2
    be_cpu: int | str = "250m"  #: of a pod without requests; a number is in milli
    be_mem: int | str = "200Mi"  #: likewise; a number is in MiB


class UsageArgs(Struct):
    weight: int = field(name="usage.weight", default=5)
    cpu_weight: int = field(name="cpu.weight", default=1)
    memory_weight: int = field(name="memory.weight", default=1)
    thresholds: Thresholds = field(default_factory=Thresholds)
    estimator: Estimator = field(default_factory=Estimator)


class UsagePlugin(Plugin):
    name = "usage"
    Args = UsageArgs

    def open(self, session: Session) -> None:
        super().open(session)
        self._load = Load(session, Estimate.read(self.args.estimator))

    def filters(self) -> list[Filter]:
        given = self.args.thresholds
        cpu, memory = (_percent(given.cpu, given.old_cpu), _percent(given.mem, given.old_mem))
        return [BusyNodes(self._load, cpu, memory)]

    def scorers(self) -> list[Scorer]:
        args = self.args
        cpu, memory = (weight if weight >= 0 else 1 for weight in (args.cpu_weight, args.memory_weight))
        return [IdleNodes(self._load, cpu, memory, args.weight if args.weight >= 0 else 5)]


def _percent(*given: float | None) -> float:
    """The first that is a percentage, else 80."""
    return next((value for value in given if value is not None and 0 <= value <= 100), 80.0)


class Estimate(NamedTuple):
    """An Estimator with valid values only; `rest` is what a pod without requests uses (milli, bytes)."""

    request_ratio: float
    burst_ratio: float
    risk_threshold: float
    risk_factor: float
    rest: tuple[float, float]

    @classmethod
    def read(cls, given: Estimator) -> Estimate:
        """Values out of range are replaced by the defaults."""
        usual = Estimator()

        def ratio(name: str) -> float:
            value: float = getattr(given, name)
            return value if 0 <= value <= 1 else float(getattr(usual, name))

        factor = given.risk_factor if given.risk_factor >= 1 else usual.risk_factor
        rest = (_milli(given.be_cpu), _bytes(given.be_mem))
        return cls(ratio("request_ratio"), ratio("burst_ratio"), ratio("risk_threshold"), factor, rest)

    def base(self, template: Template) -> tuple[float, float]:
        """The estimate for a pod on a node that is not loaded: CPU in milli and memory in bytes."""
        request = (float(template.request[CPU]), float(template.request[MEMORY]))
        limit = self.limit(template)
        if not any(request) and not any(limit):
            return self.rest
        cpu, memory = (r * self.request_ratio + max(0.0, most - r) * self.burst_ratio for r, most in zip(request, limit, strict=True))
        return cpu, memory

    @staticmethod
    def limit(template: Template) -> tuple[float, float]:
        return template.limits.get("cpu", 0.0) * 1000, template.limits.get("memory", 0.0)


def _milli(given: int | str) -> float:
    try:
        return float(given if isinstance(given, int) else quantity(given).milli)
    except QuantityError:
        return 250.0


def _bytes(given: int | str) -> float:
    try:
        return float(given * 2**20 if isinstance(given, int) else quantity(given).whole)
    except QuantityError:
        return 200.0 * 2**20


class Load:
    """Per node the measured load, and a shadow: an estimate of the pods that measurements cannot show yet."""

    def __init__(self, session: Session, estimate: Estimate) -> None:
        self._session = session
        self._estimate = estimate
        self._bases: dict[Template, tuple[float, float]] = {}
        self._position = -1
        n = len(session.nodes)
        self.known = np.zeros(n, bool)  #: nodes with a fresh measurement
        self.measured = np.zeros((2, n))  #: [cpu and memory, n] 0..1
        self.shadow = np.zeros((2, n))  #: [cpu milli and memory bytes, n]
        try:
            self._interval_s = duration(session.policy.metrics.get("interval", ""))
        except ValueError:
            self._interval_s = INTERVAL_S

    def refresh(self) -> None:
        """Bring the shadow up to date from the cluster's log. Measurements are read once, at the first call."""
        log = self._session.cluster.log
        if self._position < 0:
            self.known, self.measured = measured(self._session.world, self._session.nodes, self._session.now)
            rows = set(np.flatnonzero(self.known).tolist())
        else:
            rows = {change.row for change in log[self._position :] if self.known[change.row]}
        for row in rows:
            self._cast(row)
        self._position = len(log)

    def _cast(self, row: int) -> None:
        """Compute the shadow of a row, pod by pod: on a loaded node each pod counts for more."""
        room = self._session.nodes.allocatable[[CPU, MEMORY], row]
        self.shadow[:, row] = 0.0
        for task in self._session.nodes.tasks[row].values():
            if not self._unseen(task):
                continue
            for resource, amount in enumerate(self._base(task.template)):
                load = self.measured[resource, row] + (self.shadow[resource, row] / room[resource] if room[resource] else 0.0)
                if load >= self._estimate.risk_threshold:
                    amount *= self._estimate.risk_factor
                limit = self._estimate.limit(task.template)[resource]
                self.shadow[resource, row] += min(amount, limit) if limit else amount

    def _unseen(self, task: Task) -> bool:
        if task.status == status.RUNNING:
            return task.started is not None and self._session.now - task.started < self._interval_s
        return bool(task.status & UNSEEN)

    def _base(self, template: Template) -> tuple[float, float]:
        found = self._bases.get(template)
        if found is None:
            found = self._bases[template] = self._estimate.base(template)
        return found


class BusyNodes(Filter):
    """Refuses nodes measured above a threshold."""

    name = "usage"
    reach = Reach.STATIC

    def __init__(self, load: Load, cpu_percent: float, memory_percent: float) -> None:
        self._load = load
        self._limits = (cpu_percent / 100, memory_percent / 100)

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        load = self._load
        load.refresh()
        cpu, memory = (load.known & (load.measured[resource] > limit) for resource, limit in enumerate(self._limits))
        return [Refused(nodes.of(cpu), CPU_BUSY), Refused(nodes.of(memory), MEMORY_BUSY)]  # type: ignore[arg-type]


class IdleNodes(Scorer):
    """The score: how idle a node will be, as the weighted mean of cpu and memory."""

    name = "usage"
    reach = Reach.NODE

    def __init__(self, load: Load, cpu_weight: float, memory_weight: float, weight: float) -> None:
        self._load = load
        self._weights = np.array([[cpu_weight], [memory_weight]])
        self.weight = weight

    def score(self, state: Any, nodes: View) -> Scores:
        load, rows = self._load, nodes.row_numbers
        load.refresh()
        whole = self._weights.sum()
        if not whole:
            return np.zeros(len(nodes))
        room = nodes.allocatable[[CPU, MEMORY]]
        shadow = np.divide(load.shadow[:, rows], room, out=np.zeros_like(room), where=room > 0)
        busy = np.clip(load.measured[:, rows] + shadow, 0.0, 1.0)
        idle: Scores = ((1.0 - busy) * self._weights).sum(axis=0) / whole * MAX_SCORE
        return np.where(load.known[rows], idle, 0.0)
