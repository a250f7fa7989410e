"""What would help, and what a change would do: each answer comes from a cycle that was really rehearsed on the changed state.

For each kind of change, the smallest change that helps is searched by halving: one step smaller does not help.

`difference` compares the next cycle with a change to the one without: which pods start, are evicted or wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from pumice.answers.answer import Because, Headline, Near, Why
from pumice.answers.changes import Change, Gone, MoreNodes, make_all, merged
from pumice.answers.quota import DEVICE
from pumice.answers.requests import FewerPods, OtherPriority, OtherQueue, SmallerPods
from pumice.answers.sketch import Sketch
from pumice.answers.subject import Subject, find, who_waits
from pumice.answers.why import room_being_made, starts, why
from pumice.scheduler.framework.cycle import rehearse
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.world import NOWHERE, World
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.resources import PODS, dominant_share, in_bytes
from pumice.scheduler.model.task import Task

Counts = dict[str, int]


class CycleOutcome(Struct, frozen=True):
    """Numbers of pods by owner. The owner of a pod is its PodGroup, or the pod itself if it has none."""

    starts: Counts
    evicted: Counts
    waits: Counts


class Difference(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Numbers of pods by owner, for those owners whose outcome with the change differs from the one without."""

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
        """Each verb, with the numbers of pods for which it holds."""
        verbs = ("starts", "no longer starts", "is evicted", "is no longer evicted", "waits")
        return tuple(zip(verbs, (self.starts, self.starts_no_more, self.evicted, self.evicted_no_more, self.waits), strict=True))

    def without(self, owner: str) -> Difference:
        """The side effects: the differences for all owners except this one."""
        return Difference(*({name: n for name, n in counts.items() if name != owner} for _, counts in self.parts))


def _pods(count: int) -> str:
    return f"{count} pod{'s' if count > 1 else ''}"


def owner_of(task: Task) -> str:
    job = task.job
    return f"podgroup/{job.uid}" if job is not None and job.group is not None else f"pod/{task.key}"


def outcome(cluster: Cluster, decisions: Decisions) -> CycleOutcome:
    """The outcome of a cycle's decisions. Call this while the cluster is still in the state for which they were made."""
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


MOST_ENDING = 20  #: how many running jobs are tried, the smallest first
MOST_NODES = 64
MOST_REMEDIES = 6
ROOM = (Because.NO_ROOM, Because.FRAGMENTED, Because.TOO_LARGE, Because.GANG, Because.GANG_TOO_LARGE)  #: more room is no option
STEP_MILLI, STEP_BYTES = 100.0, 64.0 * 2**20  #: steps by which pods are made smaller: 100m CPU, 64Mi; else one device


class Option(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A change with which the subject starts now."""

    change: str
    changes: tuple[Change, ...]
    places: dict[str, str]  #: the node of each pod
    room_is_made: bool = False  #: the subject starts when the pods that are evicted for it have left
    others: Difference = Difference()  #: what the change does to all other owners


class WhatIf(Struct, frozen=True, omit_defaults=True, rename="camel"):
    subject: str
    line: str  #: the subject's state now
    options: tuple[Option, ...] = ()  #: the cheapest first
    whole: bool = True  #: whether everything was tried; False if the search was ended early


class TrialCycle(Struct, frozen=True):
    """The result of a cycle on the changed state."""

    places: dict[str, str]
    waits_on: dict[str, str]
    outcome: CycleOutcome


def whatif(
    cluster: Cluster, policy: Policy, now: float, subject: str, world: World = NOWHERE, goes_on: Callable[[], bool] = lambda: True
) -> WhatIf:
    """The smallest changes with which a job or a pod starts now, the cheapest first. The search ends early, with what it has found, when
    `goes_on` returns False. Raises InputError."""
    return _Search(cluster, policy, now, world, find(cluster, subject), goes_on).run()


def compare(
    cluster: Cluster, policy: Policy, now: float, changes: Iterable[Change], other: Policy | None = None, world: World = NOWHERE
) -> Difference:
    """What changes, or another policy, alter in the next cycle. Raises InputError."""
    before = outcome(cluster, rehearse(cluster, policy, now, world))
    with Sketch(cluster) as sketch:
        make_all(sketch, changes)
        return difference(before, outcome(cluster, rehearse(cluster, other or policy, now, world)))


class _Ended(Exception):
    """Raised when the search is to end early."""


class _Search:
    def __init__(self, cluster: Cluster, policy: Policy, now: float, world: World, subject: Subject, goes_on: Callable[[], bool]) -> None:
        self._cluster, self._policy, self._now, self._world, self._subject = cluster, policy, now, world, subject
        self._goes_on = goes_on
        self._waits = who_waits(cluster, subject)

    def run(self) -> WhatIf:
        told = why(self._cluster, self._policy, self._now, f"{self._subject.kind}/{self._subject.key}", self._world)
        if told.headline is None or not self._waits.tasks:
            return WhatIf(str(self._subject), told.line)
        self._before = outcome(self._cluster, self._rehearse())
        found: list[Option] = []
        try:
            found.extend(option for option in self._looks(told, told.headline) if option is not None)
        except _Ended:
            return WhatIf(str(self._subject), told.line, tuple(found), whole=False)
        return WhatIf(str(self._subject), told.line, tuple(found))

    def _looks(self, told: Why, headline: Headline) -> Iterator[Option | None]:
        """Try all kinds of changes, from the one that costs the user least to the one that costs most."""
        yield from self._other_queues()
        yield self._fewer_pods()
        yield self._smaller_pods()
        yield self._somebody_ends()
        if headline.remedy and headline.because not in ROOM:
            yield self._option(headline.remedy)
        yield self._higher_priority()
        yield self._more_nodes(told.nearest)
        yield self._all_that_lacks()

    # -- trying

    def _rehearse(self) -> Decisions:
        return rehearse(self._cluster, self._policy, self._now, self._world)

    def _try(self, changes: Iterable[Change]) -> TrialCycle:
        if not self._goes_on():
            raise _Ended
        with Sketch(self._cluster) as sketch:
            make_all(sketch, changes)
            decisions, waits = self._rehearse(), who_waits(self._cluster, self._subject)
            places = {bind.task.key: bind.node for bind in decisions.binds if bind.task in waits.members}
            made = {place.task.key: place.node for place in decisions.pipelined if place.task in waits.members}
            made |= {task.key: node for task, node in decisions.nominations.items() if node and task in waits.members}
            if room_being_made(self._cluster, self._policy, decisions, waits) is None:
                made = {}
            return TrialCycle(places if starts(decisions, waits) else {}, made, outcome(self._cluster, decisions))

    def _helps(self, *changes: Change) -> bool:
        return bool(self._try(changes).places)

    def _option(self, changes: tuple[Change, ...], *, evicting: bool = False) -> Option | None:
        trial = self._try(changes)
        if not trial.places and not (evicting and trial.waits_on):
            return None
        own = f"podgroup/{self._waits.job.uid}" if self._waits.job is not None else f"pod/{self._subject.key}"
        others = difference(self._before, trial.outcome).without(own)
        return Option("; ".join(map(str, changes)), changes, trial.places or trial.waits_on, not trial.places, others)

    def _smallest(self, most: int, change: Callable[[int], Change]) -> Option | None:
        """The change with the smallest number from 1 to `most` that helps; None if `most` itself does not help."""
        if most < 1 or not self._helps(change(most)):
            return None
        least = 0  # does not help
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (least, middle) if self._helps(change(middle)) else (middle, most)
        return self._option((change(most),))

    def _all_that_lacks(self) -> Option | None:
        """All remedies where several are needed, without those that the others make needless. None if they do not help."""
        given: list[Change] = []
        with Sketch(self._cluster) as sketch:
            for _ in range(MOST_REMEDIES):
                told = why(self._cluster, self._policy, self._now, f"{self._subject.kind}/{self._subject.key}", self._world)
                if told.headline is None or not told.headline.remedy:
                    break
                given += told.headline.remedy
                make_all(sketch, told.headline.remedy)
        needed = merged(given, self._cluster.dimensions)
        if len(given) < 2 or not self._helps(*needed):
            return None
        for change in list(needed):
            without = [each for each in needed if each is not change]
            if without and self._helps(*without):
                needed = without
        return self._option(tuple(needed))

    # -- kinds of changes

    @property
    def _job(self) -> Job | None:
        job = self._waits.job
        return job if job is not None and job.group is not None else None

    def _other_queues(self) -> Iterator[Option | None]:
        job = self._job
        if job is None:
            return
        inner = {queue.parent for queue in self._cluster.queues.values()}
        for queue in sorted(self._cluster.queues.values(), key=lambda queue: queue.name):
            if queue.exists and queue.open and queue is not job.queue and queue.name not in inner:
                yield self._option((OtherQueue(job.uid, queue.name),))

    def _fewer_pods(self) -> Option | None:
        job = self._job
        if job is None or job.min_member < 2 or job.is_ready:
            return None
        return self._smallest(job.min_member - 1, lambda fewer: FewerPods(job.uid, job.min_member - fewer))

    def _smaller_pods(self) -> Option | None:
        """Pods with a smaller request of one resource: the one of which they request the greatest part of the largest node."""
        task = self._waits.tasks[0]
        dimensions, most = self._cluster.dimensions, self._cluster.nodes.allocatable
        asked = [(column, amount) for column, amount in task.template.needs if column != PODS]
        if not asked or not self._cluster.nodes.count:
            return None
        column, amount = max(asked, key=lambda each: each[1] / max(float(most[each[0]].max()), 1.0))
        name = dimensions.names[column]
        step = STEP_BYTES if in_bytes(name) else STEP_MILLI if name == "cpu" else DEVICE
        whose = self._waits.name
        return self._smallest(
            int((amount - 1) // step), lambda steps: SmallerPods(whose, {name: dimensions.format(column, amount - steps * step)})
        )

    def _somebody_ends(self) -> Option | None:
        """The end of the smallest running job, or running pod without a job, that helps."""
        cluster = self._cluster
        total = cluster.nodes.total()
        running = [
            job for job in cluster.jobs.values() if job.counts[status.RUNNING] and job is not self._waits.job and job.group is not None
        ]
        jobs = [(dominant_share(job.held, total), f"podgroup/{job.uid}") for job in running]
        without_job = (task for task in self._standing() if task.job is None or task.job.group is None)
        pods = [(dominant_share(task.template.request, total), f"pod/{task.key}") for task in without_job]
        enough = sorted(jobs + pods)
        for _, name in enough[:MOST_ENDING]:
            if (option := self._option((Gone((name,)),))) is not None:
                return option
        return None

    def _standing(self) -> list[Task]:
        return [task for task in self._cluster.tasks.values() if task.status == status.RUNNING]

    def _higher_priority(self) -> Option | None:
        """The lowest priority class above the subject's own with which it starts, or room is made for it."""
        own = max(task.pod_priority for task in self._waits.tasks)
        classes = sorted(self._cluster.of("PriorityClass").values(), key=lambda each: (each.value, each.metadata.name))
        for each in classes:
            if each.value > own and not each.metadata.name.startswith("system-"):
                option = self._option((OtherPriority(self._waits.name, each.metadata.name),), evicting=True)
                if option is not None:
                    return option
        return None

    def _more_nodes(self, nearest: tuple[Near, ...]) -> Option | None:
        """The smallest number of additional nodes that helps. They are like the node that lacks least."""
        if not nearest:
            return None
        return self._smallest(min(len(self._waits.tasks), MOST_NODES), lambda count: MoreNodes(nearest[0].node, count))
