"""What a change makes of the next cycle: who starts, who is evicted, who waits, in its place."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.task import Task

Counts = dict[str, int]


class CycleOutcome(Struct, frozen=True):
    """Pods by owner: of a job its PodGroup, of others the pod itself."""

    starts: Counts
    evicted: Counts
    waits: Counts


class Difference(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Pods by owner, of whom the outcome with the change differs from that without."""

    starts: Counts = {}
    starts_no_more: Counts = {}
    evicted: Counts = {}
    evicted_no_more: Counts = {}
    waits: Counts = {}

    def __str__(self) -> str:
        words = (f"{owner} {verb} ({_pods(count)})" for verb, counts in self.parts for owner, count in counts.items())
        return "; ".join(words) or "nobody else is affected"

    @property
    def parts(self) -> tuple[tuple[str, Counts], ...]:
        """What is said of whom."""
        verbs = ("starts", "no longer starts", "is evicted", "is no longer evicted", "waits")
        return tuple(zip(verbs, (self.starts, self.starts_no_more, self.evicted, self.evicted_no_more, self.waits), strict=True))

    def without(self, owner: str) -> Difference:
        """The side effects: for others."""
        return Difference(*({name: n for name, n in counts.items() if name != owner} for _, counts in self.parts))


def _pods(count: int) -> str:
    return f"{count} pod{'s' if count > 1 else ''}"


def owner_of(task: Task) -> str:
    job = task.job
    return f"podgroup/{job.uid}" if job is not None and job.group is not None else f"pod/{task.key}"


def outcome(cluster: Cluster, decisions: Decisions) -> CycleOutcome:
    """To be made while the cluster is still the one that the decisions are about."""
    starts = Counter(owner_of(bind.task) for bind in decisions.binds)
    evicted = Counter(owner_of(eviction.task) for eviction in decisions.evictions)
    tasks = [*(task for job in cluster.waiting.values() for task in job.pending.values()), *cluster.without_job.values()]
    waits = Counter(owner_of(task) for task in tasks if task.status == status.PENDING)
    return CycleOutcome(dict(starts), dict(evicted), {owner: n - starts[owner] for owner, n in waits.items() if n > starts[owner]})


def difference(before: CycleOutcome, after: CycleOutcome) -> Difference:
    return Difference(
        _more(after.starts, before.starts),
        _more(before.starts, after.starts),
        _more(after.evicted, before.evicted),
        _more(before.evicted, after.evicted),
        _more(after.waits, before.waits),
    )


def _more(of: Counts, than: Counts) -> Counts:
    return {owner: count - than.get(owner, 0) for owner, count in sorted(of.items()) if count > than.get(owner, 0)}
