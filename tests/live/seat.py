"""One replica's way to the server: its writes ask the fence of its election, and it may be cut off for a while."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from pumice.api.kinds import ObjectRef
from pumice.client.failures import Fenced, NoAnswer
from pumice.client.leader_election import Election, LeaseCandidate
from pumice.client.transport import Transport
from tests.live.faults import Faults, Faulty, Plan
from tests.live.virtual import VirtualClock

CALM = Plan()
LOCK = ObjectRef("volcano", "volcano-system")


class Wire(Faulty):
    """A connection that can be cut: what is sent then is lost."""

    def __init__(self, transport: Transport, faults: Faults) -> None:
        super().__init__(transport, faults)
        self.cut = False

    async def _call(self, kind: str, make: Callable[[], Awaitable[Any]]) -> Any:
        if self.cut:
            raise NoAnswer("cut", sent=False)
        return await super()._call(kind, make)


class Seat(Wire):
    """See the module. `election` uses `wire`, which asks no fence. The machine's time is `ahead_s` ahead of the others'."""

    def __init__(
        self, transport: Transport, name: str, faults: Faults | None = None, of_lease: Faults | None = None, ahead_s: float = 0.0
    ) -> None:
        super().__init__(transport, faults or Faults(CALM))
        self.wire = Wire(transport, of_lease or Faults(CALM))
        clock = VirtualClock().now
        self.election = Election(self.wire, LeaseCandidate(name, LOCK), clock=clock, wall=lambda: clock() + ahead_s, jitter=lambda: 0.5)

    async def _call(self, kind: str, make: Callable[[], Awaitable[Any]]) -> Any:
        if not self.election.leading():
            raise Fenced("not sent")
        return await super()._call(kind, make)

    def cut_off(self) -> None:
        self.cut = self.wire.cut = True

    def killed(self) -> None:
        self.dead = self.wire.dead = True
