"""The live scheduler where time stands still while anybody has something to do: a cycle an instant, when all of its news are in.

Live, a cycle waits a moment for more news, and now and then looks at pods that wait although there are none. Neither means anything here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf

from pumice.client.transport import Transport
from pumice.live.lifecycle import Clock
from pumice.live.scheduler.cycle_timing import CycleTimer, Urgency
from pumice.live.scheduler.loop import CycleObserver, Scheduler
from pumice.live.scheduler.options import Options
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.policy import Policy
from pumice.simulate.simulated_cluster import PERIOD_S, has_more_to_do


class InstantTimer(CycleTimer):
    """At once after any news; after those that change only what is reported, if nobody waits, who is looked at again soon anyway."""

    def __init__(self) -> None:
        super().__init__(PERIOD_S)
        self.again_at = inf  #: for policies that do not come to rest in a cycle

    def due_at(self, waiting: bool) -> float:
        if self._news is Urgency.SOON or (self._news is Urgency.LATER and not waiting):
            return self._news_at
        return self.again_at if waiting else inf


class InstantScheduler(Scheduler):
    """`quiet` returns when there is nothing left to do at this instant but to decide."""

    def __init__(
        self,
        transport: Transport,
        policy: Policy,
        options: Options,
        clock: Clock,
        quiet: Callable[[], Awaitable[None]],
        observer: CycleObserver,
        when_synced: Callable[[], None],
    ) -> None:
        super().__init__(transport, policy, options, clock, when_synced=when_synced)
        self._quiet = quiet
        self._cycle_timer = self._timer = InstantTimer()
        self.watch(observer)

    async def _until_due(self) -> None:
        await super()._until_due()
        await self._quiet()

    def _leave(self, decisions: Decisions, now: float) -> None:
        super()._leave(decisions, now)
        self._timer.again_at = now + PERIOD_S if has_more_to_do(self.policy, decisions) else inf
