"""A scheduler that runs beside another one and writes nothing: where Pumice would have decided otherwise, and what that would gain.

Each turn rehearses a cycle on the state that the other scheduler has left. Nothing of it is carried out, so each decision is judged alone:
what would have followed from it is not known. Pods that were placed before a turn could see them waiting are not compared.
"""

import logging
from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec

from pumice.http.messages import Request, Response
from pumice.live.lifecycle import first
from pumice.live.scheduler.canary_share import CanaryShare
from pumice.live.scheduler.loop import LONGEST_PAUSE_S, CycleObserver, Scheduler
from pumice.live.scheduler.shadow_comparison import Comparison, PodVerdict, ShadowMetrics, since
from pumice.scheduler.framework.cycle import rehearse
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.eviction_cost import gpus
from pumice.scheduler.model import Cluster, Task

HOUR_S = 3600.0  #: how often the log says what has been compared
log = logging.getLogger(__name__)


class Shadow(Scheduler):
    """A scheduler that watches another one. What it decides is compared, and never sent."""

    def __init__(self, *given: Any, canary: CanaryShare | None = None, **more: Any) -> None:
        """`canary` is the share that another Pumice scheduler decides, and which is therefore not compared."""
        super().__init__(*given, **more)
        self._canary = canary
        self.comparison = Comparison(self.clock.now(), self.clock.now(), canary=str(canary or ""))
        self.shadow_metrics = ShadowMetrics()
        self._seen: dict[str, tuple[PodVerdict, Task]] = {}  #: pods that wait, by uid

    def served(self, request: Request) -> Response:
        """The HTTP answer with the comparison so far, to requests from this machine only: it names the pods of all users."""
        if not request.local:
            return Response.text("the comparison is told over loopback only: kubectl port-forward leads there", 403)
        return Response(msgspec.json.encode(self.comparison))

    def compared(self) -> str:
        """The metrics of the comparison so far."""
        return self.shadow_metrics.page(self.comparison)

    async def _cycles(self) -> None:
        await first(super()._cycles(), self._tell_each_hour())

    async def _tell_each_hour(self) -> None:
        while True:
            before = msgspec.structs.replace(self.comparison)
            await self.clock.sleep(HOUR_S)
            log.info("%s", since(before, self.comparison, HOUR_S))

    async def turn(self) -> Decisions:
        """Rehearse a cycle, and compare its decisions with the other scheduler's."""
        self._check()
        decisions = Decisions()
        async with self._state.alone() as run:
            self._event_handlers.turn()
            now = self.deciding_since = self.clock.now()
            try:
                decisions = await run(partial(rehearse, self.cluster, self._acting, now, self._world))
                self._compare(decisions, now)
                self._faults = 0
            except Exception:
                self._on_failed_cycle([], now)
            self.deciding_since = None
            self.cycled_at = self.clock.now()
            self.metrics.cycles.observe((self.cycled_at - now) * 1000)
            self._cycle_timer.cycled(now, self.cycled_at - now)
            self._next_try = min(decisions.again_at, self._event_handlers.next_due())
        if self._faults:
            await self.clock.sleep(min(LONGEST_PAUSE_S, 2.0**self._faults))
        return decisions

    def _compare(self, decisions: Decisions, now: float) -> None:
        """Take in what both schedulers have decided since the last turn."""
        comparison, seen = self.comparison, self._seen
        for uid, (verdict, task) in list(seen.items()):
            known = self.cluster.tasks.get(task.key)
            if known is None or known.uid != uid or known.node_name:
                del seen[uid]
            if known is not None and known.uid == uid and known.node_name:
                verdict.theirs, verdict.theirs_at = known.node_name, now
                comparison.close(verdict)
        for task in filter(self._is_compared, _pending(self.cluster)):
            if task.uid not in seen:
                seen[task.uid] = PodVerdict(task.key, gpus(task, self.cluster.dimensions), now), task
        for waiting in decisions.waiting:
            if waiting.task.uid in seen and not seen[waiting.task.uid][0].ours:
                seen[waiting.task.uid][0].why = waiting.message
        for bind in decisions.binds:
            if bind.task.uid in seen:
                seen[bind.task.uid][0].place(bind.node, now)
        comparison.would_place = [verdict for verdict, _ in seen.values() if verdict.ours]
        comparison.would_evict = {each.task.key: each.beneficiary for each in decisions.evictions}
        comparison.until = now

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
