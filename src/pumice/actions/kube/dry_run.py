"""Preemption tried on one node after the other, asking every rule each time: for preemptors whose fate is not decided by resources
alone (host ports, volumes, affinity, spreading). The readable form of what `resource_dry_run` does for many nodes at once.
"""

from __future__ import annotations

import numpy as np

from pumice.actions.kube.budgets import Budgets
from pumice.actions.kube.nominations import Nominations
from pumice.actions.kube.trial import Trial
from pumice.actions.kube.victims_table import VictimsTable, importance
from pumice.actions.kube.words import Words, ask, speaking
from pumice.engine.evaluation import Evaluation
from pumice.engine.view import View
from pumice.eviction.pick_node import Candidate
from pumice.model.cluster import Cluster
from pumice.model.task import Task

NO_VICTIMS = "No preemption victims found for incoming pod"


class DryRun:
    """For one preemptor."""

    def __init__(self, cluster: Cluster, task: Task, evaluation: Evaluation, nominations: Nominations, budgets: Budgets) -> None:
        self._cluster = cluster
        self._task = task
        self._filters = speaking(evaluation)
        self._nominations = nominations
        self._budgets = budgets
        self._residents = cluster.index(VictimsTable)

    def on(self, row: int) -> Candidate | tuple[str, ...]:
        """Who would have to go there, or why nothing helps. Without victims: nobody has to."""
        lower = self._residents.lower(row, self._task.pod_priority)
        if not lower:
            return (NO_VICTIMS,)
        with Trial(self._cluster) as trial:
            for victim in lower:
                trial.remove(victim)
            if (refusal := self._refusal(row)) is not None:
                return refusal.of(0)
            against = self._budgets.against(lower)
            violating = [victim for victim, is_against in zip(lower, against, strict=True) if is_against]
            others = [victim for victim, is_against in zip(lower, against, strict=True) if not is_against]
            lost = self._put_back(trial, violating, row)
            lost_others = self._put_back(trial, others, row)
        return Candidate(row, sorted(lost + lost_others, key=importance), len(lost))

    def _put_back(self, trial: Trial, victims: list[Task], row: int) -> list[Task]:
        """Those who cannot stay."""
        lost = []
        for victim in victims:
            mark = trial.mark()
            trial.put_back(victim)
            if self._refusal(row) is not None:
                trial.rollback(mark)
                lost.append(victim)
        return lost

    def _refusal(self, row: int) -> Words | None:
        """What is said against the preemptor, with the pods nominated there and without."""
        held = list(self._nominations.held_against(self._task, row))
        if held:
            with Trial(self._cluster) as trial:
                for other in held:
                    trial.place(other, row)
                if (words := self._ask(row)).refused[0]:
                    return words
        words = self._ask(row)
        return words if words.refused[0] else None

    def _ask(self, row: int) -> Words:
        return ask(self._filters, View(self._cluster.nodes, np.array([row])), np.ones(1, bool))
