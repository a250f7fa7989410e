"""Who has its minimum waits for those who are only just coming: jobs that arrive together share the room, gang by gang.

When a job is let in, pods beyond the minimum of any job wait for one period, and as long as a job let in since has pods missing of its own
minimum; but only for a few periods altogether, for some jobs never get their pods, and others arrive without end. Minimums are placed at
once. Without a period (files) nobody waits.
"""

from __future__ import annotations

from math import inf

from msgspec import Struct, field

from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.job import Job

MEMORY = "gathering"  #: its key in the cluster's memory
MOST_PERIODS = 10


class Kept(Struct):
    """What is remembered from session to session, until one holds nobody back."""

    began: float = inf
    last: float = -inf  #: when a job was let in
    incomplete: list[str] = field(default_factory=list)  #: uids of jobs let in that lack pods


class Gathering:
    """As it stands in one session."""

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

    @property
    def until(self) -> float:
        """When it ends, as far as is known now."""
        kept = self._kept
        last = self._now if kept.incomplete else kept.last
        return min(last + self._period_s, kept.began + MOST_PERIODS * self._period_s)

    @property
    def goes_on(self) -> bool:
        return self.until > self._now

    def close(self) -> float:
        """When to look again at whom this session has held back; inf if it has held back nobody."""
        if self.goes_on:
            return self.until
        self._cluster.memory[MEMORY] = Kept()
        return inf
