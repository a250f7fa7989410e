"""A scheduler under a role like kube-scheduler's: it reads and makes what its policy needs, and waits for nothing else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from pumice.api.kinds import HYPER_NODES, POD_GROUPS, QUEUES, Kind
from pumice.client.failures import ApiError
from pumice.client.transport import ListScope, Page
from pumice.live.lifecycle import first
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from pumice.live.scheduler.required_queues import make_queues
from pumice.live.scheduler.scheduler_replica import Replica, SchedulerSettings
from tests.kube_scheduler.stage import policy as kube_policy
from tests.live.memory import MemoryServer
from tests.live.stories import policy, running, until
from tests.live.virtual import START, VirtualClock, run

VOLCANO_KINDS = {QUEUES, POD_GROUPS, HYPER_NODES}


class Forbidding(MemoryServer):
    """Lets these resources be neither read nor made; `asked` are those of them that somebody tried."""

    def __init__(self, forbidden: set[Kind]) -> None:
        super().__init__()
        self.forbidden = forbidden
        self.asked: list[str] = []
        self.before_write = lambda verb, resource, name: self._guard(resource)

    def _guard(self, resource: Kind) -> None:
        if resource in self.forbidden:
            self.asked.append(resource.plural)
            raise ApiError(403, "Forbidden", f"cannot use {resource.plural}")

    async def get(self, resource: Kind, ref: object) -> bytes:
        self._guard(resource)
        return await super().get(resource, ref)  # type: ignore[arg-type]

    async def pages(self, scope: ListScope, *, limit: int = 500, not_older: int = 0) -> AsyncIterator[Page]:
        self._guard(scope.resource)
        async for page in super().pages(scope, limit=limit, not_older=not_older):
            yield page


def test_profiles_alone_read_nothing_of_volcano_and_bind_at_once() -> None:
    async def story() -> None:
        api = Forbidding(VOLCANO_KINDS)
        api.node("a")
        api.pod("p", scheduler="default-scheduler")
        options = Options(schedulers=("default-scheduler",))
        async with running(Scheduler(api, kube_policy(), options, VirtualClock())):
            await until(lambda: api.placed() == {"p": "a"})
            assert asyncio.get_running_loop().time() - START < 1
            assert api.asked == []

    run(story())


def test_a_policy_that_needs_more_reads_more_once_it_is_adopted() -> None:
    async def story() -> None:
        api = MemoryServer()
        api.node("a")
        api.queue()
        api.gang("train", 2)
        async with running(
            Scheduler(api, kube_policy(), Options(schedulers=("volcano", "default-scheduler")), VirtualClock())
        ) as scheduler:
            await asyncio.sleep(5)
            assert not scheduler.cluster.queues and not api.placed()
            scheduler.adopt(policy())
            await until(lambda: len(api.placed("train")) == 2)

    run(story())


def test_what_the_role_forbids_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def story() -> None:
        api = Forbidding({HYPER_NODES})
        api.node("a")
        api.queue()
        api.gang("train", 1)
        async with running(Scheduler(api, policy(), Options(), VirtualClock())):
            await until(lambda: api.placed() == {"train-0": "a"})
            assert asyncio.get_running_loop().time() - START < 1

    run(story())
    assert caplog.text.count("our role does not let these be read, and we do without: hypernodes") == 1


def test_what_the_role_forbids_is_asked_for_seldom_and_is_read_within_minutes_once_it_is_allowed() -> None:
    async def story() -> None:
        api = Forbidding({HYPER_NODES})
        api.put(HYPER_NODES, "rack", spec={"tier": 1, "members": []})
        async with running(Scheduler(api, policy(), Options(), VirtualClock())) as scheduler:
            await until(scheduler.synced.is_set)
            await asyncio.sleep(3600)
            assert len(api.asked) < 36, "it was some 160 times"
            api.forbidden.clear()
            await asyncio.sleep(300)
            assert "rack" in scheduler.cluster.of("HyperNode")

    run(story(), limit_s=7200)


def test_what_is_waited_for_is_told_after_a_second(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def story() -> None:
        api = Forbidding(set())
        api.node("a")
        api.queue()
        outage = asyncio.create_task(api.outage(5, forgets=False))
        await asyncio.sleep(0)
        async with running(Scheduler(api, policy(), Options(), VirtualClock())) as scheduler:
            await until(scheduler.synced.is_set)
        await outage

    run(story())
    keep_raw = [record.getMessage() for record in caplog.records if "waiting until these have been read" in record.getMessage()]
    assert len(keep_raw) == 1 and "nodes (connection refused" in keep_raw[0]


def test_queues_that_the_role_lets_nobody_make_are_told_of_at_once(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        await make_queues(Forbidding({QUEUES}), "default", VirtualClock())
        assert asyncio.get_running_loop().time() == START

    run(story())
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "our role does not let us make queue root, so it must be there",
        "our role does not let us make queue default, so it must be there",
    ]


def test_a_replica_is_not_ready_while_it_reads_the_cluster() -> None:
    found: list[str] = []

    class Noting(MemoryServer):
        async def pages(self, scope: ListScope, *, limit: int = 500, not_older: int = 0) -> AsyncIterator[Page]:
            found.append(replica.ready())
            async for page in super().pages(scope, limit=limit, not_older=not_older):
                yield page

    replica = Replica(None, SchedulerSettings(Options(), policy, lambda: ""))  # type: ignore[arg-type]

    async def story() -> None:
        api = Noting()
        for name in ("root", "default"):
            api.queue(name)
        working = asyncio.ensure_future(replica._work(api, policy()))  # type: ignore[arg-type]
        await first(until(lambda: bool(found) and not replica.ready()), working)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    run(story())
    assert {*found} == {"the cluster is being read"}


@pytest.mark.parametrize("refusals", [3, 5, 10_000])
def test_nothing_waits_long_for_queues_whose_webhooks_do_not_answer(refusals: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pumice.live.scheduler")

    async def story() -> None:
        api = MemoryServer()
        api.node("a")
        api.queue("other")
        api.gang("train", 1, queue="other")
        left = refusals

        def refuse(verb: str, resource: Kind, name: str) -> None:
            nonlocal left
            if resource == QUEUES and verb == "create" and left:
                left -= 1
                raise ApiError(500, "InternalError", "failed calling webhook")

        api.before_write = refuse
        replica = Replica(None, SchedulerSettings(Options(), policy, lambda: ""))  # type: ignore[arg-type]
        working = asyncio.ensure_future(replica._work(api, policy()))  # type: ignore[arg-type]
        await first(asyncio.sleep(1), working)
        assert replica.ready() == "the first queues are being made"
        await first(until(lambda: bool(api.placed())), working)
        await first(until(lambda: not replica.ready()), working)
        assert (len(api.all(QUEUES)) == 3) == (refusals < 10_000)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    run(story())
    keep_raw = [record.getMessage() for record in caplog.records if "queue " in record.getMessage()]
    told = ["queue root was not made, and is tried again and again: 500 InternalError: failed calling webhook", "queue root is there"]
    assert keep_raw == {3: [], 5: told, 10_000: told[:1]}[refusals]
    ready_without = "the first queues could not be made for 120 s: this replica is ready without them"
    assert [record.getMessage() for record in caplog.records].count(ready_without) == (refusals == 10_000)
