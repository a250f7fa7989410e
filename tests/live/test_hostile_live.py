"""What anybody may write, on a live loop: objects that cannot be taken in, and the faults that they bring to light."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from pumice.api.annotations import QUEUE_GATE
from pumice.api.kinds import POD_GROUPS, PODS, QUEUES
from pumice.client.odd_json import DEEPEST, readable
from pumice.client.transport import Transport
from pumice.live.scheduler import cycle_timing, decisions_to_requests
from pumice.scheduler.model.cluster import Cluster
from tests.live.faults import Faults, Faulty, Plan
from tests.live.stories import scheduling, server, until
from tests.live.virtual import run


def unwilling(cluster: Cluster, name: str, tries: list[float], clock: Any) -> Any:
    """The cluster's `put`, which fails for pods of this name until `tries` holds None."""
    put = cluster.put

    def instead(kind: str, item: Any, key: str = "") -> None:
        if kind == "Pod" and item.metadata.name == name and None not in tries:
            tries.append(clock.now())
            raise KeyError("a fault of ours")
        put(kind, item, key)

    return instead


def test_an_object_that_cannot_be_taken_in_is_tried_again_with_growing_pauses(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[Any] = []

    async def story() -> None:
        api = server("a")
        async with scheduling(api) as scheduler:
            monkeypatch.setattr(scheduler.cluster, "put", unwilling(scheduler.cluster, "odd-0", tries, scheduler.clock))
            api.gang("odd", pods=1)
            api.gang("other", pods=1)
            await until(lambda: len(api.placed("other")) == 1)
            await asyncio.sleep(100)
            pauses = [after - before for before, after in pairwise(tries)]
            assert len(tries) >= 5 and all(later > 1.5 * earlier for earlier, later in pairwise(pauses))
            assert f'pumice_objects_passed_over_total{{kind="Pod"}} {len(tries)}' in scheduler.metrics.page()
            assert sum("odd-0 was passed over" in record.message for record in caplog.records) == 1
            tries.append(None)
            await until(lambda: len(api.placed("odd")) == 1)
            scheduler.cluster.check()

    with caplog.at_level(logging.ERROR):
        run(story())


def test_it_is_tried_again_soon_though_idle_cycles_are_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[Any] = []

    async def story() -> None:
        monkeypatch.setattr(cycle_timing, "IDLE_LEAST_S", 1e6)
        async with scheduling(api := server("a")) as scheduler:
            await asyncio.sleep(5)
            monkeypatch.setattr(scheduler.cluster, "put", unwilling(scheduler.cluster, "odd-0", tries, scheduler.clock))
            api.pod("odd-0", 1)
            await asyncio.sleep(60)
            assert len(tries) >= 2

    run(story())


def test_it_is_forgotten_once_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[Any] = []

    async def story() -> None:
        api = server("a")
        async with scheduling(api) as scheduler:
            monkeypatch.setattr(scheduler.cluster, "put", unwilling(scheduler.cluster, "odd", tries, scheduler.clock))
            api.pod("odd", 1)
            await asyncio.sleep(5)
            api.remove(PODS, "odd")
            await asyncio.sleep(1)
            before = len(tries)
            await asyncio.sleep(200)
            assert len(tries) == before > 0

    run(story())


@pytest.mark.parametrize("depth", [3, DEEPEST, 50_000])
def test_what_is_nested_too_deep_for_a_decoder_reads_as_null(depth: int) -> None:
    raw = b'{"a": "]}\\"[{", "deep": ' + b'[{"b": ' * depth + b"1" + b"}]" * depth + b', "after": [1, {"c": 2}]}'
    read = msgspec.json.decode(readable(raw))
    assert (read["a"], read["after"]) == (']}"[{', [1, {"c": 2}])
    levels, inner = 0, read["deep"]
    while inner not in (None, 1):
        levels, inner = levels + 1, inner[0] if isinstance(inner, list) else inner["b"]
    assert levels == min(2 * depth, DEEPEST - 1)


def failing(monkeypatch: pytest.MonkeyPatch, name: str, is_odd: Callable[..., bool], tries: list[float], now: Callable[[], float]) -> None:
    """A function of `decisions_to_requests` fails for what is odd, until `tries` holds None."""
    right = getattr(decisions_to_requests, name)

    def instead(*arguments: Any) -> Any:
        if is_odd(*arguments) and None not in tries:
            tries.append(now())
            raise LookupError("a fault of ours")
        return right(*arguments)

    monkeypatch.setattr(decisions_to_requests, name, instead)


def test_a_bind_that_cannot_even_be_asked_for_holds_up_its_pod_alone_and_is_tried_again_with_growing_pauses(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[Any] = []

    async def story() -> None:
        api = server("a", "b")
        async with scheduling(api) as scheduler:
            failing(monkeypatch, "prerequisites", lambda cluster, task: task.name == "odd-0", tries, scheduler.clock.now)
            api.gang("odd", pods=1)
            api.gang("other", pods=2)
            await until(lambda: len(api.placed("other")) == 2, within_s=2)
            await asyncio.sleep(400)
            pauses = [after - before for before, after in pairwise(tries)]
            assert len(tries) >= 6 and all(later > 1.5 * earlier for earlier, later in pairwise(pauses[:5]))
            assert "pumice_failed_cycles_total 0" in scheduler.metrics.page()
            assert "BindPod default/odd-0 failed by a fault of ours" in caplog.text
            tries.append(None)
            await until(lambda: len(api.placed("odd")) == 1, within_s=150)
            scheduler.cluster.check()
        assert not api.breaches

    run(story(), 1000)


def test_a_status_that_cannot_be_made_up_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[Any] = []

    async def story() -> None:
        api = server("a", "b")
        async with scheduling(api) as scheduler:
            failing(monkeypatch, "next_status", lambda before, group, *_: group.job.name == "odd", tries, scheduler.clock.now)
            api.gang("odd", pods=1)
            api.gang("other", pods=2)
            await until(lambda: api.found(POD_GROUPS, "other").get("status", {}).get("running") == 2)
            await until(lambda: len(api.placed("odd")) == 1)
            tries.append(None)
            await until(lambda: api.found(POD_GROUPS, "odd").get("status", {}).get("running") == 1)

    run(story())


def test_the_status_of_a_queue_that_cannot_be_made_up_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[Any] = []

    async def story() -> None:
        api = server("a")
        async with scheduling(api) as scheduler:
            failing(monkeypatch, "queue_request", lambda cluster, name, *_: name == "default", tries, scheduler.clock.now)
            api.gang("train", pods=1)
            await until(lambda: len(api.placed("train")) == 1)
            await asyncio.sleep(30)
            assert "pumice_failed_cycles_total 0" in scheduler.metrics.page() and tries
            tries.append(None)
            api.gang("next", pods=1)
            await until(lambda: api.found(QUEUES, "default").get("status", {}).get("allocated", {}).get("cpu") == "2", within_s=200)

    run(story(), 1000)


class Baffling(Faulty):
    """Its answers to some calls are such that whoever asked falls over them."""

    def __init__(self, transport: Transport, kind: str, times: int) -> None:
        super().__init__(transport, Faults(Plan()))
        self.kind, self.times = kind, times

    async def _call(self, kind: str, make: Callable[[], Awaitable[Any]]) -> Any:
        if kind == self.kind and self.times:
            self.times -= 1
            raise LookupError("a fault of ours")
        return await super()._call(kind, make)


@pytest.mark.parametrize("kind", ["bind", "status of pods", "podgroups", "queues", "get"])
def test_a_request_that_trips_over_a_fault_of_ours_is_tried_again_and_the_others_go_on(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        api = server("a")
        async with scheduling(Baffling(api, kind, 2)) as scheduler:
            api.gang("train", pods=2)
            api.gang("great", pods=3)
            await until(lambda: len(api.placed("train")) == 2)
            await until(lambda: api.found(POD_GROUPS, "train").get("status", {}).get("running") == 2)
            if kind != "get":
                assert "pumice_requests_amiss_total{" in scheduler.metrics.page()
                assert "failed by a fault of ours: a fault of ours" in caplog.text
            scheduler.cluster.check()
        assert not api.breaches

    run(story())


def test_a_pod_that_cannot_even_be_read_after_a_fault_ends_no_program() -> None:
    async def story() -> None:
        api = server("a")
        server_that_baffles = Baffling(Baffling(api, "get", 2), "bind", 1)
        async with scheduling(server_that_baffles) as scheduler:
            api.gang("train", pods=1)
            await until(lambda: len(api.placed("train")) == 1)
            assert 'pumice_requests_amiss_total{request="ReadPod"} 2' in scheduler.metrics.page()

    run(story())


def test_a_gate_that_cannot_be_opened_for_a_fault_of_ours_is_opened_later() -> None:
    async def story() -> None:
        api = server("a")
        api.gang("train", pods=1)
        found = api.found(PODS, "train-0")
        gated = {"annotations": {**found["metadata"]["annotations"], QUEUE_GATE: "true"}}
        api.put(PODS, "train-0", metadata=gated, spec={**found["spec"], "schedulingGates": [{"name": QUEUE_GATE}]}, status=found["status"])
        async with scheduling(Baffling(api, "status of pods", 2)):
            await until(lambda: len(api.placed("train")) == 1)

    run(story())
