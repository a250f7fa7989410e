"""What a change does to everybody: the next cycles with the change, compared with those without it."""

from __future__ import annotations

from collections.abc import Container, Iterable

from msgspec import Struct

from pumice.answers.changes import ClusterChange, make_all
from pumice.answers.outcome_of_cycles import Counts, Course, course
from pumice.answers.queue_admission import refuse_wrong_queues
from pumice.answers.trial_cluster import TrialCluster
from pumice.api.plural import counted
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.world import NOWHERE, World
from pumice.scheduler.model import Cluster


class Difference(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Numbers of pods by owner, for those owners whose outcome with the change differs from the one without."""

    starts: Counts = {}
    starts_no_more: Counts = {}
    evicted: Counts = {}
    evicted_no_more: Counts = {}
    waits: Counts = {}

    def __str__(self) -> str:
        parts = (f"{owner} {verb} ({counted(count, 'pod')})" for verb, counts in self.parts for owner, count in counts.items())
        return "; ".join(parts) or "nobody else is affected"

    @property
    def parts(self) -> tuple[tuple[str, Counts], ...]:
        """Each verb, with the numbers of pods for which it holds."""
        verbs = ("starts", "no longer starts", "is evicted", "is no longer evicted", "waits")
        return tuple(zip(verbs, (self.starts, self.starts_no_more, self.evicted, self.evicted_no_more, self.waits), strict=True))

    def without(self, owners: Container[str]) -> Difference:
        """The side effects: the differences for all owners except these."""
        return Difference(*({name: n for name, n in counts.items() if name not in owners} for _, counts in self.parts))


def difference(before: Course, after: Course) -> Difference:
    return Difference(
        _more(after.starts, before.starts),
        _more(before.starts, after.starts),
        _more(after.evicted, before.evicted),
        _more(before.evicted, after.evicted),
        _more(after.waits, before.waits),
    )


def _more(of: Counts, than: Counts) -> Counts:
    return {owner: count - than.get(owner, 0) for owner, count in sorted(of.items()) if count > than.get(owner, 0)}


def compare(
    cluster: Cluster, policy: Policy, now: float, changes: Iterable[ClusterChange], other: Policy | None = None, world: World = NOWHERE
) -> Difference:
    """What changes, or another policy, alter in the next cycles, until nothing changes any more. Raises InputError."""
    before = course(cluster, policy, now, None, world)
    with TrialCluster(cluster) as trial:
        make_all(trial, changes)
        refuse_wrong_queues(trial)
        return difference(before, course(cluster, other or policy, now, None, world))
