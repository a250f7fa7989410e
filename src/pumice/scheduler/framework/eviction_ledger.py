"""Evictions that come to nothing: a job is evicted, its pods are placed again, and it is evicted again for one that has gained nothing.

Plugins that disagree do that without end: one says who must give, another who is served first. Whatever the length of such a ring, each of
its pairs of victim and beneficiary comes again in its second round. That pair is then left alone for a while, twice as long each time: the
victim waits as long as the beneficiary does, so that the room is the beneficiary's, and is not evicted for it. Nobody else is touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from pumice.api.times import rfc3339
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.task import Task

if TYPE_CHECKING:
    from pumice.scheduler.framework.session import Session

MEMORY = "evictions"  #: its key in the cluster's memory
EVICTION_LOOP = "EvictionLoop"  #: the reason of its events
FORGOTTEN_AFTER_S = 600.0
FIRST_BACK_OFF_S, MOST_BACK_OFF_S = 60.0, 3600.0


class EvictedFor(Struct, frozen=True):
    """Uids of two jobs, and the action that evicts."""

    victim: str
    beneficiary: str
    action: str


class LastEviction(Struct, frozen=True):
    """The last eviction of a pair."""

    at: float
    gained: int  #: pods of the beneficiary that had started
    came_back: bool = False  #: pods of the victim were placed since
    rounds: int = 1

    @property
    def until(self) -> float:
        """Until when the pair is left alone."""
        return -inf if self.rounds < 2 else self.at + min(FIRST_BACK_OFF_S * 2.0 ** (self.rounds - 2), MOST_BACK_OFF_S)


class EvictionLedger:
    """As it stands in one session."""

    def __init__(self, cluster: Cluster, now: float) -> None:
        self._cluster = cluster
        self._now = now
        self._entries: dict[EvictedFor, LastEviction] = cluster.memory.get(MEMORY, {})
        self._loops = {pair: entry for pair, entry in self._entries.items() if entry.until > now}

    @property
    def sees_loops(self) -> bool:
        """Whether jobs that are alike otherwise may fare differently."""
        return bool(self._loops)

    def why_held(self, job: Job) -> str:
        """Why the job waits for those for whom it was evicted; empty if it does not."""
        if not self._loops:
            return ""
        return next((self._in_words(pair, entry) for pair, entry in self._going_on() if pair.victim == job.uid), "")

    def sparing(self, evictor: Task, candidates: list[Task]) -> list[Task]:
        """The candidates but those who are left alone."""
        spared = self.spared(evictor)
        return [task for task in candidates if task.job is None or task.job.uid not in spared] if spared else candidates

    def spared(self, evictor: Task) -> frozenset[str]:
        """Uids of the jobs that are not evicted for this one's."""
        uid = evictor.job.uid if evictor.job is not None else ""
        return frozenset(pair.victim for pair in self._loops if pair.beneficiary == uid)

    @property
    def until(self) -> float:
        """When the next who waits need no longer; inf if nobody does."""
        return min((entry.until for _, entry in self._going_on()), default=inf)

    def close(self, session: Session) -> None:
        """Enter what the session decided."""
        decisions = session.decisions
        if not self._entries and not decisions.evictions:
            return
        back = {bind.task.job.uid for bind in decisions.binds if bind.task.job is not None}
        kept = {pair: replace(entry, came_back=entry.came_back or pair.victim in back) for pair, entry in self._entries.items()}
        kept = {pair: entry for pair, entry in kept.items() if max(entry.at, entry.until) + FORGOTTEN_AFTER_S > self._now}
        for pair in dict.fromkeys(self._pairs(session)):
            before, gained = kept.get(pair), self._cluster.jobs[pair.beneficiary].ready_count
            again = before is not None and before.came_back and gained <= before.gained
            kept[pair] = entry = LastEviction(self._now, gained, rounds=before.rounds + 1 if again and before is not None else 1)
            if again:
                session.event(self._cluster.jobs[pair.victim], "Warning", EVICTION_LOOP, self._in_words(pair, entry))
        self._cluster.memory[MEMORY] = kept

    def _going_on(self) -> Iterator[tuple[EvictedFor, LastEviction]]:
        return ((pair, entry) for pair, entry in self._loops.items() if pair.beneficiary in self._cluster.waiting)

    def _pairs(self, session: Session) -> Iterator[EvictedFor]:
        """Of jobs; what else is evicted, or in whose favour, goes by priority, which never turns around."""
        tasks, jobs = self._cluster.tasks, self._cluster.jobs
        for eviction in session.decisions.evictions:
            named = tasks.get(eviction.beneficiary)
            winner = named.job if named is not None else jobs.get(eviction.beneficiary)
            loser = eviction.task.job
            if winner is not None and loser is not None and loser.group is not None:
                yield EvictedFor(loser.uid, winner.uid, eviction.action)

    def _in_words(self, pair: EvictedFor, entry: LastEviction) -> str:
        return (
            f"evicted {entry.rounds} times by {pair.action} for {pair.beneficiary}, which has not started by it: "
            f"waits for it, and is not evicted for it again, before {rfc3339(entry.until)}"
        )
