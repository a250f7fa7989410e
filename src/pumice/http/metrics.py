"""Counters, gauges and histograms in the text form that Prometheus reads (`render`).

A metric is a family: its children differ in the values of its labels, which are given by position. Nothing here knows what is measured. A
page may be written while another thread measures.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import cast

Labels = tuple[str, ...]
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exponential(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Upper bounds of buckets, each `factor` times the one before."""
    return tuple(first * factor**power for power in range(count))


class Family:
    """What all metrics share."""

    kind = ""

    def __init__(self, name: str, text: str, labels: Sequence[str] = ()) -> None:
        self.name = name
        self.text = text
        self.labels = tuple(labels)

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.text}"
        yield f"# TYPE {self.name} {self.kind}"
        yield from self.samples()

    def samples(self) -> Iterator[str]:
        raise NotImplementedError

    def _line(self, name: str, values: Labels, number: float, more: Iterable[tuple[str, str]] = ()) -> str:
        pairs = [*zip(self.labels, values, strict=True), *more]
        inside = ",".join(f'{key}="{_escaped(value)}"' for key, value in pairs)
        return f"{name}{{{inside}}} {_number(number)}" if inside else f"{name} {_number(number)}"


class Numbers(Family):
    """A metric of which each child is a number."""

    _values: dict[Labels, float]

    def __len__(self) -> int:
        return len(self._values)

    def value(self, *values: str) -> float:
        return self._values.get(values, 0.0)

    def replace(self, values: dict[Labels, float]) -> None:
        """Set all children at once. Children that are not named are dropped."""
        self._values = values

    def samples(self) -> Iterator[str]:
        return (self._line(self.name, values, number) for values, number in list(self._values.items()))


class Counter(Numbers):
    """A metric that only grows."""

    kind = "counter"

    def __init__(self, name: str, text: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, text, labels)
        self._values = {} if labels else {(): 0.0}

    def add(self, *values: str, by: float = 1.0) -> None:
        self._values[values] = self._values.get(values, 0.0) + by

    def keep(self, wanted: Callable[[Labels], bool]) -> None:
        """Forget the children whose labels are not wanted any more."""
        self._values = {values: number for values, number in self._values.items() if wanted(values)}


class Gauge(Numbers):
    """A metric that can take any number."""

    kind = "gauge"

    def __init__(self, name: str, text: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, text, labels)
        self._values = {}

    def set(self, number: float, *values: str) -> None:
        self._values[values] = number

    def drop(self, *values: str) -> None:
        self._values.pop(values, None)


class Histogram(Family):
    """Counts of observations by size."""

    kind = "histogram"

    def __init__(self, name: str, text: str, bounds: Sequence[float], labels: Sequence[str] = ()) -> None:
        super().__init__(name, text, labels)
        self._bounds = tuple(bounds)
        self._values: dict[Labels, tuple[list[int], list[float]]] = {}  #: by labels: counts per bucket, and the sum

    def observe(self, number: float, *values: str, times: int = 1) -> None:
        known = self._values.get(values)
        if known is None:
            known = self._values[values] = [0] * (len(self._bounds) + 1), [0.0]
        counts, total = known
        counts[bisect_left(self._bounds, number)] += times
        total[0] += number * times

    def count(self, *values: str) -> int:
        return sum(self._values[values][0]) if values in self._values else 0

    def samples(self) -> Iterator[str]:
        for values, (counts, total) in list(self._values.items()):
            below = 0
            for bound, count in zip((*map(_number, self._bounds), "+Inf"), counts, strict=True):
                below += count
                yield self._line(f"{self.name}_bucket", values, below, [("le", bound)])
            yield self._line(f"{self.name}_sum", values, total[0])
            yield self._line(f"{self.name}_count", values, below)


class Declared:
    """Metrics that are attributes of a class, made by the functions below. Each object of the class has its own, in this order."""

    def __init__(self) -> None:
        self.declared: list[Family] = []
        for name, make in vars(type(self)).items():
            if isinstance(make, partial):
                self.declared.append(family := make())
                setattr(self, name, family)


def counter(name: str, text: str, *labels: str) -> Counter:
    return cast(Counter, partial(Counter, name, text, labels))


def gauge(name: str, text: str, *labels: str) -> Gauge:
    return cast(Gauge, partial(Gauge, name, text, labels))


def histogram(name: str, text: str, bounds: Sequence[float], *labels: str) -> Histogram:
    return cast(Histogram, partial(Histogram, name, text, bounds, labels))


def render(families: Iterable[Family]) -> str:
    """The page that a scrape gets."""
    return "".join(f"{line}\n" for family in families for line in family.lines())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
