"""pdb: eviction stops where a PodDisruptionBudget would be overdrawn.

Each question counts the candidates in their order against what the budgets allow at that moment; a pod that matches no budget
is free to go. (Volcano's own plugin protects every pod without labels.)
"""

from functools import cached_property
from typing import Any

from pumice.api.core import PodDisruptionBudget
from pumice.api.selectors import Selector, matches
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.model import Task


class Pdb(Plugin):
    name = "pdb"
    reads_only_state = True

    def preemptable(self, evictor: Any, candidates: list[Task]) -> list[Task]:
        left = {
            (namespace, budget.metadata.name): budget.status.disruptions_allowed
            for namespace, budgets in self._budgets.items()
            for _, budget in budgets
        }
        victims = []
        for task in candidates:
            among = self._budgets.get(task.namespace, ())
            concerned = [(task.namespace, budget.metadata.name) for selector, budget in among if _covers(selector, budget, task)]
            for budget in concerned:
                left[budget] -= 1
            if all(left[budget] >= 0 for budget in concerned):
                victims.append(task)
        return victims

    reclaimable = preemptable

    def eviction_cache_key(self, evictor: Task) -> None:
        """All evictors get the same answers."""

    @cached_property
    def _budgets(self) -> dict[str, list[tuple[Selector, PodDisruptionBudget]]]:
        """The budgets that select any pods, by namespace."""
        found: dict[str, list[tuple[Selector, PodDisruptionBudget]]] = {}
        for budget in self.session.cluster.of("PodDisruptionBudget").values():
            selector = budget.spec.selector.requirements if budget.spec.selector else ()
            if selector:
                found.setdefault(budget.metadata.namespace or "default", []).append((selector, budget))
        return found


def _covers(selector: Selector, budget: PodDisruptionBudget, task: Task) -> bool:
    return matches(selector, task.labels) and task.name not in (budget.status.disrupted_pods or ())
