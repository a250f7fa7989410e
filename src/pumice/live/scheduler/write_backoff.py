"""Writes that the server refuses, and would refuse again, are tried with growing pauses, each write by itself, and are never given up.

A role that lacks a verb, or a webhook that is stricter than we are, refuses every try; but an administrator may correct it, and an API
server that has just started knows no roles for a moment. A write that was lost on the way or came too late is not refused: the next cycle
sends it again.
"""

from collections import Counter
from math import inf
from typing import NamedTuple

from msgspec import Struct

from pumice.client.client import Backoff

BACKOFF = Backoff(2.0, 120.0)
FORGIVEN_S = 300.0  #: so long after the end of a pause, the next refusal counts as the first one


class BackedOffWrite(Struct, frozen=True):
    kind: str
    name: str  #: namespace/name, or a uid


class Pause(NamedTuple):
    refusals: int
    until: float
    over: bool = False  #: the pause is over, and `WriteBackoff` has returned that once
    refused: bool = False  #: by the server


class WriteBackoff:
    """Writes that were refused, and how long each is left alone. `now` is the time."""

    def __init__(self) -> None:
        self._pauses: dict[BackedOffWrite, Pause] = {}
        self._refused: Counter[str] = Counter()  #: by kind: how many of them the server refused
        self._forgave_in = -inf  #: the second

    def refused(self, kind: str, name: str, now: float) -> bool:
        """Hold a refused write back, longer each time. Return whether no other refusal of its kind is remembered."""
        self._forgive(now)
        first = not self._refused[kind]
        self.longer(kind, name, now, refused=True)
        return first

    def longer(self, kind: str, name: str, now: float, *, refused: bool = False) -> float:
        """Begin the next, longer pause of a write, and return its length in seconds."""
        self._forgive(now)
        refusals = self._pauses.get(BackedOffWrite(kind, name), Pause(0, now)).refusals
        pause_s = BACKOFF.delay_s(refusals, 1.0)
        self.forget(kind, name)
        self._pauses[BackedOffWrite(kind, name)] = Pause(refusals + 1, now + pause_s, refused=refused)
        self._refused[kind] += refused
        return pause_s

    def _forgive(self, now: float) -> None:
        """Forget what was long ago; once a second, since thousands of writes may be refused in one."""
        if now // 1 > self._forgave_in:
            self._forgave_in = now // 1
            for write in [write for write, pause in self._pauses.items() if now >= pause.until + FORGIVEN_S]:
                self.forget(write.kind, write.name)

    def forget(self, kind: str, name: str) -> None:
        """Forget the refusals of a write: it was granted, or its object is gone."""
        known = self._pauses.pop(BackedOffWrite(kind, name), None)
        self._refused[kind] -= known is not None and known.refused

    def __bool__(self) -> bool:
        return bool(self._pauses)

    def of(self, *names: str) -> dict[str, float]:
        """By kind, until when writes with these names are left alone."""
        return {write.kind: pause.until for write, pause in self._pauses.items() if write.name in names}

    def holds(self, kind: str, name: str, now: float) -> bool:
        pause = self._pauses.get(BackedOffWrite(kind, name))
        return pause is not None and now < pause.until

    def next_end(self, now: float) -> float:
        """When the first of the pauses ends that are under way; inf if none is."""
        return min((pause.until for pause in self._pauses.values() if now < pause.until), default=inf)

    def over(self, kind: str, now: float) -> list[str]:
        """The names of the writes of a kind that may be tried again, each returned once for a pause."""
        found = [write for write, pause in self._pauses.items() if write.kind == kind and now >= pause.until and not pause.over]
        for write in found:
            self._pauses[write] = self._pauses[write]._replace(over=True)
        return [write.name for write in found]
