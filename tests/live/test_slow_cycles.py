"""A cycle that takes long silences nobody: the lease is renewed, changes wait their turn, what was decided is written."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest

from pumice.api.kinds import LEASES
from pumice.live.scheduler import single_writer
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from pumice.live.scheduler.single_writer import SingleWriter, on_a_thread
from pumice.scheduler.config.volcano_conf import DEFAULT, read_policy
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.registry import PLUGINS
from tests.live.seat import Seat
from tests.live.stories import server, until
from tests.live.virtual import VirtualClock, run

PATIENCE_S = 30.0  #: of the machine: a test that fails ends, too
T = TypeVar("T")
LONG_S = 100_000.0  #: of virtual time, which leaps while a thread works


class Gate:
    """Cycles stop at it while it is shut."""

    def __init__(self) -> None:
        self.reached, self._open = threading.Event(), threading.Event()
        self.threads: set[str] = set()  #: that have come to it

    def pass_through(self) -> None:
        self.threads.add(threading.current_thread().name)
        self.reached.set()
        assert self._open.wait(PATIENCE_S)

    def open(self) -> None:
        self._open.set()


def slow_policy(gate: Gate) -> Policy:
    class Slow(Plugin):
        name = "slow"
        reads_only_state = True

        def open(self, session: Session) -> None:
            super().open(session)
            if "default/first-0" in session.cluster.tasks:
                gate.pass_through()

    conf = DEFAULT.replace("- name: priority", "- name: priority\n  - name: slow")
    return read_policy(conf, {**PLUGINS, "slow": Slow})[0]


@asynccontextmanager
async def deciding(seat: Seat, gate: Gate) -> AsyncIterator[Scheduler]:
    """A replica that leads, in the middle of a cycle."""
    scheduler = Scheduler(seat, slow_policy(gate), Options(), VirtualClock(), where=on_a_thread)
    electing = asyncio.create_task(seat.election.run())
    await seat.election.won.wait()
    working = asyncio.create_task(scheduler.run())
    try:
        await until(gate.reached.is_set, LONG_S)
        yield scheduler
    finally:
        gate.open()
        for task in (working, electing):
            task.cancel()
        await asyncio.gather(working, electing, return_exceptions=True)


def test_the_lead_is_kept_through_a_cycle_of_a_minute_and_what_it_decided_is_written() -> None:
    async def story() -> None:
        api, gate = server("a", cpu=8), Gate()
        api.gang("first", pods=2)
        seat = Seat(api, "one")
        async with deciding(seat, gate):
            await asyncio.sleep(60)
            assert seat.election.leading() and not api.placed()
            gate.open()
            await until(lambda: len(api.placed("first")) == 2, LONG_S)
            assert api.found(LEASES, "volcano", "volcano-system")["spec"]["leaseTransitions"] == 0

    run(story(), LONG_S)


def test_no_change_is_made_under_a_cycle_and_none_is_lost() -> None:
    async def story() -> None:
        api, gate = server("a", cpu=8), Gate()
        api.gang("first", pods=1)
        async with deciding(Seat(api, "one"), gate) as scheduler:
            before = dict(scheduler.cluster.tasks)
            api.gang("second", pods=1)
            api.node("b", cpu=8)
            scheduler.adopt(slow_policy(gate))
            await asyncio.sleep(60)
            assert scheduler.cluster.tasks == before and "b" not in scheduler.cluster.nodes.rows
            gate.open()
            await until(lambda: len(api.placed()) == 2, LONG_S)
            assert "b" in scheduler.cluster.nodes.rows

    run(story(), LONG_S)


def test_who_wants_to_see_the_state_sees_it_between_two_cycles() -> None:
    async def story() -> None:
        api, gate = server("a", cpu=8), Gate()
        api.gang("first", pods=1)
        async with deciding(Seat(api, "one"), gate) as scheduler:
            seeing = asyncio.create_task(scheduler.look(lambda cluster: cluster.check()))
            await asyncio.sleep(60)
            assert not seeing.done() and scheduler.deciding_since is not None
            gate.open()
            await asyncio.wait_for(seeing, LONG_S)

    run(story(), LONG_S)


def test_why_jobs_at_rest_wait_is_found_out_where_cycles_run() -> None:
    async def story() -> None:
        api, gate = server("a", cpu=8), Gate()
        gate.open()
        api.gang("first", pods=9)
        async with deciding(Seat(api, "one"), gate):
            for number in range(3):
                api.gang(f"small-{number}", pods=1)
                await until(lambda count=number: len(api.placed()) > count, LONG_S)
        assert gate.threads == {"cycle"}

    run(story(), LONG_S)


def test_it_is_said_where_a_cycle_hangs(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_writer, "SLOW_S", 0.01)
    gate = Gate()

    async def story() -> None:
        working = asyncio.ensure_future(on_a_thread(gate.pass_through))
        while "pass_through" not in caplog.text:
            await asyncio.sleep(0)
        gate.open()
        await working

    with caplog.at_level(logging.WARNING):
        asyncio.run(asyncio.wait_for(story(), PATIENCE_S))
    assert "a cycle takes more than" in caplog.text


# ---- the single writer


def test_changes_come_in_their_order_after_who_has_the_state_for_himself() -> None:
    async def story() -> None:
        writer, made = SingleWriter(), list[int]()
        writer.change(made.append, 1)
        async with writer.alone():
            for number in range(2, 1000):
                writer.change(made.append, number)
            answer = asyncio.create_task(writer.changed(lambda: len(made)))
            await asyncio.sleep(0)
            assert made == [1]
        assert made == list(range(1, 1000)) and await answer == 999

    asyncio.run(story())


def test_a_change_that_fails_fails_for_who_waits_for_it_and_for_no_cycle() -> None:
    async def story() -> None:
        writer, made = SingleWriter(), list[int]()
        async with writer.alone():
            answer = asyncio.create_task(writer.changed(lambda: 1 // 0))
            await asyncio.sleep(0)
            writer.change(made.append, 1)
        assert made == [1] and not writer.is_taken
        with pytest.raises(ZeroDivisionError):
            await answer
        with pytest.raises(ZeroDivisionError):
            await writer.changed(lambda: 1 // 0)

    asyncio.run(story())


def test_a_cycle_that_fails_loses_no_change() -> None:
    async def story() -> None:
        writer, made = SingleWriter(on_a_thread), list[int]()
        with pytest.raises(ZeroDivisionError):
            async with writer.alone() as where:
                writer.change(made.append, 1)
                await where(lambda: 1 // 0)
        writer.change(made.append, 2)
        assert made == [1, 2]

    asyncio.run(story())


def test_a_cycle_and_its_requests_are_one_piece_of_work_on_a_thread() -> None:
    works: list[object] = []

    async def counted(work: Callable[[], T], /) -> T:
        works.append(work)
        return await on_a_thread(work)

    async def story() -> None:
        api = server("a", cpu=8)
        api.gang("first", pods=2)
        scheduler = Scheduler(api, read_policy(DEFAULT, PLUGINS)[0], Options(), VirtualClock(), where=counted)
        async with scheduler.started():
            assert len((await scheduler.step()).binds) == 2 and len(works) == 1

    run(story(), LONG_S)
