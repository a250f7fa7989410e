"""A newcomer: a job of one pod with which only newcomers wait (`newcomer_cycle.py`), as plugins are asked about it."""

import numpy as np

from pumice.scheduler.model import INQUEUE, PENDING, PODS, Cluster, Job, status
from pumice.scheduler.model.resources import as_vector


class Newcomer:
    def __init__(self, cluster: Cluster, job: Job) -> None:
        self.cluster, self.job = cluster, job
        (self.task,) = job.tasks.values()
        self._before = job.phase, job.waiting_since
        self._takes_little: bool | None = None

    @property
    def takes_little(self) -> bool:
        """Whether some of each resource stays idle when it has started and all others have what they were promised."""
        if self._takes_little is None:
            self._takes_little = self._leaves_some()
        return self._takes_little

    def _leaves_some(self) -> bool:
        self.cluster.refresh_sums()
        idle = np.add.reduce(self.cluster.nodes.idle, axis=1).tolist()
        for column, amount in self.task.template.needs:
            if idle[column] <= amount:
                return False
        if self.job.phase != PENDING:
            return True
        if promised := [queue.promised for queue in self.cluster.queues.values() if queue.promisees]:
            idle = (idle - as_vector(np.add.reduce(promised))).tolist()
        for column, amount in enumerate(self.job.min_resources.tolist()):
            if amount and column != PODS and amount > idle[column]:
                return False
        return True

    def place(self, row: int, let_in_at: float | None) -> None:
        """Let it in, and bind it to a row. `let_in_at`: the present, if the action enqueue would let it in."""
        job = self.job
        if job.phase == PENDING:
            if job.waiting_since is None:
                job.waiting_since = let_in_at
            self.cluster.set_phase(job, INQUEUE)
        self.cluster.move(self.task, status.BINDING, row)

    def take_back(self) -> None:
        """Undo `place`."""
        self.cluster.move(self.task, status.PENDING, -1)
        phase, self.job.waiting_since = self._before
        self.cluster.set_phase(self.job, phase)
