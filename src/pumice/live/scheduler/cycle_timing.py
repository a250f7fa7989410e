"""When the next cycle begins: pure arithmetic on what happened and how long cycles take.

* A change that could place a pod leads to a cycle within a few hundredths of a second. Changes are gathered for that time, so that a job of
  a thousand pods is one cycle. While more binds wait than are sent at a time, changes are gathered for longer: a bind that is decided
  sooner would only wait longer.
* A change that only affects what is reported (a bound pod runs) waits for the period, and so do waiting pods while nothing changes.
* Without changes and waiting pods, cycles are so rare that they take less than two thousandths of a core; plugins that act by the clock
  (time windows, rescheduling) still get their turn.
"""

from enum import IntEnum

GATHER_S = 0.03
CROWDED_S = 0.25  #: the same, while binds wait for others to be answered
WAITING_SHARE = 4.0  #: with pods waiting but nothing new: at least so many times a cycle's duration passes before the next
IDLE_SHARE = 500.0
IDLE_LEAST_S = 1.0


class Urgency(IntEnum):
    """How soon a change matters to a cycle."""

    NOTHING = 0
    LATER = 1
    SOON = 2


class CycleTimer:
    """Remembers the last cycle and the most urgent change since. Times are seconds of one clock."""

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._ended_at = float("-inf")
        self._took_s = 0.0
        self._request_cycle = Urgency.SOON
        self._since = float("-inf")

    def knows(self, urgency: Urgency) -> bool:
        """Whether a change of this urgency, or a greater one, has come since the last cycle."""
        return urgency <= self._request_cycle

    def request(self, urgency: Urgency, now: float) -> None:
        if not self.knows(urgency):
            self._request_cycle = urgency
            self._since = now

    def cycled(self, began_at: float, took_s: float) -> None:
        self._request_cycle = Urgency.NOTHING
        self._took_s = took_s
        self._ended_at = began_at + took_s

    def due_at(self, waiting: bool, crowded: bool = False) -> float:
        """When the next cycle should begin, if nothing else happens. `waiting`: some pod or group waits. `crowded`: so do binds."""
        if self._request_cycle is Urgency.SOON:
            gather_s = CROWDED_S if crowded else GATHER_S
            return max(self._ended_at + min(self._took_s, self._period_s), self._since + gather_s)
        if self._request_cycle is Urgency.LATER:
            return max(self._ended_at, self._since) + self._period_s
        if waiting:
            return self._ended_at + max(self._period_s, WAITING_SHARE * self._took_s)
        return self._ended_at + max(self._period_s, IDLE_LEAST_S, IDLE_SHARE * self._took_s)
