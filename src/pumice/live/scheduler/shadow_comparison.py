"""What two schedulers would have done with the same pods: counted, told in words, and measured.

A pod is compared from the turn that sees it waiting until the other scheduler places it. The verdict is one of three: the same node,
another node, or left waiting. Waits count from that first turn. A pod that Pumice would leave waiting is counted with the other scheduler's
wait, so what is told of Pumice's waits is then the least.
"""

import msgspec

from pumice.api.plural import counted
from pumice.api.times import span
from pumice.http.metrics import Declared, counter, gauge, render
from pumice.text_table import columns

KEPT = 200  #: how many verdicts are shown; all are counted
SAME_NODE, OTHER_NODE, NOWHERE = "same node", "other node", "nowhere"  #: where Pumice would have put a pod
TURN_S = 2.0  #: a pod that would be placed sooner by no more than this counts as placed at the same time


class PodVerdict(msgspec.Struct):
    """What both schedulers did with a pod that waited. Times are seconds since 1970."""

    pod: str
    gpus: float
    since: float = 0.0  #: when it was first seen waiting
    theirs: str = ""  #: the node where the other scheduler put it
    theirs_at: float = 0.0
    ours: str = ""  #: the node where Pumice would have put it at first
    ours_at: float = 0.0
    why: str = ""  #: why Pumice would leave it waiting

    def place(self, node: str, at: float) -> None:
        if not self.ours:
            self.ours, self.ours_at, self.why = node, at, ""

    @property
    def where(self) -> str:
        """Where Pumice would have put the pod, once the other scheduler has placed it."""
        return NOWHERE if not self.ours else SAME_NODE if self.ours == self.theirs else OTHER_NODE

    @property
    def differs(self) -> bool:
        return self.where != SAME_NODE or self.sooner_s > TURN_S

    @property
    def their_wait_s(self) -> float:
        return self.theirs_at - self.since

    @property
    def our_wait_s(self) -> float:
        return (self.ours_at if self.ours else self.theirs_at) - self.since

    @property
    def sooner_s(self) -> float:
        """By how many seconds Pumice would have placed the pod sooner; 0 unless both schedulers place it."""
        return self.theirs_at - self.ours_at if self.theirs and self.ours else 0.0


class Comparison(msgspec.Struct):
    """The comparison of both schedulers, as far as it has been seen."""

    since: float
    until: float
    placed: int = 0  #: pods that the other scheduler placed, of those that were seen waiting
    same_node: int = 0
    other_node: int = 0
    left_waiting: int = 0  #: pods that Pumice would not have placed
    sooner: int = 0  #: pods that Pumice would have placed in an earlier turn
    sooner_s: float = 0.0  #: seconds of waiting that these pods would have been spared
    gpu_hours: float = 0.0  #: the same waiting, in hours of the GPUs that these pods request
    differed: int = 0  #: pods that Pumice would have put elsewhere, placed sooner or left waiting
    their_wait_s: float = 0.0  #: what the placed pods waited, together
    our_wait_s: float = 0.0  #: what they would have waited with Pumice
    canary: str = ""  #: the share that Pumice schedules itself, which is not compared
    bound: int = 0  #: pods of the canary's share that Pumice has placed
    evicted: int = 0
    would_place: list[PodVerdict] = []  #: pods that still wait, though Pumice would place them
    would_evict: dict[str, str] = {}  #: running pods that Pumice would evict, and for which pod or PodGroup
    verdicts: list[PodVerdict] = []  #: the last verdicts in which both schedulers differ

    def close(self, verdict: PodVerdict) -> None:
        """Count a pod that the other scheduler has placed."""
        self.placed += 1
        self.same_node += verdict.where == SAME_NODE
        self.other_node += verdict.where == OTHER_NODE
        self.left_waiting += verdict.where == NOWHERE
        self.differed += verdict.differs
        self.their_wait_s += verdict.their_wait_s
        self.our_wait_s += verdict.our_wait_s
        if verdict.sooner_s > TURN_S:
            self.sooner += 1
            self.sooner_s += verdict.sooner_s
            self.gpu_hours += verdict.sooner_s * verdict.gpus / 3600
        if verdict.differs:
            self.verdicts = [*self.verdicts[1 - KEPT :], verdict]


def page(seen: Comparison) -> str:
    """The report, for people."""
    spared = f"{span(seen.sooner_s)} of waiting and {seen.gpu_hours:.1f} GPU-hours altogether"
    placed = counted(seen.placed, "pod that was", "pods that were")
    lines = [
        f"In {span(seen.until - seen.since)} the other scheduler placed {placed} seen waiting.",
        f"Pumice would have put {seen.same_node} on the same node and {seen.other_node} on another, and left {seen.left_waiting} waiting;",
        f"it would have placed {seen.sooner} of them sooner, by {spared}.",
        f"They waited {mean(seen.their_wait_s, seen.placed)} on average; with Pumice {mean(seen.our_wait_s, seen.placed)}.",
        f"Of those who wait still it would place {len(seen.would_place)}, and evict {counted(len(seen.would_evict), 'pod')} for others.",
    ]
    shown = [*seen.verdicts, *seen.would_place]
    rows = [(each.pod, each.theirs or "-", each.ours or "-", span(each.sooner_s), each.why) for each in shown]
    table = columns(("POD", "THEIRS", "OURS", "SOONER BY", "WHY IT WOULD WAIT"), rows)
    if seen.canary:
        lines.insert(0, f"Pumice scheduled {seen.canary}: it placed {counted(seen.bound, 'pod')} and evicted {seen.evicted}. Of the rest:")
    return "\n".join([*lines, *(["", table] if rows else [])])


def since(before: Comparison, now: Comparison, seconds: float) -> str:
    """What has been compared since an earlier moment, so many seconds ago, in one line for the log."""
    placed, differed = now.placed - before.placed, now.differed - before.differed
    lead = f"in {span(seconds)} the other scheduler placed {counted(placed, 'pod that was', 'pods that were')} seen waiting"
    if not placed:
        return f"{lead}; Pumice would place {len(now.would_place)} of those that wait"
    elsewhere, left = now.other_node - before.other_node, now.left_waiting - before.left_waiting
    sooner = now.sooner - before.sooner
    theirs, ours = mean(now.their_wait_s - before.their_wait_s, placed), mean(now.our_wait_s - before.our_wait_s, placed)
    kinds = f"{elsewhere} on another node, {left} left waiting, {sooner} placed sooner"
    otherwise = f"Pumice would have decided otherwise about {differed} ({differed / placed:.0%}): {kinds}"
    return f"{lead}; {otherwise}; mean wait {theirs}, with Pumice {ours}"


def mean(seconds: float, count: int) -> str:
    return span(seconds / count) if count else span(0.0)


class ShadowMetrics(Declared):
    """The comparison in numbers, for a scrape."""

    _placed = counter("pumice_shadow_placed_total", "Pods that the other scheduler placed, by where Pumice would.", "where")
    _sooner = counter("pumice_shadow_placed_sooner_total", "Of these, pods that Pumice would have placed sooner.")
    _sooner_s = counter("pumice_shadow_spared_seconds_total", "Seconds of waiting that these would have been spared.")
    _gpu_hours = counter("pumice_shadow_spared_gpu_hours_total", "The same in hours of the GPUs that they request.")
    _waits = counter("pumice_shadow_wait_seconds_total", "What the placed pods waited, and would have waited.", "scheduler")
    _would_place = gauge("pumice_shadow_would_place", "Pods that still wait, though Pumice would place them.")
    _would_evict = gauge("pumice_shadow_would_evict", "Pods that Pumice would evict for others.")

    def page(self, seen: Comparison) -> str:
        """The text that a scrape gets."""
        for where, count in ((SAME_NODE, seen.same_node), (OTHER_NODE, seen.other_node), (NOWHERE, seen.left_waiting)):
            self._placed.add(where, by=count - self._placed.value(where))
        for scheduler, seconds in (("other", seen.their_wait_s), ("pumice", seen.our_wait_s)):
            self._waits.add(scheduler, by=seconds - self._waits.value(scheduler))
        for spared, number in ((self._sooner, seen.sooner), (self._sooner_s, seen.sooner_s), (self._gpu_hours, seen.gpu_hours)):
            spared.add(by=number - spared.value())
        self._would_place.set(len(seen.would_place))
        self._would_evict.set(len(seen.would_evict))
        return render(self.declared)
