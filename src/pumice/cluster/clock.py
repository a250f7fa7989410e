"""The time of a cluster: one heap of alarms, rung by a wall clock at any speed, or by hand.

`RunningClock` follows the machine's clock, `speed` times as fast; speed 0 is a pause. On an event loop (`attach`) it rings by itself.
`VirtualClock` does not advance until it is moved, so that a month passes as fast as its alarms can be carried out. A simulated cluster has
no other source of time. Instants are seconds since 1970.
"""

import asyncio
import heapq
import selectors
import time
from collections.abc import Callable
from math import inf
from typing import Any


class Alarm:
    """A function to be called at an instant, unless the alarm is cancelled before."""

    __slots__ = ("call", "when")

    def __init__(self, when: float, call: Callable[[], None]) -> None:
        self.when = when
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class AlarmClock:
    """Alarms in the order of their instants. Alarms of the same instant ring in the order in which they were set."""

    speed = 1.0  #: seconds of this clock per second of the machine

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Alarm]] = []
        self._serial = 0

    def now(self) -> float:
        raise NotImplementedError

    def at(self, when: float, call: Callable[[], None]) -> Alarm:
        alarm = Alarm(when, call)
        self._serial += 1
        heapq.heappush(self._heap, (when, self._serial, alarm))
        return alarm

    def next_time(self) -> float | None:
        """The instant at which the first alarm is due; None if no alarm is set."""
        while self._heap and self._heap[0][2].call is None:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def ring(self) -> None:
        """Call the functions of all alarms that are due."""
        now = self.now()
        while (when := self.next_time()) is not None and when <= now:
            call = heapq.heappop(self._heap)[2].call
            assert call is not None
            call()

    async def sleep(self, seconds: float) -> None:
        """Wait until this many seconds have passed on this clock."""
        over = asyncio.Event()
        alarm = self.at(self.now() + seconds, over.set)
        try:
            await over.wait()
        finally:
            alarm.cancel()


class VirtualClock(AlarmClock):
    """A clock that advances only when `move_to` is called."""

    speed = float("inf")

    def __init__(self, start: float) -> None:
        super().__init__()
        self._now = start

    def now(self) -> float:
        return self._now

    def move_to(self, when: float) -> None:
        self._now = max(self._now, when)
        self.ring()


class RunningClock(AlarmClock):
    """A clock that runs `speed` times as fast as `machine`, from the instant `start` on."""

    def __init__(self, start: float, speed: float = 1.0, machine: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.speed = speed
        self._machine = machine
        self._base = start, machine()  #: an instant of this clock, and the reading of the machine's clock at that instant
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    def now(self) -> float:
        here, there = self._base
        return here + (self._machine() - there) * self.speed

    def set_speed(self, speed: float) -> None:
        """Run at this speed from now on; 0 pauses."""
        self._base = self.now(), self._machine()
        self.speed = speed
        self._arm()

    def at(self, when: float, call: Callable[[], None]) -> Alarm:
        first = self.next_time()
        alarm = super().at(when, call)
        if first is None or when < first:
            self._arm()
        return alarm

    def not_before(self, when: float) -> None:
        """Move forward to this instant, if it is still in the future."""
        self._base = max(self.now(), when), self._machine()

    def attach(self) -> None:
        """Ring on the running event loop from now on."""
        self._loop = asyncio.get_running_loop()
        self._arm()

    def detach(self) -> None:
        self._loop = None
        self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        when = self.next_time()
        if self._loop is not None and when is not None and self.speed > 0:
            self._timer = self._loop.call_later(max(0.0, when - self.now()) / self.speed, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self.ring()
        self._arm()


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is a `VirtualClock`. When nothing is left to do, the clock jumps at once to the next alarm or timer.

    `may_pass` is called before time passes, with the instant to which the clock would jump. If it finds work left to do now, it does that
    work and returns False, and time does not pass.
    """

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.may_pass: Callable[[float], bool] = lambda until: True
        super().__init__(_Leaping(self))

    def time(self) -> float:
        return self.clock.now()


class _Leaping(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout == 0:
            return []
        self._leap(inf if timeout is None else timeout)
        return super().select(0)

    def _leap(self, timeout: float) -> None:
        clock = self._loop.clock
        alarm = clock.next_time()
        until = min(clock.now() + timeout, inf if alarm is None else alarm)
        if self._loop.may_pass(until):
            if until == inf:
                raise RuntimeError("time stands still: nothing is ever going to happen")
            clock.move_to(until)
