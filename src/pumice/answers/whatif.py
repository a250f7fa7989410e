"""What would help: each answer is rehearsed on the changed state, through as many cycles as it takes (`outcome_of_cycles.py`).

For each kind of change, the smallest change that helps is searched by halving: one step smaller does not help. Changes to queues that
admission refuses are left out.
"""

from collections.abc import Callable, Iterable, Iterator
from heapq import nsmallest
from math import inf

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from pumice.answers import pods_not_made
from pumice.answers.answer import Because, Headline, Why
from pumice.answers.changes import ClusterChange, Gone, Later, MoreNodes, make_all
from pumice.answers.difference import Difference, difference
from pumice.answers.other_remedies import ROOM, other_ways
from pumice.answers.outcome_of_cycles import Course, course
from pumice.answers.queue_admission import all_allowed
from pumice.answers.queue_quota import PLACED, largest_promises, step_of
from pumice.answers.request_changes import FewerPods, OtherPriority, OtherQueue, SmallerPods, first_requests
from pumice.answers.subject import NAMESPACED, Subject, owner_of, who_waits
from pumice.answers.trial_cluster import TrialCluster
from pumice.answers.useful_moves import moves, together
from pumice.answers.why import PROMISED, AskedState, expect
from pumice.scheduler.framework.cycle import RehearsalObserver, rehearse
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.world import NOWHERE, World
from pumice.scheduler.model import PODS, Cluster, Job, dominant_share

MOST_ENDING = 20  #: how many running jobs are tried, the smallest first
MOST_PROMISED = 3  #: how many admitted jobs that wait are tried, those first to which most is promised
MOST_NODES = 64


class Option(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A change with which the subject starts."""

    change: str
    changes: tuple[ClusterChange, ...]
    places: dict[str, str]  #: the node of each pod
    room_is_made: bool = False  #: the subject starts when the pods that are evicted for it have left
    others: Difference = Difference()  #: what the change does to all other owners


class WhatIf(Struct, frozen=True, omit_defaults=True, rename="camel"):
    subject: str
    line: str  #: the subject's state now
    state: str = "waits"  #: as `Why` has it
    itself: Option | None = None  #: if nothing need be changed: how it starts
    options: tuple[Option, ...] = ()  #: the cheapest first
    then: str = ""  #: without options: what would hold it back once the headline's remedy is there
    whole: bool = True  #: whether everything was tried; False if the search was ended early


def whatif(
    cluster: Cluster, policy: Policy, now: float, subject: str, world: World = NOWHERE, goes_on: Callable[[], bool] = lambda: True
) -> WhatIf:
    """The smallest changes with which a job or a pod starts, the cheapest first. The search ends early, with what it has found, when
    `goes_on` returns False. Raises InputError."""
    with TrialCluster(cluster) as trial:
        asked = pods_not_made.find_or_promise(trial, subject, NAMESPACED)
        if isinstance(asked, Why):
            return WhatIf(asked.subject, asked.line, asked.state)
        expect(trial, asked)
        return _Search(cluster, policy, now, world, asked, goes_on).run()


class _Ended(Exception):
    """Raised when the search is to end early."""


class _Search:
    def __init__(self, cluster: Cluster, policy: Policy, now: float, world: World, subject: Subject, goes_on: Callable[[], bool]) -> None:
        self._cluster, self._policy, self._now, self._world, self._subject = cluster, policy, now, world, subject
        self._goes_on = goes_on
        self._asked = AskedState(cluster, policy, now, world)
        self._waits = who_waits(cluster, subject)

    def run(self) -> WhatIf:
        why = self._asked.stands(self._subject)
        found = WhatIf(str(self._subject), why.line, why.state)
        is_refused = why.headline is not None and why.headline.because is Because.REFUSED
        if why.state not in ("waits", "starts") or is_refused:
            return found
        self._before = course(self._cluster, self._policy, self._now, self._subject, self._world)
        if self._before.places:
            return replace(found, itself=Option("", (), self._before.places, self._before.made_room))
        options: list[Option] = []
        try:
            for option in filter(None, self._looks(why)):
                if option.changes not in [each.changes for each in options]:
                    options.append(option)
        except _Ended:
            return replace(found, options=tuple(options), whole=False)
        return replace(found, options=tuple(options), then="" if options else self._asked.advised(self._subject, why).then)

    def _looks(self, why: Why) -> Iterator[Option | None]:
        """Try all kinds of changes, from the one that costs the user least to the one that costs most."""
        remedy = why.headline.remedy if why.headline is not None else ()
        is_room = why.headline is not None and why.headline.because in ROOM
        if not self._waits.tasks:  # pods that another scheduler is asked for; or none are there, and nobody knows how they will be
            yield self._option(remedy) if remedy else None
            return
        yield self._later()
        yield from self._other_queues()
        yield self._fewer_pods()
        yield self._smaller_pods()
        yield self._somebody_moves(why.headline)
        yield self._promises_end(why.headline)
        yield self._somebody_ends()
        if remedy and not is_room:
            yield self._option(remedy)
        if why.headline is not None:
            for way in other_ways(self._cluster, self._waits, why.headline):
                yield self._smallest(len(way), lambda step: way[step - 1])  # noqa: B023
        yield self._higher_priority()
        nodes = self._more_nodes(why.like)
        yield nodes
        if remedy and is_room and nodes is None:
            yield self._option(remedy)
        yield self._all_that_lacks(why)

    # -- trying

    def _try(self, changes: Iterable[ClusterChange], now: float | None = None, *, short: bool = False) -> Course | None:
        """What becomes of the subject with these changes; None if admission refuses them."""
        if not self._goes_on():
            raise _Ended
        with TrialCluster(self._cluster) as trial:
            make_all(trial, changes)
            if not all_allowed(trial):
                return None
            return course(self._cluster, self._policy, now or self._now, self._subject, self._world, short=short)

    def _helps(self, *changes: ClusterChange) -> bool:
        found = self._try(changes, short=True)
        return found is not None and bool(found.places)

    def _option(self, changes: tuple[ClusterChange, ...], now: float | None = None) -> Option | None:
        found = self._try(changes, now)
        if found is None or not found.places:
            return None
        own = {owner_of(task) for task in self._waits.tasks}
        own |= {f"podgroup/{self._waits.job.uid}"} if self._waits.job is not None else set()
        others = difference(self._before, found).without(own)
        return Option("; ".join(map(str, changes)), changes, found.places, found.made_room, others)

    def _smallest(self, most: int, change: Callable[[int], ClusterChange]) -> Option | None:
        """The change with the smallest number from 1 to `most` that helps; None if `most` itself does not help."""
        if most < 1 or not self._helps(change(most)):
            return None
        least = 0  # does not help
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (least, middle) if self._helps(change(middle)) else (middle, most)
        return self._option((change(most),))

    def _all_that_lacks(self, why: Why) -> Option | None:
        """All remedies where several are needed. None if they do not help."""
        advice = self._asked.advised(self._subject, why).advice
        is_more = why.headline is not None and advice != why.headline.remedy
        return self._option(advice) if advice and is_more else None

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
        """Pods with a smaller request of one resource: the one of which the largest requests the greatest part of the largest node. What is
        made smaller are first containers."""
        dimensions, most = self._cluster.dimensions, self._cluster.nodes.allocatable
        kinds = {task.template: task.template.spec for task in self._waits.tasks}
        asked = np.max([dimensions.vector(first_requests(spec)) for spec in kinds.values()], axis=0)
        asked[PODS] = 0.0
        if not asked.any() or not self._cluster.nodes.count:
            return None
        column = int((asked / np.maximum(most.max(axis=1), 1.0)).argmax())
        amount, name = float(asked[column]), dimensions.names[column]
        step = step_of(name)
        whose = self._waits.name
        return self._smallest(
            int((amount - 1) // step), lambda steps: SmallerPods(whose, {name: dimensions.format(column, amount - steps * step)})
        )

    def _later(self) -> Option | None:
        """No change, but time: the first instant that a plugin names at which the subject starts."""
        seen = RehearsalObserver()
        decisions = rehearse(self._cluster, self._policy, self._now, self._world, observer=seen)
        turns = {decisions.again_at, *(plugin.next_turn(seen.session) for plugin in seen.session.plugins.everyone)}
        seen.forget()
        options = (self._option((Later(at),), at) for at in sorted(turns) if self._now < at < inf)
        return next(filter(None, options), None)

    def _somebody_moves(self, headline: Headline | None) -> Option | None:
        """A running pod that could run on another node, so that the subject finds room; or else several."""
        if headline is None or headline.because not in ROOM:
            return None
        asked = self._cluster, self._policy, self._now, self._world
        found = (self._option((move,)) for move in moves(*asked, self._waits.tasks[0]))
        if (option := next(filter(None, found), None)) is not None or self._job is None:
            return option
        several = together(*asked, self._job)
        return self._option(several) if several else None

    def _promises_end(self, headline: Headline | None) -> Option | None:
        """The end of an admitted job that waits, to which much is promised that the subject needs in order to be admitted."""
        if headline is None or headline.because not in PROMISED:
            return None
        ends = largest_promises(self._cluster, self._waits.job, MOST_PROMISED)
        return next(filter(None, (self._option((end,)) for end in ends)), None)

    def _somebody_ends(self) -> Option | None:
        """The end of the smallest running job, or running pod without a job, that helps. Where none does alone, that of several."""
        names = self._smallest_running()
        for name in names:
            if (option := self._option((Gone((name,)),))) is not None:
                return option
        if len(names) < 2 or not self._helps(Gone(tuple(names))):
            return None
        least, most = 1, len(names)  # `least` does not help
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (least, middle) if self._helps(Gone(tuple(names[:middle]))) else (middle, most)
        needed = names[:most]
        for name in names[: most - 1]:
            without = [each for each in needed if each != name]
            needed = without if self._helps(Gone(tuple(without))) else needed
        return self._option((Gone(tuple(needed)),))

    def _smallest_running(self) -> list[str]:
        """The names of the smallest running jobs, and of running pods without a job."""
        cluster, total = self._cluster, self._cluster.nodes.total()
        running = (job for job in cluster.jobs.values() if job.count(PLACED) and job is not self._waits.job and job.group is not None)
        enough = [(dominant_share(job.held, total), f"podgroup/{job.uid}") for job in running]
        enough += [
            (dominant_share(task.template.request, total), f"pod/{task.key}")
            for task in cluster.tasks.values()
            if task.status & PLACED and (task.job is None or task.job.group is None)
        ]
        return [name for _, name in nsmallest(MOST_ENDING, enough)]

    def _higher_priority(self) -> Option | None:
        """The lowest priority class above the subject's own with which it starts, or room is made for it."""
        own = max(task.pod_priority for task in self._waits.tasks)
        classes = sorted(self._cluster.of("PriorityClass").values(), key=lambda each: (each.value, each.metadata.name))
        for each in classes:
            if each.value <= own or each.metadata.name.startswith("system-"):
                continue
            if (option := self._option((OtherPriority(self._waits.name, each.metadata.name),))) is not None:
                return option
        return None

    def _more_nodes(self, like: str) -> Option | None:
        """The smallest number of additional nodes that helps. They are like the nearest node that would do if it were empty."""
        if not like:
            return None
        return self._smallest(min(len(self._waits.tasks), MOST_NODES), lambda count: MoreNodes(like, count))
