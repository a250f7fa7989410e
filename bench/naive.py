"""The reference: every node is asked anew for every placement, and equal tasks are placed one by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from pumice.scheduler.engine.evaluation import Evaluation, Evaluations
from pumice.scheduler.model.task import Task

NEVER = 1_000_000  #: no run of equal tasks is as long


class Forgetful(Evaluations):
    """Keeps nothing."""

    def of(self, task: Task) -> Evaluation:
        return Evaluation(task, self._cluster, self._filters, self._scorers)


@contextmanager
def scanning() -> Iterator[None]:
    """Within this, sessions decide the same in the naive way."""
    with (
        patch("pumice.scheduler.framework.session.Evaluations", Forgetful),
        patch("pumice.scheduler.kube.find_node.Evaluations", Forgetful),
        patch("pumice.scheduler.placement.placing.MIN_RUN", NEVER),
        patch("pumice.scheduler.actions.schedule.MIN_RUN", NEVER),
    ):
        yield
