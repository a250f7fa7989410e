"""Several schedulers share the nodes by NodeShards."""

from __future__ import annotations

import asyncio

import pytest

from pumice.api.kinds import NODE_SHARDS
from pumice.live.scheduler.options import Options, Sharding
from tests.live.stories import scheduling, server, until
from tests.live.virtual import run


@pytest.mark.parametrize(("mode", "first", "then"), [("hard", ["b", "b"], 2), ("soft", ["b", "b"], 4), ("none", None, 4)])
def test_a_hard_shard_is_all_there_is_and_a_soft_one_comes_first(mode: str, first: list[str] | None, then: int) -> None:
    async def story() -> None:
        api = server("a", "b")
        api.put(NODE_SHARDS, "volcano", spec={"nodesDesired": ["b"]})
        async with scheduling(api, options=Options(sharding=Sharding(mode))):
            api.gang("one", pods=2)
            await until(lambda: len(api.placed()) == 2)
            assert first is None or sorted(api.placed().values()) == first
            api.gang("two", pods=2)
            await asyncio.sleep(5)
            assert len(api.placed()) == then
            if mode != "none":
                assert api.found(NODE_SHARDS, "volcano")["status"]["nodesInUse"] == ["b"]

    run(story())


def test_a_node_is_taken_over_when_its_former_scheduler_has_let_it_go() -> None:
    async def story() -> None:
        api = server("a", "b")
        api.put(NODE_SHARDS, "other", spec={"nodesDesired": ["a"]}, status={"nodesInUse": ["a", "b"]})
        api.put(NODE_SHARDS, "volcano", spec={"nodesDesired": ["b"]})
        async with scheduling(api, options=Options(sharding=Sharding("hard"))):
            api.gang("one", pods=2)
            await asyncio.sleep(3)
            assert not api.placed() and api.found(NODE_SHARDS, "volcano")["status"]["nodesToAdd"] == ["b"]
            api.put(NODE_SHARDS, "other", spec={"nodesDesired": ["a"]}, status={"nodesInUse": ["a"]})
            await until(lambda: sorted(api.placed().values()) == ["b", "b"])
            assert api.found(NODE_SHARDS, "volcano")["status"]["nodesInUse"] == ["b"]

    run(story())


def test_without_a_shard_of_ours_all_nodes_are_ours() -> None:
    async def story() -> None:
        api = server("a", "b")
        async with scheduling(api, options=Options(sharding=Sharding("hard", "unheard-of"))):
            api.gang("one", pods=4)
            await until(lambda: len(api.placed()) == 4)

    run(story())
