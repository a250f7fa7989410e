"""The jobs whose tasks have moved in a session: what is known of all jobs is kept up to date by asking about these."""

from __future__ import annotations

from collections.abc import Iterable

from pumice.scheduler.model import Cluster, Job


class MovedJobs:
    """The jobs whose tasks have moved since they were last asked for; at first all jobs, or with `since_now` none."""

    def __init__(self, cluster: Cluster, *, since_now: bool = False) -> None:
        self._cluster = cluster
        self._position = len(cluster.log) if since_now else -1

    def now(self) -> Iterable[Job]:
        log, position = self._cluster.log, self._position
        self._position = len(log)
        if position < 0:
            return self._cluster.jobs.values()
        return () if position == len(log) else {change.task.job for change in log[position:] if change.task.job is not None}
