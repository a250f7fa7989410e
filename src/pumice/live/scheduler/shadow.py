"""A scheduler that runs beside another one and writes nothing: where Pumice would have decided otherwise, and what that would gain.

Each turn rehearses a cycle on the state that the other scheduler has left. Nothing of it is carried out, so each decision is judged alone:
what would have followed from it is not known. Pods that were placed before a turn could see them waiting are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import msgspec

from pumice.api.times import span
from pumice.client.access import Access
from pumice.client.client import Client
from pumice.http.messages import Request, Response
from pumice.live.lifecycle import Counter, Family, Gauge, Routes, WallClock, first, listeners, measures, probes, render, told_to_end
from pumice.live.scheduler.http_world import HttpWorld
from pumice.live.scheduler.loop import CycleObserver, Scheduler
from pumice.live.scheduler.options import CanaryShare
from pumice.live.scheduler.process import SchedulerSettings
from pumice.live.scheduler.single_writer import on_a_thread
from pumice.scheduler.framework.cycle import rehearse
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.past_evictions import gpus
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.task import Task
from pumice.text_table import columns

KEPT = 200  #: how many verdicts are shown; all are counted
TURN_S = 2.0  #: a pod that would be placed sooner by no more than this counts as placed at the same time


class Verdict(msgspec.Struct):
    """What both schedulers did with a pod that waited. Times are seconds since 1970."""

    pod: str
    gpus: float
    theirs: str = ""  #: the node where the other scheduler put it
    theirs_at: float = 0.0
    ours: str = ""  #: the node where Pumice would have put it at first
    ours_at: float = 0.0
    why: str = ""  #: why Pumice would leave it waiting

    def place(self, node: str, at: float) -> None:
        if not self.ours:
            self.ours, self.ours_at, self.why = node, at, ""

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
    canary: str = ""  #: the share that Pumice schedules itself, which is not compared
    bound: int = 0  #: pods of the canary's share that Pumice has placed
    evicted: int = 0
    would_place: list[Verdict] = []  #: pods that still wait, though Pumice would place them
    would_evict: dict[str, str] = {}  #: running pods that Pumice would evict, and for which pod or PodGroup
    verdicts: list[Verdict] = []  #: the last verdicts in which both schedulers differ

    def close(self, verdict: Verdict) -> None:
        """Count a pod that the other scheduler has placed."""
        self.placed += 1
        self.same_node += verdict.ours == verdict.theirs
        self.other_node += verdict.ours not in ("", verdict.theirs)
        self.left_waiting += not verdict.ours
        if verdict.sooner_s > TURN_S:
            self.sooner += 1
            self.sooner_s += verdict.sooner_s
            self.gpu_hours += verdict.sooner_s * verdict.gpus / 3600
        if verdict.ours != verdict.theirs or verdict.sooner_s > TURN_S:
            self.verdicts = [*self.verdicts[1 - KEPT :], verdict]


def page(told: Comparison) -> str:
    """The report, for people."""
    spared = f"{span(told.sooner_s)} of waiting and {told.gpu_hours:.1f} GPU-hours altogether"
    lines = [
        f"In {span(told.until - told.since)} the other scheduler placed {told.placed} pods that were seen waiting.",
        f"Pumice would have put {told.same_node} on the same node and {told.other_node} on another, and left {told.left_waiting} waiting;",
        f"it would have placed {told.sooner} of them sooner, by {spared}.",
        f"Of those who wait still it would place {len(told.would_place)}, and evict {len(told.would_evict)} pods for others.",
    ]
    shown = [*told.verdicts, *told.would_place]
    rows = [(each.pod, each.theirs or "-", each.ours or "-", span(each.sooner_s), each.why) for each in shown]
    table = columns(("POD", "THEIRS", "OURS", "SOONER BY", "WHY IT WOULD WAIT"), rows)
    if told.canary:
        lines.insert(0, f"Pumice scheduled {told.canary}: it placed {told.bound} pods and evicted {told.evicted}. Of the rest:")
    return "\n".join([*lines, *(["", table] if rows else [])])


class ShadowMetrics:
    """The comparison in numbers, for a scrape."""

    def __init__(self) -> None:
        self._placed = Counter("pumice_shadow_placed_total", "Pods that the other scheduler placed, by where Pumice would.", ("where",))
        self._sooner = Counter("pumice_shadow_placed_sooner_total", "Of these, pods that Pumice would have placed sooner.")
        self._sooner_s = Counter("pumice_shadow_spared_seconds_total", "Seconds of waiting that these would have been spared.")
        self._gpu_hours = Counter("pumice_shadow_spared_gpu_hours_total", "The same in hours of the GPUs that they request.")
        self._would_place = Gauge("pumice_shadow_would_place", "Pods that still wait, though Pumice would place them.")
        self._would_evict = Gauge("pumice_shadow_would_evict", "Pods that Pumice would evict for others.")

    def families(self) -> list[Family]:
        return [self._placed, self._sooner, self._sooner_s, self._gpu_hours, self._would_place, self._would_evict]

    def page(self, told: Comparison) -> str:
        """The text that a scrape gets."""
        for where, count in (("same node", told.same_node), ("other node", told.other_node), ("nowhere", told.left_waiting)):
            self._placed.add(where, by=count - self._placed.value(where))
        for counter, number in ((self._sooner, told.sooner), (self._sooner_s, told.sooner_s), (self._gpu_hours, told.gpu_hours)):
            counter.add(by=number - counter.value())
        self._would_place.set(len(told.would_place))
        self._would_evict.set(len(told.would_evict))
        return render(self.families())


class Shadow(Scheduler):
    """A scheduler that watches another one. What it decides is compared, and never sent."""

    def __init__(self, *given: Any, canary: CanaryShare | None = None, **more: Any) -> None:
        """`canary` is the share that another Pumice scheduler decides, and which is therefore not compared."""
        super().__init__(*given, **more)
        self._canary = canary
        self.shadow_metrics = ShadowMetrics()
        self.comparison = Comparison(self.clock.now(), self.clock.now(), canary=str(canary or ""))
        self._seen: dict[str, tuple[Verdict, Task]] = {}  #: pods that wait, by uid

    def told(self, request: Request) -> Response:
        """The HTTP answer with the comparison so far, to requests from this machine only: it names the pods of all users."""
        if not request.local:
            return Response.text("the comparison is told over loopback only: kubectl port-forward leads there", 403)
        return Response(msgspec.json.encode(self.comparison))

    def compared(self) -> str:
        """The metrics of the comparison so far."""
        return self.shadow_metrics.page(self.comparison)

    async def turn(self) -> Decisions:
        """Rehearse a cycle, and compare its decisions with the other scheduler's."""
        self._check()
        decisions = Decisions()
        async with self._state.alone() as run:
            now = self.clock.now()
            try:
                decisions = await run(partial(rehearse, self.cluster, self._acting, now, self._world))
                self._compare(decisions, now)
                self._faults = 0
            except Exception:
                self._came_to_nothing(Decisions(), now)
            self._cycle_timer.cycled(now, self.clock.now() - now)
            self._next_try = decisions.again_at
        if self._faults:
            await self.clock.sleep(2.0**self._faults)
        return decisions

    def _compare(self, decisions: Decisions, now: float) -> None:
        """Take in what both schedulers have decided since the last turn."""
        told, seen = self.comparison, self._seen
        for uid, (verdict, task) in list(seen.items()):
            known = self.cluster.tasks.get(task.key)
            if known is None or known.uid != uid or known.node_name:
                del seen[uid]
            if known is not None and known.uid == uid and known.node_name:
                verdict.theirs, verdict.theirs_at = known.node_name, now
                told.close(verdict)
        for task in filter(self._is_compared, _pending(self.cluster)):
            seen.setdefault(task.uid, (Verdict(task.key, gpus(task, self.cluster.dimensions)), task))
        for waiting in decisions.waiting:
            if waiting.task.uid in seen and not seen[waiting.task.uid][0].ours:
                seen[waiting.task.uid][0].why = waiting.message
        for bind in decisions.binds:
            if bind.task.uid in seen:
                seen[bind.task.uid][0].place(bind.node, now)
        told.would_place = [verdict for verdict, _ in seen.values() if verdict.ours]
        told.would_evict = {each.task.key: each.beneficiary for each in decisions.evictions}
        told.until = now

    def _is_compared(self, task: Task) -> bool:
        queue = task.job.queue.name if task.job is not None and task.job.queue is not None else ""
        return self._canary is None or not self._canary.has(task.namespace, queue)


class Canary(CycleObserver):
    """Counts what the scheduler beside a shadow really decides."""

    needs_full_cycles = False

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison

    def cycled(self, decisions: Decisions, at: float, took_s: float) -> None:
        self._comparison.bound += len(decisions.binds)
        self._comparison.evicted += len(decisions.evictions)


def _pending(cluster: Cluster) -> Iterator[Task]:
    yield from cluster.without_job.values()
    for job in cluster.waiting.values():
        yield from job.pending.values()


class ShadowReplica:
    """`pumice scheduler --shadow` as a process, from its first request to its last. All its requests only read."""

    def __init__(self, access: Access, settings: SchedulerSettings) -> None:
        self._access = access
        self._settings = settings
        self._shadow: Shadow | None = None

    async def serve(self) -> Comparison:
        """Run until SIGTERM or SIGINT, and return what was seen."""
        settings, clock = self._settings, WallClock()
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(Client(self._access))
            readonly = client.fenced(lambda: False)  # any write would be held back; none is expected
            shadow = Shadow(readonly, settings.load(), settings.options, clock, world=HttpWorld(), where=on_a_thread)
            self._shadow = shadow
            served: Routes = {**measures(self), "/debug/shadow": shadow.told}
            for server in listeners(settings.metrics_address, served, settings.healthz_address, probes(self), settings.tls):
                await stack.enter_async_context(server)
            ended = stack.enter_context(told_to_end())
            await first(shadow.run(), ended.wait())
        return shadow.comparison

    def alive(self) -> str:
        return ""

    def ready(self) -> str:
        return "" if self._shadow is not None and self._shadow.synced.is_set() else "the cluster is being read"

    def metrics(self) -> str:
        return self._shadow.compared() if self._shadow is not None else ""
