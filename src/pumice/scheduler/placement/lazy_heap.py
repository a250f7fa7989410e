"""A binary heap whose order may change meanwhile: two elements are compared only when one moves past the other, as they are then.

Volcano keeps its queues so. In a hierarchy, what one queue gets changes the order of its sibling queues too, but it counts only then.
"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class LazyHeap(Generic[T]):
    """`before(one, other)`: whether one comes out first."""

    def __init__(self, before: Callable[[T, T], bool]) -> None:
        self._before = before
        self._items: list[T] = []

    def __bool__(self) -> bool:
        return bool(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def push(self, item: T) -> None:
        items, place = self._items, len(self._items)
        items.append(item)
        while place and self._before(item, items[above := (place - 1) // 2]):
            items[place], items[above] = items[above], item
            place = above

    def pop(self) -> T:
        items = self._items
        last = items.pop()
        if not items:
            return last
        first, items[0] = items[0], last
        place = 0
        while (below := 2 * place + 1) < len(items):
            if below + 1 < len(items) and self._before(items[below + 1], items[below]):
                below += 1
            if not self._before(items[below], last):
                break
            items[place], items[below] = items[below], last
            place = below
        return first
