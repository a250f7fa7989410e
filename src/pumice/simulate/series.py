"""Values over time, in a memory that does not grow with it.

A `Signal` holds a value and its integral. The integrals are noted at equal steps; when there are too many, every other note is dropped and
steps are twice as long. Between two notes stands the mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

MOST_NOTES = 1024


class SeriesKey(NamedTuple):
    series: str
    resource: str = ""
    queue: str = ""


class Signal:
    """A value that changes at instants."""

    __slots__ = ("_integral", "_since", "notes", "peak", "value")

    def __init__(self, now: float) -> None:
        self.value = 0.0
        self.peak = 0.0
        self._since = now
        self._integral = 0.0
        self.notes: list[float] = []  #: the integral at each step, the last ones

    def add(self, now: float, more: float) -> None:
        self.set(now, self.value + more)

    def set(self, now: float, value: float) -> None:
        self._integral += self.value * (now - self._since)
        self._since, self.value = now, value
        if value > self.peak:
            self.peak = value

    def integral(self, now: float) -> float:
        return self._integral + self.value * (now - self._since)


class Series:
    """All signals of a simulation, by key, noted together."""

    def __init__(self) -> None:
        self.signals: dict[SeriesKey, Signal] = {}
        self._start = 0.0
        self._step = 1.0
        self._steps = 0  #: that are behind
        self.next_step = 1.0

    def begin(self, now: float) -> None:
        """Nothing has been before."""
        self._start = now
        self._went_on()

    def _went_on(self) -> None:
        self.next_step = self._start + (self._steps + 1) * self._step

    def signal(self, key: SeriesKey, now: float) -> Signal:
        signal = self.signals.get(key)
        if signal is None:
            signal = self.signals[key] = Signal(now)
            signal.notes = [0.0] * self._steps
        return signal

    def value(self, key: SeriesKey) -> float:
        """What it is now; 0 of what nobody has told."""
        signal = self.signals.get(key)
        return 0.0 if signal is None else signal.value

    def advance(self, now: float) -> bool:
        """Note what has been before `now`; whether there was a step."""
        if now < self.next_step:
            return False
        while now >= (when := self.next_step):
            if self._steps == MOST_NOTES:
                self._halve()
                continue
            for signal in self.signals.values():
                signal.notes.append(signal.integral(when))
            self._steps += 1
            self._went_on()
        return True

    def _halve(self) -> None:
        for signal in self.signals.values():
            del signal.notes[::2]
        self._steps //= 2
        self._step *= 2
        self._went_on()

    def rows(self, end: float) -> Iterator[tuple[float, SeriesKey, float]]:
        """The mean over each step, in order of time; what does not change is not said again."""
        said: dict[SeriesKey, float] = {}
        for step, (begins, length) in enumerate(self._lengths(end)):
            for key, signal in self.signals.items():
                mean = round(self._gain(signal, step, end) / length, 9)
                if said.get(key) != mean:
                    said[key] = mean
                    yield begins, key, mean
        for key, value in said.items():
            if value:
                yield end, key, 0.0

    def means(self, key: SeriesKey, end: float) -> tuple[list[float], list[float]]:
        """The means over the steps, and how long these are."""
        lengths = [length for _, length in self._lengths(end)]
        return [self._gain(self.signals[key], step, end) / length for step, length in enumerate(lengths)], lengths

    def _lengths(self, end: float) -> Iterator[tuple[float, float]]:
        """When each step begins, and how long it is; the last one is cut at the end."""
        for step in range(self._steps + 1):
            begins = self._start + step * self._step
            if end > begins:
                yield begins, min(end - begins, self._step)

    def _gain(self, signal: Signal, step: int, end: float) -> float:
        before = signal.notes[step - 1] if step else 0.0
        return (signal.notes[step] if step < self._steps else signal.integral(end)) - before
