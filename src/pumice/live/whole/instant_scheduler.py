"""A scheduler that decides as soon as nothing else happens at the same instant, without the pauses that a live one makes."""

from collections.abc import Awaitable, Callable
from math import inf

from pumice.client.event_correlator import EventRecord
from pumice.client.event_recorder import EventRecorder
from pumice.client.transport import Transport
from pumice.cluster.clock import AlarmClock
from pumice.live.scheduler.cycle_timing import CycleTimer, Urgency
from pumice.live.scheduler.loop import CycleObserver, Scheduler
from pumice.live.scheduler.options import Options
from pumice.live.whole.faulty_transport import SkewedClock
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.policy import Policy
from pumice.simulate.simulated_cluster import PERIOD_S, has_more_to_do


class InstantTimer(CycleTimer):
    """Starts a cycle at once after a change. A change that only affects reports waits while pods wait, which are looked at again anyway."""

    def __init__(self) -> None:
        super().__init__(PERIOD_S)
        self.again_at = inf  #: when to decide again, for policies that do not come to rest in a cycle

    def due_at(self, waiting: bool, crowded: bool = False) -> float:
        if self._request_cycle is Urgency.SOON or (self._request_cycle is Urgency.LATER and not waiting):
            return self._since
        return self.again_at if waiting else inf


class UnreadEvents(EventRecorder):
    """Records no event: nobody can read the Events of a simulated cluster."""

    def tell(self, what: EventRecord) -> None: ...


class InstantScheduler(Scheduler):
    """A scheduler that decides last at each instant: `quiet` returns when nothing is left to do except to decide."""

    def __init__(
        self,
        transport: Transport,
        policy: Policy,
        options: Options,
        clock: AlarmClock | SkewedClock,
        quiet: Callable[[], Awaitable[None]],
        observer: CycleObserver,
        when_synced: Callable[[], None],
    ) -> None:
        recorder = UnreadEvents(transport, options.component)
        super().__init__(transport, policy, options, clock, recorder=recorder, when_synced=when_synced)
        self._quiet, self._alarms = quiet, clock
        self._cycle_timer = self._timer = InstantTimer()
        self._observer, self._cycle_observers = observer, [observer]  # alone: nobody reads how long cycles took

    async def _until_due(self) -> None:
        await super()._until_due()
        await self._quiet()

    async def _sleep_or_request(self, seconds: float) -> None:
        alarm = self._alarms.at(self._alarms.now() + seconds, self._stirred.set)
        try:
            await self._stirred.wait()
        finally:
            alarm.cancel()

    def _report(self, decisions: Decisions, now: float) -> None:
        super()._report(decisions, now)
        self._timer.again_at = now + PERIOD_S if has_more_to_do(self.policy, decisions) else inf
