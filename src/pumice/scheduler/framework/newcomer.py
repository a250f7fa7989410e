"""A newcomer: a job of one pod with which only newcomers wait (`newcomer_cycle.py`), as plugins are asked about it."""

import numpy as np

from pumice.scheduler.model import PODS, Cluster, Job
from pumice.scheduler.model.resources import as_vector


class Newcomer:
    def __init__(self, cluster: Cluster, job: Job) -> None:
        self.cluster, self.job = cluster, job
        (self.task,) = job.tasks.values()
        self._takes_little: bool | None = None

    @property
    def takes_little(self) -> bool:
        """Whether some of each resource stays idle when it has started and all others have what they were promised."""
        if self._takes_little is None:
            self._takes_little = self._leaves_some()
        return self._takes_little

    def _leaves_some(self) -> bool:
        self.cluster.refresh_sums()
        idle = np.add.reduce(self.cluster.nodes.idle, axis=1)
        for column, amount in self.task.template.needs:
            if idle[column] <= amount:
                return False
        if not self.job.is_pending:
            return True
        if promised := [queue.promised for queue in self.cluster.queues.values() if queue.promisees]:
            idle = idle - as_vector(np.add.reduce(promised))
        return all(amount <= idle[column] for column, amount in enumerate(self.job.min_resources.tolist()) if amount and column != PODS)
