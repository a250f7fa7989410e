"""A canary decides and writes for one queue or namespace; everything else is only compared, and nobody else's pod is evicted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pumice.api.errors import InputError
from pumice.api.kinds import POD_GROUPS, PODS, PRIORITY_CLASSES, QUEUES
from pumice.cli.scheduler import scheduler as command
from pumice.live.scheduler.canary_share import CanaryShare, share_of
from pumice.live.scheduler.options import Options, Sharding
from pumice.live.scheduler.scheduler_replica import Replica, SchedulerSettings
from pumice.live.scheduler.sent_status import KEPT_GONE
from pumice.live.scheduler.shadow import Canary, Shadow
from pumice.live.scheduler.shadow_comparison import page
from pumice.scheduler.config.volcano_conf import DEFAULT
from pumice.scheduler.framework.policy import Policy
from tests.live.memory import MemoryServer
from tests.live.stories import PREEMPTING, policy, running, scheduling, server, until
from tests.live.virtual import VirtualClock, run
from tests.recording.test_shadow import place


def canary(*texts: str) -> Options:
    return Options(sharding=Sharding(share=share_of(texts)))


def two_queues(cpu: int = 4) -> MemoryServer:
    api = server("a", cpu=cpu)
    api.queue("ours")
    return api


def test_only_the_share_is_placed_and_nothing_else_is_written() -> None:
    async def story() -> None:
        api = two_queues()
        async with scheduling(api, options=canary("queue/ours")) as scheduler:
            await scheduler.synced.wait()
            api.gang("mine", pods=2, queue="ours")
            api.gang("theirs", pods=2)
            api.pod("early-0", 1, group="early")
            await asyncio.sleep(1)
            api.put(POD_GROUPS, "early", spec={"minMember": 1, "queue": "ours"})
            await until(lambda: len(api.placed()) == 3)
            await asyncio.sleep(60)
        assert set(api.placed()) == {"mine-0", "mine-1", "early-0"}
        assert not api.found(POD_GROUPS, "theirs").get("status"), "the other scheduler speaks of it"
        assert not any(status for status in (api.found(QUEUES, name)["status"].get("running") for name in ("default", "ours")))
        assert not api.breaches

    run(story())


def test_of_jobs_of_others_that_are_gone_nothing_is_kept() -> None:
    """Their pods outlive their PodGroups."""

    async def story() -> None:
        api = two_queues()
        async with scheduling(api, options=canary("queue/ours")) as scheduler:
            await scheduler.synced.wait()
            for number in range(3 * KEPT_GONE):
                api.gang(f"theirs-{number}", pods=1)
                await asyncio.sleep(0.1)
                api.remove(POD_GROUPS, f"theirs-{number}")
                await asyncio.sleep(0.1)
                place(api, f"theirs-{number}-0", "a")
                await asyncio.sleep(0.1)
                api.remove(PODS, f"theirs-{number}-0")
            await asyncio.sleep(60)
            assert len(scheduler._sent_status.others) <= KEPT_GONE
            share = scheduler._event_handlers._share
            assert share is not None and not share._early and not share._queues

    run(story())


@pytest.mark.parametrize(("share", "evicted"), [("queue/default", 1), ("queue/ours", 0)])
def test_it_evicts_pods_of_its_share_alone(share: str, evicted: int) -> None:
    async def story() -> None:
        api = two_queues(cpu=2)
        api.put(PRIORITY_CLASSES, "high", value=10)
        api.gang("low", pods=2, minimum=1)
        for number in range(2):
            place(api, f"low-{number}", "a")
        queue = share.removeprefix("queue/")
        async with scheduling(api, PREEMPTING, options=canary(share)) as scheduler:
            await scheduler.synced.wait()
            api.gang("high", pods=1, queue=queue, priorityClassName="high")
            await asyncio.sleep(60)
        assert len(api.deleted) == evicted

    run(story())


def test_the_rest_is_compared_and_the_report_says_what_is_whose() -> None:
    async def story() -> None:
        api = two_queues()
        options, share = canary("queue/ours"), share_of(["queue/ours"])
        shadow = Shadow(api, policy(), Options(), VirtualClock(), canary=share)
        async with scheduling(api, options=options) as scheduler, running(shadow):
            scheduler.watch(Canary(shadow.comparison))
            await asyncio.gather(scheduler.synced.wait(), shadow.synced.wait())
            api.gang("mine", pods=2, queue="ours")
            api.gang("theirs", pods=1)
            api.pod("loose", 0.1)
            await until(lambda: len(api.placed()) == 2)
            await asyncio.sleep(60)
            place(api, "theirs-0", "a")
            place(api, "loose", "a")
            await asyncio.sleep(5)
        keep_raw = shadow.comparison
        assert (keep_raw.bound, keep_raw.evicted, keep_raw.placed, keep_raw.sooner) == (2, 0, 2, 1)
        assert page(keep_raw).startswith("Pumice scheduled queue/ours: it placed 2 pods and evicted 0. Of the rest:\n")

    run(story())


def test_a_namespace_is_a_share_too_and_who_leaves_the_share_is_left_alone() -> None:
    async def story(act: Callable[[MemoryServer], Awaitable[None]], *share: str) -> dict[str, Any]:
        api = two_queues()
        async with scheduling(api, options=canary(*share)) as scheduler:
            await scheduler.synced.wait()
            await act(api)
            await asyncio.sleep(60)
        return api.placed()

    async def arrives(api: MemoryServer) -> None:
        api.gang("job", pods=1)

    async def leaves(api: MemoryServer) -> None:
        api.put(POD_GROUPS, "job", spec={"minMember": 1, "queue": "ours"})
        await asyncio.sleep(1)
        api.put(POD_GROUPS, "job", spec={"minMember": 1, "queue": "default"})
        api.pod("job-0", 1, group="job")
        api.pod("gone-0", 1, group="never")
        await asyncio.sleep(1)
        api.remove(PODS, "gone-0")

    assert set(run(story(arrives, "namespace/other"))) == set()
    assert set(run(story(arrives, "namespace/default"))) == {"job-0"}
    assert set(run(story(leaves, "queue/ours"))) == set()


class Readable(MemoryServer):
    def fenced(self, may_write: Callable[[], bool]) -> Readable:
        return self


def test_who_compares_follows_the_configuration_too(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    conf.write_text(DEFAULT)

    async def story() -> None:
        def load() -> Policy:
            return policy(conf.read_text())

        replica = Replica(None, SchedulerSettings(canary("queue/ours"), load, conf.read_text, conf_path=str(conf)))  # type: ignore[arg-type]
        working = asyncio.ensure_future(replica._work(Readable(), load()))  # type: ignore[arg-type]
        await until(lambda: replica._shadow is not None and replica._shadow.synced.is_set())
        conf.write_text(PREEMPTING)
        assert replica._shadow is not None and replica._scheduler is not None
        for each in (replica._scheduler, replica._shadow):
            await until(lambda each=each: each.policy.has_action("preempt"))  # type: ignore[misc]
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    run(story())


def test_a_share_is_named_by_kind() -> None:
    assert share_of([]) is None
    assert share_of(["queue/a", "namespace/b"]) == CanaryShare(frozenset({"a"}), frozenset({"b"}))
    with pytest.raises(InputError, match="write queue/NAME or namespace/NAME"):
        share_of(["research"])
    with pytest.raises(InputError, match="leave one of them out"):
        command.main(["--shadow", "--canary", "queue/a"], standalone_mode=False)
