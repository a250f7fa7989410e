"""A queue of keyed work with so many hands: one call at a time for a key, and only the newest request of those that wait for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class WorkQueue(Generic[T]):
    """`act` must not raise but for bugs: those are given to `amiss`, and the lane goes on."""

    def __init__(self, width: int, act: Callable[[T], Awaitable[None]], amiss: Callable[[T, Exception], Awaitable[None]]) -> None:
        self._width = width
        self._act = act
        self._amiss = amiss
        self._waiting: dict[Hashable, T] = {}
        self._order: deque[Hashable] = deque()  #: keys that have work and no hand; a dropped one may still stand here
        self._flying: set[Hashable] = set()
        self._hands = 0  #: there are as many as there is work for
        self._work_came = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    def put(self, key: Hashable, request: T) -> None:
        if key not in self._waiting and key not in self._flying:
            self._order.append(key)
            self._work_came.set()
        self._waiting[key] = request
        self._empty.clear()

    def drop(self, key: Hashable) -> None:
        """Forget what waits for the key. What is under way goes on."""
        self._waiting.pop(key, None)
        self._settle()

    @property
    def idle(self) -> bool:
        return self._empty.is_set()

    async def emptied(self) -> None:
        await self._empty.wait()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as hands:
            while await self._work_came.wait():
                self._work_came.clear()
                for _ in range(min(len(self._order), self._width - self._hands)):
                    self._hands += 1
                    hands.create_task(self._work())

    async def _work(self) -> None:
        while self._order:
            key = self._order.popleft()
            if key in self._flying or key not in self._waiting:
                continue
            self._flying.add(key)
            request = self._waiting.pop(key)
            try:
                await self._act(request)
            except Exception as error:
                await self._amiss(request, error)
            finally:
                self._flying.discard(key)
                if key in self._waiting:
                    self._order.append(key)
                self._settle()
        self._hands -= 1

    def _settle(self) -> None:
        if not self._waiting and not self._flying:
            self._empty.set()
