"""The reference: every node is asked anew for every placement, and equal tasks are placed one by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from pumice.engine.evaluation import Evaluation
from pumice.engine.evaluations import Evaluations
from pumice.model.task import Task

NEVER = 1_000_000  #: no run of equal tasks is as long


class Forgetful(Evaluations):
    """Keeps nothing."""

    def of(self, task: Task) -> Evaluation:
        return Evaluation(task, self._cluster, self._filters, self._scorers)


@contextmanager
def scanning() -> Iterator[None]:
    """Within this, sessions decide the same in the naive way."""
    with (
        patch("pumice.framework.session.Evaluations", Forgetful),
        patch("pumice.actions.kube.search.Evaluations", Forgetful),
        patch("pumice.actions.placing.MIN_RUN", NEVER),
        patch("pumice.actions.schedule.MIN_RUN", NEVER),
    ):
        yield
