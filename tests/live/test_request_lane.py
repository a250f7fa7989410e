"""A lane of requests: namespaces take turns in it, and of the requests for one key the newest is sent."""

from __future__ import annotations

import asyncio

from pumice.live.scheduler.request_lane import RequestLane


def sent(*requests: tuple[str, str], width: int = 2) -> list[str]:
    """The keys, in the order in which they are sent, of (namespace, key) that are put while all workers are busy with the first."""

    async def story() -> list[str]:
        order: list[str] = []
        may_end = asyncio.Event()

        async def act(key: str) -> None:
            order.append(key)
            await may_end.wait()

        async def amiss(key: str, error: Exception) -> None:
            raise error

        lane: RequestLane[str] = RequestLane(width, act, amiss)
        running = asyncio.create_task(lane.run())
        for namespace, key in requests:
            lane.put(key, key, namespace)
        while len(order) < width:
            await asyncio.sleep(0)
        may_end.set()
        await lane.emptied()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return order

    return asyncio.run(story())


def test_a_namespace_with_many_requests_keeps_no_other_waiting() -> None:
    flood = [("flood", f"f{number}") for number in range(100)]
    order = sent(*flood, ("quiet", "q0"), ("other", "o0"), ("quiet", "q1"))
    assert order[:6] == ["f0", "q0", "o0", "f1", "q1", "f2"] and len(order) == 103


def test_within_a_namespace_first_come_is_first_sent() -> None:
    assert sent(*[("one", str(number)) for number in range(5)]) == ["0", "1", "2", "3", "4"]
