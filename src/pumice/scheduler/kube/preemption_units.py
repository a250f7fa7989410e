"""What preemption evicts as a whole: a pod, or all running members of a group whose disruption mode is `all`.

A unit's priority is that of the root group of its pods, whatever the pods say; of a pod without a group, its own.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import inf

from msgspec import Struct

from pumice.api.kinds import COMPOSITE_POD_GROUP, NATIVE_POD_GROUP
from pumice.scheduler.eviction.disruption_budgets import BudgetsByNamespace
from pumice.scheduler.eviction.pick_node import start
from pumice.scheduler.kube.pod_groups import LEAF, Groups, NativeGroup, holds_node
from pumice.scheduler.model import Cluster, Task, status

POD, POD_GROUP, COMPOSITE_GROUP = range(3)  #: kinds of units, the more important later


def with_pods(tasks: Iterable[Task]) -> Iterator[Task]:
    """The tasks without those that are allocated or pipelined in this session: these have no pod on the node to evict."""
    return (task for task in tasks if not task.status & (status.ALLOCATED | status.PIPELINED))


class PreemptionUnit(Struct, eq=False):
    tasks: list[Task]
    priority: int
    kind: int
    rows: frozenset[int]  #: where its pods are
    violations: int = 0  #: how many of its pods violate a PodDisruptionBudget


class Units:
    """The units of a cluster. `groups` None: every pod is a unit."""

    def __init__(self, groups: Groups | None) -> None:
        self._groups = groups
        self._met = (-1, False)  #: a position of the log, and whether a member of a group had a node then

    def matter(self, cluster: Cluster) -> bool:
        """Whether any pod on a node may count other than as itself."""
        if self._groups is None or not cluster.members:
            return False
        position, found = self._met
        if position != cluster.log.position:
            found = any(holds_node(task) for members in cluster.members.values() for task in members.values())
            self._met = cluster.log.position, found
        return found

    def priority(self, task: Task) -> int:
        root = self._root(task)
        return task.pod_priority if root is None else root.priority

    def _root(self, task: Task) -> NativeGroup | None:
        return self._groups.root_of(task.group) if self._groups is not None and task.group else None

    def of(self, tasks: Iterable[Task], below: float = inf) -> list[PreemptionUnit]:
        """The units of these pods whose priority is below a limit, each once, with all their pods."""
        found: dict[str, PreemptionUnit] = {}
        for task in with_pods(tasks):
            priority = self.priority(task)
            if priority < below:
                whole = self._whole(task)
                key = whole.uid if whole is not None else task.uid
                if key not in found:
                    found[key] = self._unit(task, whole, priority)
        return list(found.values())

    def of_pod(self, task: Task, made: dict[str, PreemptionUnit]) -> PreemptionUnit:
        """The unit that a pod is part of. `made`: those of whole groups that are known, by uid."""
        whole = self._whole(task)
        if whole is None:
            return self._unit(task, None, self.priority(task))
        if whole.uid not in made:
            made[whole.uid] = self._unit(task, whole, self.priority(task))
        return made[whole.uid]

    def rules(self, cluster: Cluster) -> dict[str, tuple[object, ...]]:
        """All that units depend on besides pods, by group."""
        found: dict[str, tuple[object, ...]] = {}
        for kind in (NATIVE_POD_GROUP, COMPOSITE_POD_GROUP):
            for key, wire in cluster.of(kind).items():
                spec = wire.spec
                found[f"{kind} {key}"] = spec.priority, spec.disruption_mode, spec.parent_composite_pod_group_name
        return found

    def rows_with(self, leaf_key: str) -> set[int]:
        """The rows of the pods that are evicted together with those of a PodGroup."""
        leaf = self._groups.leaf(leaf_key) if self._groups is not None else None
        top = None if leaf is None else self._highest_whole(leaf)
        return {task.node for task in self._groups.scheduled(top)} if top is not None and self._groups is not None else set()

    def _unit(self, task: Task, whole: NativeGroup | None, priority: int) -> PreemptionUnit:
        if whole is None or self._groups is None:
            return PreemptionUnit([task], priority, POD if self._root(task) is None else POD_GROUP, frozenset([task.node]))
        tasks = [task for task in with_pods(self._groups.scheduled(whole)) if task.node >= 0]
        return PreemptionUnit(tasks, priority, POD_GROUP if whole.kind == LEAF else COMPOSITE_GROUP, frozenset(task.node for task in tasks))

    def _whole(self, task: Task) -> NativeGroup | None:
        """The highest group of the pod that goes as a whole."""
        if self._groups is None or self._root(task) is None:
            return None
        leaf = self._groups.leaf(task.group)
        return self._highest_whole(leaf) if leaf is not None else None

    @staticmethod
    def _highest_whole(leaf: NativeGroup) -> NativeGroup | None:
        """The highest group above a PodGroup, or itself, that goes as a whole."""
        above = [group for group in leaf.ancestry if group.goes_whole]
        return above[-1] if above else None


def by_importance(units: Iterable[PreemptionUnit], now: float) -> list[PreemptionUnit]:
    """The most important first: by priority, kind, number of pods, and how long they run."""
    return sorted(units, key=lambda u: (-u.priority, -u.kind, -len(u.tasks), min(start(task, now) for task in u.tasks)))


def by_budget(units: Sequence[PreemptionUnit], budgets: BudgetsByNamespace) -> list[PreemptionUnit]:
    """The units, given by importance, with those first that violate a budget. Their violations are counted."""
    verdicts = iter(budgets.against([task for unit in units for task in unit.tasks]))
    for unit in units:
        unit.violations = sum(next(verdicts) for _ in unit.tasks)
    return [unit for unit in units if unit.violations] + [unit for unit in units if not unit.violations]
