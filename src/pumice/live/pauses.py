"""Writes that the server refuses, and would refuse again: tried ever more rarely, each by itself, and never given up.

A role that lacks a verb, or a webhook that is stricter than we are, says no to every try; but an administrator may mend it, and an API
server that has just started knows no roles for a moment. What was lost on the way or came too late is no refusal: the next cycle asks anew.
"""

from __future__ import annotations

from typing import NamedTuple

from pumice.kube.retry import Backoff

BACKOFF = Backoff(2.0, 120.0)
FORGIVEN_S = 300.0  #: after a pause, a refusal is the first again


class Write(NamedTuple):
    kind: str
    name: str  #: namespace/name, or a uid


class Pause(NamedTuple):
    refusals: int
    until: float
    over: bool = False  #: and that was told


class Pauses:
    """See the module. `now` is the time."""

    def __init__(self) -> None:
        self._pauses: dict[Write, Pause] = {}

    def refused(self, kind: str, name: str, now: float) -> bool:
        """The write is held back from now on, longer each time. Whether it is the first of its kind that is refused."""
        self._forgive(now)
        first = all(write.kind != kind for write in self._pauses)
        self.longer(kind, name, now)
        return first

    def longer(self, kind: str, name: str, now: float) -> float:
        """The next pause of a write, in seconds."""
        self._forgive(now)
        refusals = self._pauses.get(Write(kind, name), Pause(0, now)).refusals
        pause_s = BACKOFF.delay_s(refusals, 1.0)
        self._pauses[Write(kind, name)] = Pause(refusals + 1, now + pause_s)
        return pause_s

    def _forgive(self, now: float) -> None:
        self._pauses = {write: pause for write, pause in self._pauses.items() if now < pause.until + FORGIVEN_S}

    def forget(self, kind: str, name: str) -> None:
        """It was granted, or its object is gone."""
        self._pauses.pop(Write(kind, name), None)

    def holds(self, kind: str, name: str, now: float) -> bool:
        pause = self._pauses.get(Write(kind, name))
        return pause is not None and now < pause.until

    def over(self, kind: str, now: float) -> list[str]:
        """Of a kind, what may be tried again; each is named once."""
        found = [write for write, pause in self._pauses.items() if write.kind == kind and now >= pause.until and not pause.over]
        for write in found:
            self._pauses[write] = self._pauses[write]._replace(over=True)
        return [write.name for write in found]
