"""The reference: every node is asked anew for every placement, equal tasks are placed one by one, victims are listed anew for each gang."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from pumice.scheduler.engine.evaluation import Evaluation
from pumice.scheduler.engine.evaluations import Evaluations
from pumice.scheduler.eviction.gang_attempt import GangAttempt
from pumice.scheduler.eviction.gang_eviction import GangEviction, Rosters
from pumice.scheduler.eviction.gang_roster import Roster
from pumice.scheduler.model.task import Task

NEVER = 1_000_000  #: longer than any run of equal tasks


class Forgetful(Evaluations):
    """Evaluations that are not kept: each is made anew when it is requested."""

    def of(self, task: Task) -> Evaluation:
        return Evaluations(self._cluster, self._filters, self._scorers).of(task)


class ForgetfulRosters(Rosters):
    """Rosters that are not kept: each is made anew when it is requested."""

    def of(self, action: GangEviction, attempt: GangAttempt) -> Roster:
        self._known.clear()
        return super().of(action, attempt)


@contextmanager
def scanning() -> Iterator[None]:
    """Let sessions inside this context make the same decisions in the naive way."""
    with (
        patch("pumice.scheduler.framework.plugin_rules.Evaluations", Forgetful),
        patch("pumice.scheduler.kube.find_node.Evaluations", Forgetful),
        patch.object(Evaluation, "_bounds", return_value=None),
        patch("pumice.scheduler.placement.place_tasks.MIN_RUN", NEVER),
        patch("pumice.scheduler.actions.schedule.MIN_RUN", NEVER),
        patch("pumice.scheduler.eviction.gang_eviction.Rosters", ForgetfulRosters),
    ):
        yield
