"""A lane of requests: many are sent at once, each namespace in its turn, and of those for the same key one at a time, the newest."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class RequestLane(Generic[T]):
    """A lane of requests. `act` sends one of them; if it raises, which only a bug may cause, `on_fault` is called and the lane goes on."""

    def __init__(self, width: int, act: Callable[[T], Awaitable[None]], on_fault: Callable[[T, Exception], Awaitable[None]]) -> None:
        self._width = width
        self._act = act
        self._on_fault = on_fault
        self._waiting: dict[Hashable, tuple[str, T]] = {}  #: namespace and request
        #: keys with a request and without a worker, by namespace, the one whose turn is next first; a dropped key may still be in it
        self._order: dict[str, deque[Hashable]] = {}
        self._flying: set[Hashable] = set()
        self._hands = 0  #: workers; there are as many as keys with work, and at most the width of the lane
        self._work_came = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    def put(self, key: Hashable, request: T, namespace: str = "") -> None:
        if key not in self._waiting and key not in self._flying:
            self._order.setdefault(namespace, deque()).append(key)
            self._work_came.set()
        self._waiting[key] = namespace, request
        self._empty.clear()

    def drop(self, key: Hashable) -> None:
        """Drop the request that waits for the key. A call that is under way goes on."""
        self._waiting.pop(key, None)
        self._settle()

    def state_of(self, key: Hashable) -> str:
        """Whether a request for the key waits or is under way; empty if there is none."""
        return "under way" if key in self._flying else "waits" if key in self._waiting else ""

    @property
    def idle(self) -> bool:
        return self._empty.is_set()

    @property
    def crowded(self) -> bool:
        """Whether requests wait while all workers are busy."""
        return bool(self._waiting) and self._hands == self._width

    async def emptied(self) -> None:
        await self._empty.wait()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as hands:
            while await self._work_came.wait():
                self._work_came.clear()
                for _ in range(min(len(self._waiting), self._width - self._hands)):
                    self._hands += 1
                    hands.create_task(self._work())

    async def _work(self) -> None:
        while self._order:
            namespace = next(iter(self._order))
            keys = self._order.pop(namespace)
            key = keys.popleft()
            if keys:
                self._order[namespace] = keys
            if key in self._flying or key not in self._waiting:
                continue
            self._flying.add(key)
            _, request = self._waiting.pop(key)
            try:
                await self._act(request)
            except Exception as error:
                await self._on_fault(request, error)
            finally:
                self._flying.discard(key)
                if key in self._waiting:
                    self._order.setdefault(self._waiting[key][0], deque()).append(key)
                self._settle()
        self._hands -= 1

    def _settle(self) -> None:
        if not self._waiting and not self._flying:
            self._empty.set()
