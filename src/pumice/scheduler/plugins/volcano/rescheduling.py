"""rescheduling: now and then move pods from busy nodes to idle ones, by naming victims to the action shuffle.

The strategy lowNodeUtilization looks at measured use: nodes below every threshold are idle, nodes above a target are busy. The least
important pods of the busiest nodes go, until the node is below its target or the idle ones have no room left. Nodes without a fresh
measurement are neither. The first run is one interval after the first session.
"""

from collections.abc import Iterable

import numpy as np
from msgspec import Struct, field

from pumice.api.times import Duration
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.world import measured
from pumice.scheduler.model import CPU, MEMORY, Task, Template, Vector
from pumice.scheduler.model.pod_request import POD_LEVEL

LOW_NODE_UTILIZATION = "lowNodeUtilization"
MEASURED = [CPU, MEMORY]


class Percents(Struct):
    """Percentages of a node's resources. `pods` is accepted but, as in Volcano, not used."""

    cpu: float = 100
    memory: float = 100
    pods: float = 100

    @property
    def vector(self) -> Vector:
        return np.array([self.cpu, self.memory], float) / 100


class LowNodeUtilization(Struct, rename="camel"):
    thresholds: Percents = field(default_factory=Percents)
    target_thresholds: Percents = field(default_factory=Percents)


class ReschedulingStrategy(Struct):
    name: str
    params: LowNodeUtilization = field(default_factory=LowNodeUtilization)


class ReschedulingArgs(Struct):
    interval: Duration = Duration(300)
    metrics_period: Duration = field(name="metricsPeriod", default=Duration(300))  #: not used: measurements come from the world
    strategies: list[ReschedulingStrategy] = field(default_factory=lambda: [ReschedulingStrategy(LOW_NODE_UTILIZATION)])


class Rescheduling(Plugin):
    name = "rescheduling"
    Args = ReschedulingArgs

    def open(self, session: Session) -> None:
        super().open(session)
        memory = session.memory(self.name)
        self._due = session.now - memory.setdefault("ran_at", session.now) > self.args.interval
        if self._due:
            memory["ran_at"] = session.now

    def victim_tasks(self, candidates: Iterable[Task]) -> list[Task]:
        if not self._due:
            return []
        movable = {task.uid for task in candidates}
        chosen: dict[str, Task] = {}
        for strategy in self.args.strategies:
            if strategy.name == LOW_NODE_UTILIZATION:
                chosen |= {task.uid: task for task in self._overload(strategy.params, movable)}
        return list(chosen.values())

    def _overload(self, params: LowNodeUtilization, movable: set[str]) -> list[Task]:
        nodes = self.session.nodes
        low_below, target = params.thresholds.vector[:, None], params.target_thresholds.vector[:, None]
        known, usage = measured(self.session.world, self.session.nodes, self.session.now)
        low = known & ~nodes.cordoned & (usage < low_below).all(axis=0)
        high = known & ~low & (usage > target).any(axis=0)
        if not low.any() or not high.any():
            return []
        room = ((target - usage) * nodes.allocatable[MEASURED])[:, low].sum(axis=1)
        victims: list[Task] = []
        for row in sorted(np.flatnonzero(high).tolist(), key=lambda row: (-usage[:, row].sum(), nodes.names[row])):
            victims += self._relieve(row, usage[:, row], target[:, 0], room, movable)
        return victims

    def _relieve(self, row: int, usage: Vector, target: Vector, room: Vector, movable: set[str]) -> list[Task]:
        """The pods of a busy node to evict, as long as idle nodes have room for them; `room` shrinks by their requests."""
        nodes, victims = self.session.nodes, []
        capacity = nodes.allocatable[MEASURED, row]
        for task in sorted(nodes.tasks[row].values(), key=_importance):
            if (usage < target).all() or (room <= 0).any():
                break
            if task.uid in movable:
                request = task.template.request[MEASURED]
                room -= request
                usage = usage - np.divide(request, capacity, out=np.zeros(2), where=capacity > 0)
                victims.append(task)
        return victims


def _importance(task: Task) -> tuple[bool, int, int, int]:
    """The sort key: pods without priority first, then by priority, then by quality of service, then by arrival."""
    priority = task.template.priority_value
    return priority is not None, priority or 0, service_quality(task.template), task.number


def service_quality(template: Template) -> int:
    """The quality of service: 0 for best effort, 1 for burstable, 2 for guaranteed."""
    if template.guaranteed:
        return 2
    asks = template.request[MEASURED].any() or any(template.limits.get(name) for name in POD_LEVEL)
    return int(asks)
