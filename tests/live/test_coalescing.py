"""While binds are under way the event loop takes together what arrives within a pause; at other times it waits for nothing."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from pumice.live.coalescing_loop import PAUSE_S, CoalescingLoop, CoalescingSelector, coalescing_while
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from tests.live.memory import MemoryServer
from tests.live.stories import policy, running, until


class Line:
    """Two connections that a selector reads. While the selector sleeps, something arrives on the second one."""

    def __init__(self, selector: CoalescingSelector, stack: ExitStack) -> None:
        self.slept: list[float] = []
        self._pairs = [tuple(map(stack.enter_context, socket.socketpair())) for _ in range(2)]
        for number, (reader, _) in enumerate(self._pairs):
            selector.register(reader, 1, number)
        self.arrives(0)

    def arrives(self, number: int) -> None:
        self._pairs[number][1].send(b"x")

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.arrives(1)


@pytest.fixture
def selector() -> Iterator[CoalescingSelector]:
    with CoalescingSelector() as made:
        yield made


@pytest.fixture
def line(selector: CoalescingSelector, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    with ExitStack() as stack:
        made = Line(selector, stack)
        monkeypatch.setattr(time, "sleep", made.sleep)
        yield made


@pytest.mark.parametrize(
    ("is_loaded", "timeout", "slept", "got"),
    [
        (True, None, [PAUSE_S], [0, 1]),
        (True, 60.0, [PAUSE_S], [0, 1]),
        (True, PAUSE_S / 3, [PAUSE_S / 3], [0, 1]),
        (True, 0.0, [], [0]),
        (False, None, [], [0]),
        (False, 60.0, [], [0]),
    ],
)
def test_under_load_a_selector_takes_what_arrives_in_a_pause_unless_there_is_work(
    selector: CoalescingSelector, line: Line, is_loaded: bool, timeout: float | None, slept: list[float], got: list[int]
) -> None:
    selector.loads = [lambda: False, lambda: is_loaded]
    ready = selector.select(timeout)
    assert line.slept == slept
    assert sorted(key.data for key, _ in ready) == got


def test_the_pause_counts_as_waiting(selector: CoalescingSelector, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[Any] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    monkeypatch.setattr(CoalescingSelector.__base__, "select", lambda self, timeout: waited.append(timeout))
    selector.loads = [lambda: True]
    selector.select(1.0)
    selector.select(PAUSE_S)
    selector.select(None)
    assert waited == [PAUSE_S, 1.0 - PAUSE_S, PAUSE_S, 0.0, PAUSE_S, None]


class SlowBinds(MemoryServer):
    """A server in memory that takes some time for a bind."""

    def __init__(self) -> None:
        super().__init__()
        self.is_binding = asyncio.Event()
        self.answers = asyncio.Event()

    async def create(self, *args: Any, subresource: str = "", **more: Any) -> bytes:
        if subresource == "binding":
            self.is_binding.set()
            await self.answers.wait()
        return await super().create(*args, subresource=subresource, **more)


def test_a_scheduler_coalesces_only_while_it_binds() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, CoalescingLoop)

        def is_loaded() -> bool:
            return any(loaded() for loaded in loop.selector.loads)

        api = SlowBinds()
        api.queue("root")
        api.queue()
        api.node("a", cpu=4)
        async with running(Scheduler(api, policy(), Options())) as scheduler:
            await scheduler.synced.wait()
            api.gang("one", pods=1)
            assert not is_loaded()
            await api.is_binding.wait()
            assert is_loaded()
            api.answers.set()
            await until(lambda: len(api.placed("one")) == 1 and not is_loaded(), within_s=20)
            assert loop.selector.loads
        assert not loop.selector.loads

    with asyncio.Runner(loop_factory=CoalescingLoop) as runner:
        runner.run(story())


def test_other_event_loops_do_not_coalesce() -> None:
    async def story() -> str:
        with coalescing_while(lambda: True):
            await asyncio.sleep(0)
        return "done"

    assert asyncio.run(story()) == "done"
