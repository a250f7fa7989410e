"""What the server refuses is asked for ever more rarely, told once, and done as soon as it may be."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from pumice.api.annotations import QUEUE_GATE
from pumice.api.kinds import EVENTS, NODE_SHARDS, POD_GROUPS, PODS, QUEUES, Kind, ObjectRef
from pumice.client.client import is_refusal
from pumice.client.failures import ApiError, NoAnswer
from pumice.live.scheduler import cycle_timing
from pumice.live.scheduler.options import Options, Sharding
from pumice.live.scheduler.sender import BACKOFF
from pumice.live.scheduler.write_backoff import WriteBackoff
from tests.calls import lines
from tests.live.faults import Faults, Faulty
from tests.live.memory import MemoryServer
from tests.live.seat import CALM
from tests.live.stories import scheduling, server, until
from tests.live.virtual import run

FORBIDDEN = ApiError(403, "Forbidden", "the role lacks it")
GONE = ApiError(404, "NotFound", "there is none")


class Refusing:
    """A server that refuses some writes until it is told not to."""

    def __init__(self, api: MemoryServer, verb: str, resource: Kind, error: Exception = FORBIDDEN) -> None:
        self.tries: list[float] = []
        self.on = True
        self._what, self._error = (verb, resource), error
        api.before_write = self._before

    def _before(self, verb: str, resource: Kind, name: str) -> None:
        if (verb, resource) == self._what and self.on:
            self.tries.append(asyncio.get_running_loop().time())
            raise self._error


def keep_raw(api: MemoryServer) -> list[Any]:
    return [event for event in api.all(EVENTS) if event["reason"] == "WriteRefused"]


def gang(api: MemoryServer) -> Callable[[], bool]:
    api.gang("train", pods=1)
    return lambda: api.found(POD_GROUPS, "train").get("status", {}).get("phase") == "Running"


def held(api: MemoryServer) -> Callable[[], bool]:
    api.gang("train", pods=1)
    return lambda: api.found(QUEUES, "default")["status"].get("allocated", {}).get("cpu") == "1"


def mark(api: MemoryServer) -> Callable[[], bool]:
    api.gang("large", pods=1, cpu=9)
    return lambda: bool(api.found(PODS, "large-0")["status"].get("conditions"))


def gate(api: MemoryServer) -> Callable[[], bool]:
    api.gang("train", pods=1)
    there = api.found(PODS, "train-0")
    annotated = {"annotations": {**there["metadata"]["annotations"], QUEUE_GATE: "true"}}
    gated = {**there["spec"], "schedulingGates": [{"name": QUEUE_GATE}]}
    api.put(PODS, "train-0", metadata=annotated, spec=gated, status=there["status"])
    return lambda: bool(api.placed("train-0"))


def shard(api: MemoryServer) -> Callable[[], bool]:
    api.put(NODE_SHARDS, "volcano", spec={"nodesDesired": ["a"]})
    return lambda: api.found(NODE_SHARDS, "volcano").get("status", {}).get("nodesInUse") == ["a"]


CASES = [
    ("update", POD_GROUPS, gang),
    ("update", QUEUES, held),
    ("update", PODS, mark),
    ("patch", PODS, gate),
    ("update", NODE_SHARDS, shard),
]


@pytest.mark.parametrize(("error", "told"), [(FORBIDDEN, 1), (GONE, 0)], ids=["forbidden", "gone"])
@pytest.mark.parametrize(("verb", "resource", "need"), CASES, ids=lambda case: getattr(case, "__name__", None))
def test_a_write_that_is_refused_again_and_again_is_tried_ever_more_rarely_until_it_is_done(
    verb: str,
    resource: Kind,
    need: Callable[[MemoryServer], Callable[[], bool]],
    error: ApiError,
    told: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What is gone is shown by the watch soon, and nobody can mend it: it is not told."""

    async def story() -> None:
        api = server("a")
        done = need(api)
        refusing = Refusing(api, verb, resource, error)
        async with scheduling(api, options=Options(sharding=Sharding("soft"))):
            await asyncio.sleep(600)
            assert 5 < len(refusing.tries) < 30 and len(keep_raw(api)) == told and not done()
            refusing.on = False
            await until(done, within_s=130)

    with caplog.at_level(logging.WARNING):
        run(story(), limit_s=5000)
    assert caplog.text.count("is tried again with pauses") == told


def test_a_refusal_that_passes_delays_little() -> None:
    async def story() -> None:
        api = server("a")
        done = gang(api)
        refusing = Refusing(api, "update", POD_GROUPS)
        async with scheduling(api):
            await until(lambda: bool(refusing.tries))
            refusing.on = False
            await until(done, within_s=5)

    run(story())


def test_a_status_that_is_too_large_is_written_later_though_the_role_lets_nobody_read_its_object() -> None:
    class Unreadable(MemoryServer):
        async def get(self, resource: Kind, ref: ObjectRef) -> bytes:
            if resource == POD_GROUPS:
                raise FORBIDDEN
            return await super().get(resource, ref)

    async def story() -> None:
        api = Unreadable()
        api.queue()
        api.node("a")
        done = gang(api)
        refusing = Refusing(api, "update", POD_GROUPS, ApiError(413, "RequestEntityTooLarge", "limit is 3145728"))
        async with scheduling(api):
            await asyncio.sleep(60)
            assert refusing.tries and not done()
            refusing.on = False
            await until(done, within_s=130)

    run(story())


class Misread(Faulty):
    """Whoever reads a pod fails, or is given one of long ago."""

    def __init__(self, api: MemoryServer, *, fails: bool) -> None:
        super().__init__(api, Faults(CALM))
        self.tries: list[float] = []
        self.on = True
        self._fails = fails

    async def get(self, resource: Kind, ref: ObjectRef) -> bytes:
        found = await super().get(resource, ref)
        if not self.on:
            return found
        self.tries.append(asyncio.get_running_loop().time())
        if self._fails:
            raise ApiError(500, "InternalError", "no disk")
        pod = json.loads(found)
        pod["metadata"]["resourceVersion"] = "1"
        pod["spec"]["nodeName"] = "gone"
        return json.dumps(pod).encode()


@pytest.mark.parametrize(("fails", "at_once"), [(True, 1), (False, 2)])
def test_a_pod_that_is_not_read_well_after_its_bind_was_refused_is_asked_for_ever_more_rarely(fails: bool, at_once: int) -> None:
    async def story() -> None:
        api = server("a")
        api.gang("train", pods=1)
        refusing, misread = Refusing(api, "create", PODS), Misread(api, fails=fails)
        async with scheduling(misread):
            await until(lambda: len(misread.tries) > 8)
            pauses = [after - before for before, after in pairwise(misread.tries[at_once - 1 :])]
            assert pauses == pytest.approx([BACKOFF.delay_s(attempt, 0.5) for attempt in range(len(pauses))], abs=0.01)
            refusing.on = misread.on = False
            await until(lambda: bool(api.placed("train-0")), within_s=30)

    run(story())


def test_a_group_that_is_made_anew_under_its_name_does_not_wait_for_what_the_old_one_was_refused() -> None:
    async def story() -> None:
        api = server("a")
        gang(api)
        refusing = Refusing(api, "update", POD_GROUPS)
        async with scheduling(api):
            await asyncio.sleep(900)
            api.remove(PODS, "train-0")
            api.remove(POD_GROUPS, "train")
            await asyncio.sleep(5)
            refusing.on = False
            await until(gang(api), within_s=5)

    run(story(), limit_s=2000)


def test_it_is_tried_again_after_its_pause_though_idle_cycles_are_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        monkeypatch.setattr(cycle_timing, "IDLE_LEAST_S", 1e6)
        api = server("a")
        done = gang(api)
        refusing = Refusing(api, "update", POD_GROUPS)
        async with scheduling(api):
            await until(lambda: len(api.placed("train")) == 1)
            await asyncio.sleep(60)
            assert len(refusing.tries) >= 3
            refusing.on = False
            await until(done, within_s=130)

    run(story())


def test_that_many_are_refused_costs_each_of_them_no_more() -> None:
    def refuse(count: int) -> None:
        pauses = WriteBackoff()
        for number in range(count):
            pauses.refused("Pod", f"uid-{number}", number / count)

    few, many = (lines(partial(refuse, count)) for count in (30, 300))
    assert many < 11 * few


def test_pauses_double_and_are_forgiven() -> None:
    pauses = WriteBackoff()
    assert not pauses.holds("Queue", "q", 0.0)
    assert pauses.refused("Queue", "q", 0.0) and not pauses.refused("Queue", "other", 0.0) and pauses.refused("Pod", "q", 0.0)
    assert pauses.holds("Queue", "q", 1.9) and not pauses.holds("Queue", "q", 2.0)
    assert pauses.over("Queue", 1.0) == [] and pauses.over("Queue", 2.0) == ["q", "other"] and pauses.over("Queue", 3.0) == []
    pauses.refused("Queue", "q", 2.0)
    assert pauses.holds("Queue", "q", 5.9) and not pauses.holds("Queue", "q", 6.0)
    pauses.forget("Queue", "q")
    assert not pauses.holds("Queue", "q", 2.0)
    assert pauses.longer("PodGroup", "gone", 2.0) == 2.0 and pauses.refused("PodGroup", "train", 2.0), "what is gone hides no refusal"
    assert pauses.refused("Queue", "q", 1000.0) and not pauses.holds("Queue", "q", 1002.0), "long ago"


@pytest.mark.parametrize(
    ("code", "refusal"), [(400, True), (403, True), (422, True), (401, False), (404, False), (409, False), (429, False), (500, False)]
)
def test_what_came_too_late_or_was_lost_is_no_refusal(code: int, refusal: bool) -> None:
    assert is_refusal(ApiError(code)) == refusal and not is_refusal(NoAnswer("cut", sent=True))
