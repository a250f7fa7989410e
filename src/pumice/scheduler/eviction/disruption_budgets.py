"""Which possible victims of preemption would violate a PodDisruptionBudget.

They are counted in order of importance: each pod is charged to the budgets that select it, and violates a budget that has nothing left. A
pod that the API server has counted already (`disruptedPods`) is not charged again.

How much that counts when a node is picked: `pick_node.py`.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from pumice.api.core import PodDisruptionBudget
from pumice.api.selectors import Requirement, Selector, matches
from pumice.scheduler.model import Cluster, Mask, Task
from pumice.scheduler.model.shared_templates import Pairs

OPERATORS = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}  #: whether the operator needs values


class _Budget(Struct, frozen=True, eq=False):
    selector: Selector
    allowed: int
    disrupted: frozenset[str]


class BudgetsByNamespace:
    def __init__(self, cluster: Cluster) -> None:
        self._by_namespace: dict[str, list[_Budget]] = {}
        for budget in cluster.of("PodDisruptionBudget").values():
            self._add(budget)
        self._charged: dict[tuple[str, Pairs], tuple[_Budget, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_namespace)

    def _add(self, wire: PodDisruptionBudget) -> None:
        selector = wire.spec.selector.requirements if wire.spec.selector is not None else ()
        if selector and all(map(_well_formed, selector)):
            budget = _Budget(selector, wire.status.disruptions_allowed, frozenset(wire.status.disrupted_pods or ()))
            self._by_namespace.setdefault(wire.metadata.namespace or "default", []).append(budget)

    def charged(self, task: Task) -> tuple[_Budget, ...]:
        """The budgets to which the eviction of the pod would be charged."""
        budgets = self._by_namespace.get(task.namespace)
        if not budgets or not task.labels:
            return ()
        key = (task.namespace, task.labels)
        found = self._charged.get(key)
        if found is None:
            found = self._charged[key] = tuple(b for b in budgets if matches(b.selector, task.labels))
        return tuple(b for b in found if task.name not in b.disrupted)

    def against(self, tasks: Sequence[Task]) -> list[bool]:
        """For possible victims of one node, the most important first: whether each violates a budget."""
        left: dict[_Budget, int] = {}
        verdicts = []
        for task in tasks:
            violating = False
            for budget in self.charged(task):
                left[budget] = left.get(budget, budget.allowed) - 1
                violating |= left[budget] < 0
            verdicts.append(violating)
        return verdicts

    def mask(self, tasks: Sequence[Sequence[Task]], priority: int, depth: int) -> Mask:
        """The answers of `against` as [place, row], for the pods on rows. Pods that are not below the priority are not charged."""
        mask = np.zeros((depth, len(tasks)), bool)
        for column, on_node in enumerate(tasks):
            lower = [(place, task) for place, task in enumerate(on_node) if task.pod_priority < priority]
            if any(self.charged(task) for _, task in lower):
                mask[[place for place, _ in lower], column] = self.against([task for _, task in lower])
        return mask


def _well_formed(requirement: Requirement) -> bool:
    return requirement.operator in OPERATORS and bool(requirement.values) == OPERATORS[requirement.operator]
