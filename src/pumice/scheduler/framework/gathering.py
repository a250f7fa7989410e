"""Gathering: a job that has its minimum waits for jobs that are just arriving, so that these share the room, gang by gang.

When a job is let in, pods beyond the minimum of any job wait for one period, and also while a job that was let in since lacks pods of its
minimum; but only for a few periods in all, since some jobs never get their pods, and others arrive without end. Pods within the minimum
are placed at once, and so is a whole job that leaves room for all who are known to come and for one more that is as large. Without a period
(files) no pod waits.
"""

from __future__ import annotations

from math import inf

from msgspec import Struct, field

from pumice.scheduler.model import Cluster, Job

MEMORY = "gathering"  #: its key in the cluster's memory
MOST_PERIODS = 10


class Kept(Struct):
    """What is remembered from session to session, until a session holds no pod back."""

    began: float = inf  #: when the first job was let in
    last: float = -inf  #: when the last job was let in
    incomplete: list[str] = field(default_factory=list)  #: uids of jobs let in that lack pods

    def copy(self) -> Kept:
        return Kept(self.began, self.last, list(self.incomplete))


class Gathering:
    """The gathering in one session."""

    def __init__(self, cluster: Cluster, period_s: float, now: float) -> None:
        self._cluster = cluster
        self._period_s = period_s
        self._now = now
        self._kept: Kept = cluster.memory.setdefault(MEMORY, Kept())
        self._kept.incomplete = [uid for uid in self._kept.incomplete if uid in cluster.jobs and cluster.jobs[uid].lacks_pods]

    def let_in(self, job: Job) -> None:
        kept = self._kept
        kept.began, kept.last = min(kept.began, self._now), self._now
        if job.lacks_pods:
            kept.incomplete.append(job.uid)

    def is_wanted_by_others(self, job: Job) -> bool:
        """Whether what the rest of a job would take may be wanted by jobs that are just arriving, of whom not all are known yet."""
        free = self._cluster.nodes.idle.sum(axis=1) + job.held
        for uid in self._kept.incomplete:
            other = self._cluster.jobs[uid]
            if not other.has_min_resources:
                return True
            free -= other.outstanding(other.held)
        whole = job.held + job.asked
        return bool((2 * whole > free)[whole > 0].any())

    @property
    def until(self) -> float:
        """When the gathering ends, as far as is known now; seconds since 1970."""
        kept = self._kept
        last = self._now if kept.incomplete else kept.last
        return min(last + self._period_s, kept.began + MOST_PERIODS * self._period_s)

    @property
    def goes_on(self) -> bool:
        return self.until > self._now

    def close(self) -> float:
        """When pods that this session has held back may be placed; inf if it has held none back."""
        if self.goes_on:
            return self.until
        self._cluster.memory[MEMORY] = Kept()
        return inf
