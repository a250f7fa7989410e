"""Recent evictions: by which action, in whose favour, which plugins permitted them, and what they cost. Kept to explain them
afterwards.

The `PastEvictions` finds evictions that help no job: a job is evicted, its pods are placed again, and it is evicted again for a job that
has gained nothing. Plugins that disagree cause this without end: one decides which job must give room, another which job is served first.
However many jobs are in such a loop, each of its pairs of victim and beneficiary occurs again in its second round. Then the pair backs off,
twice as long each time: the victim is not evicted for the beneficiary, and is not placed while the beneficiary waits, so that the room is
left to it. Other jobs are not affected.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from math import inf
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from pumice.api import rfc3339
from pumice.api.plural import plural
from pumice.scheduler.framework.decisions import Evict
from pumice.scheduler.framework.eviction_cost import at_risk_s, gpus
from pumice.scheduler.model import Cluster, Job, Task

if TYPE_CHECKING:
    from pumice.scheduler.framework.session import Session


MEMORY = "past evictions"  #: its key in the cluster's memory
KEPT = 1000


class PastEviction(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The eviction of one pod. `text` is the message of another scheduler, if nothing else is known."""

    pod: str  #: namespace/name
    at: float  #: seconds since 1970
    job: str = ""  #: uid of the pod's job
    action: str = ""
    beneficiary: str = ""
    permitted_by: tuple[str, ...] = ()  #: names of plugins
    lost_s: float = 0.0  #: seconds of work since its last checkpoint
    gpus: float = 0.0  #: number of GPUs that it requests
    text: str = ""

    @property
    def cause(self) -> str:
        """The eviction in words: its action, its beneficiary, the plugins that permitted it, and its cost."""
        if self.text:
            return self.text
        whom = f" for {self.beneficiary}" if self.beneficiary else ""
        verb = "permits" if len(self.permitted_by) == 1 else "permit"
        rule = f", as {', '.join(self.permitted_by)} {verb}" if self.permitted_by else ""
        on = f" on {self.gpus:g} {plural(self.gpus, 'GPU')}" if self.gpus else ""
        lost = f"; it loses {self.lost_s:.0f} s of work{on}" if self.lost_s else ""
        return f"{self.action}{whom}{rule}{lost}"


def past_eviction(eviction: Evict, cluster: Cluster, now: float) -> PastEviction:
    task = eviction.task
    job = task.job.uid if task.job is not None else ""
    lost = at_risk_s(task, now), gpus(task, cluster.dimensions)
    return PastEviction(task.key, now, job, eviction.action, eviction.beneficiary, eviction.permitted_by, *lost)


def note(cluster: Cluster, evictions: Iterable[PastEviction]) -> None:
    known: deque[PastEviction] = cluster.memory.setdefault(MEMORY, deque(maxlen=KEPT))
    known.extend(evictions)


def past_evictions(cluster: Cluster) -> tuple[PastEviction, ...]:
    """The evictions that are remembered, the oldest first."""
    return tuple(cluster.memory.get(MEMORY, ()))


PAST_EVICTIONS = "evictions"  #: its key in the cluster's memory
EVICTION_LOOP = "EvictionLoop"  #: the reason of the events of which past evictions are read
FORGOTTEN_AFTER_S = 600.0
FIRST_BACK_OFF_S, MOST_BACK_OFF_S = 60.0, 3600.0


class EvictedFor(Struct, frozen=True):
    """A pair of victim and beneficiary (uids of jobs), and the action that evicts."""

    victim: str
    beneficiary: str
    action: str


class LastEviction(Struct, frozen=True):
    at: float
    gained: int  #: pods of the beneficiary that were ready then
    came_back: bool = False  #: whether pods of the victim were placed since
    rounds: int = 1

    @property
    def until(self) -> float:
        """Until when the pair backs off; -inf if it does not."""
        return -inf if self.rounds < 2 else self.at + min(FIRST_BACK_OFF_S * 2.0 ** (self.rounds - 2), MOST_BACK_OFF_S)


class PastEvictions:
    """The past evictions, as one session sees them."""

    def __init__(self, cluster: Cluster, now: float) -> None:
        self._cluster = cluster
        self._now = now
        self.entries: dict[EvictedFor, LastEviction] = cluster.memory.get(PAST_EVICTIONS, {})  #: as they are before the session
        self._loops = {pair: entry for pair, entry in self.entries.items() if entry.until > now}

    @property
    def in_loops(self) -> set[str]:
        """The uids of the jobs of pairs that back off now: they may be treated differently from jobs that are alike otherwise."""
        return {uid for pair in self._loops for uid in (pair.victim, pair.beneficiary)}

    def why_held(self, job: Job) -> str:
        """Why the job waits for a job in whose favour it was evicted; empty if it does not."""
        if not self._loops:
            return ""
        return next((self._in_words(pair, entry) for pair, entry in self._going_on() if pair.victim == job.uid), "")

    def sparing(self, evictor: Task, candidates: list[Task]) -> list[Task]:
        """The candidates, without tasks of jobs that are not to be evicted for this evictor."""
        spared = self.spared(evictor)
        return [task for task in candidates if task.job is None or task.job.uid not in spared] if spared else candidates

    def spared(self, evictor: Task) -> frozenset[str]:
        """The uids of the jobs that are not to be evicted for the evictor's job."""
        uid = evictor.job.uid if evictor.job is not None else ""
        return frozenset(pair.victim for pair in self._loops if pair.beneficiary == uid)

    @property
    def until(self) -> float:
        """When the first of the jobs that are held back may be placed again; inf if no job is held back."""
        return min((entry.until for _, entry in self._going_on()), default=inf)

    def close(self, session: Session) -> None:
        """Take in the binds and evictions that the session has decided."""
        decisions = session.decisions
        if not self.entries and not decisions.evictions:
            return
        back = {bind.task.job.uid for bind in decisions.binds if bind.task.job is not None}
        kept = {pair: replace(entry, came_back=entry.came_back or pair.victim in back) for pair, entry in self.entries.items()}
        kept = {pair: entry for pair, entry in kept.items() if max(entry.at, entry.until) + FORGOTTEN_AFTER_S > self._now}
        for pair in dict.fromkeys(self._pairs(session)):
            before, gained = kept.get(pair), self._cluster.jobs[pair.beneficiary].ready_count
            again = before is not None and before.came_back and gained <= before.gained
            kept[pair] = entry = LastEviction(self._now, gained, rounds=before.rounds + 1 if again and before is not None else 1)
            if again:
                session.event(self._cluster.jobs[pair.victim], "Warning", EVICTION_LOOP, self._in_words(pair, entry))
        self._cluster.memory[PAST_EVICTIONS] = kept

    def _going_on(self) -> Iterator[tuple[EvictedFor, LastEviction]]:
        return ((pair, entry) for pair, entry in self._loops.items() if pair.beneficiary in self._cluster.waiting)

    def _pairs(self, session: Session) -> Iterator[EvictedFor]:
        """The pairs of jobs among the decided evictions. Others, of or for pods without a job, go by priority, which makes no loops."""
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
