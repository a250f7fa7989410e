"""The jobs that waited longest."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappush, heappushpop

from pumice.simulate.life import Life

MOST = 10


class Longest:
    """Of all jobs that it is told of, the ten that waited longest; of equal ones those that came first."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Life]] = []

    def add(self, life: Life, wait: float) -> None:
        entry = (wait, -life.number, life)
        if len(self._heap) < MOST:
            heappush(self._heap, entry)
        else:
            heappushpop(self._heap, entry)

    def __iter__(self) -> Iterator[tuple[Life, float]]:
        return iter([(life, wait) for wait, _, life in sorted(self._heap, reverse=True)])
