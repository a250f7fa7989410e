"""Dry runs of preemption that ask every rule, one node after the other: which pods would have to go from a node so that a pod fits there.

They are for pods for which more decides than resources (host ports, volumes, affinity, spreading). Where resources alone decide,
`ResourceDryRun` does it for many nodes at once.
"""

from types import TracebackType
from typing import Self

import numpy as np

from pumice.scheduler.engine import Evaluation, View
from pumice.scheduler.eviction.disruption_budgets import BudgetsByNamespace
from pumice.scheduler.eviction.pick_node import Candidate
from pumice.scheduler.framework.journal import Moves, Operation
from pumice.scheduler.kube.diagnosis import NodeStatuses, run_filters, speaking
from pumice.scheduler.kube.extenders import AttemptFailed
from pumice.scheduler.kube.nominator import Nominator
from pumice.scheduler.kube.preemption_units import PreemptionUnit, Units, by_budget, by_importance
from pumice.scheduler.model import Cluster, Task, status


class Trial(Moves):
    """Trials: pods are taken off a node or put onto it for a moment, so that every rule can be asked what it would say then."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._removals: dict[Task, Operation] = {}

    def __enter__(self) -> Self:
        self._outer = self.cluster.imagined
        self.cluster.imagined = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        super().__exit__(kind, error, trace)
        self.cluster.imagined = self._outer

    def remove(self, task: Task) -> None:
        removal = self._removals[task] = _now(task)
        self.do(removal, status.FAILED, -1)

    def place(self, task: Task, row: int) -> None:
        self.do(_now(task), status.ALLOCATED, row)

    def put_back(self, task: Task) -> None:
        """Undo one removal, whatever came after it."""
        removal = self._removals[task]
        self.do(_now(task), removal.before, removal.row, hide=removal.hidden)


def _now(task: Task) -> Operation:
    return Operation(task, task.status, task.node, task.evicted)


NO_VICTIMS = "No preemption victims found for incoming pod"


class PreemptionDryRun:
    """The dry run for one preemptor, which asks every rule."""

    def __init__(
        self,
        cluster: Cluster,
        task: Task,
        evaluation: Evaluation,
        nominations: Nominator,
        budgets: BudgetsByNamespace,
        units: Units,
        now: float,
    ) -> None:
        self._cluster = cluster
        self._task = task
        self._units, self._now = units, now
        self._filters = speaking(evaluation)
        self._nominations = nominations
        self._budgets = budgets

    def on(self, row: int) -> Candidate | tuple[str, ...]:
        """The candidate with the pods that would have to go from a row, or the reasons why nothing helps. No victims: no pod has to go.
        Raises AttemptFailed if a filter cannot judge the row without them."""
        on_node = sorted(self._cluster.nodes.tasks[row].values(), key=lambda task: task.number)
        lower = by_importance(self._units.of(on_node, self._task.pod_priority), self._now)
        if not lower:
            return (NO_VICTIMS,)
        with Trial(self._cluster) as trial:
            for unit in lower:
                for victim in unit.tasks:
                    trial.remove(victim)
            if (refusal := self._refusal(row)) is not None:
                if refusal.failure:
                    raise AttemptFailed(refusal.failure)
                return refusal.of(0)
            lost = self._put_back(trial, by_budget(lower, self._budgets), row)
        victims = [victim for unit in lower if unit in lost for victim in unit.tasks]
        return Candidate(row, victims, sum(unit.violations for unit in lost))

    def _put_back(self, trial: Trial, units: list[PreemptionUnit], row: int) -> list[PreemptionUnit]:
        """Put back the units that can stay, and return those that cannot."""
        lost = []
        for unit in units:
            mark = trial.mark()
            for victim in unit.tasks:
                trial.put_back(victim)
            if self._refusal(row) is not None:
                trial.rollback(mark)
                lost.append(unit)
        return lost

    def _refusal(self, row: int) -> NodeStatuses | None:
        """Why filters refuse the preemptor, with the pods nominated there or without them; None if they admit it in both cases."""
        held = list(self._nominations.held_against(self._task, row))
        if held:
            with Trial(self._cluster) as trial:
                for other in held:
                    trial.place(other, row)
                if (statuses := self._ask(row)).refused[0]:
                    return statuses
        statuses = self._ask(row)
        return statuses if statuses.refused[0] else None

    def _ask(self, row: int) -> NodeStatuses:
        return run_filters(self._filters, View(self._cluster.nodes, np.array([row])), np.ones(1, bool))
