"""HyperNodes and parts of gangs on a real API server: who stays together, where that is written, and what a change of the tree does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from live_scheduler import scheduling
from stage import Stage, until_true

from pumice.api.kinds import HYPER_NODES, POD_GROUPS, PODS, ObjectRef
from pumice.client.client import Client
from pumice.client.transport import PatchType, as_dict
from pumice.scheduler.config.volcano_conf import DEFAULT

pytestmark = pytest.mark.cluster
Play = Callable[..., None]

NEAR = DEFAULT + "  - name: network-topology-aware\n"
ANNOTATION = "volcano.sh/job-allocated-hypernode"


async def tree(stage: Stage, cpu: int = 2) -> None:
    """Two leaves of two nodes each below one spine."""
    for leaf, names in (("left", "ab"), ("right", "cd")):
        for name in names:
            await stage.node(name, cpu=cpu)
        await stage.hyper_node(leaf, 1, *(exactly("Node", f"{stage.namespace}-{name}") for name in names))
    await stage.hyper_node("spine", 2, *(exactly("HyperNode", f"{stage.namespace}-{leaf}") for leaf in ("left", "right")))


def exactly(kind: str, name: str) -> dict[str, Any]:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


def within(tier: int, mode: str = "hard") -> dict[str, Any]:
    return {"networkTopology": {"mode": mode, "highestTierAllowed": tier}}


async def allocated(stage: Stage, group: str) -> str:
    meta = as_dict(await stage.client.get(POD_GROUPS, ObjectRef(group, stage.namespace)))["metadata"]
    return str((meta.get("annotations") or {}).get(ANNOTATION, "")).removeprefix(f"{stage.namespace}-")


def leaves(stage: Stage, placed: dict[str, str]) -> set[str]:
    return {"left" if node.removeprefix(f"{stage.namespace}-") in "ab" else "right" for node in placed.values()}


def test_a_gang_stays_below_one_leaf_and_its_group_says_which(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, NEAR) as (stage, _):
            await tree(stage)
            await stage.gang("one", pods=3, cpu=1, asks=within(1))
            first = leaves(stage, await stage.until_placed("one", 3))
            await stage.gang("two", pods=4, cpu=1, asks=within(1))
            second = leaves(stage, await stage.until_placed("two", 4))
            assert len(first) == len(second) == 1 and first != second

            async def written() -> bool:
                return ({await allocated(stage, "one")}, {await allocated(stage, "two")}) == (first, second)

            await until_true(written)

    play(story)


def test_a_gang_that_no_leaf_can_take_waits_until_one_can(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, NEAR) as (stage, _):
            await tree(stage)
            await stage.gang("wide", pods=5, cpu=1, asks=within(1))
            await stage.until_phase("wide", "Inqueue")
            await asyncio.sleep(1.0)
            assert not await stage.placed()
            await stage.node("e", cpu=2)
            members = [exactly("Node", f"{namespace}-{name}") for name in "cde"]
            await client.patch(HYPER_NODES, ObjectRef(f"{namespace}-right"), {"spec": {"members": members}}, PatchType.MERGE)
            placed = await stage.until_placed("wide", 5)
            assert set(placed.values()) <= {f"{namespace}-{name}" for name in "cde"}

    play(story)


@pytest.mark.parametrize("asks", [within(2), within(1, "soft")], ids=["a tier up", "soft"])
def test_a_gang_that_may_goes_beyond_its_leaf(play: Play, asks: dict[str, Any]) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, NEAR) as (stage, _):
            await tree(stage)
            await stage.gang("wide", pods=5, cpu=1, asks=asks)
            assert leaves(stage, await stage.until_placed("wide", 5)) == {"left", "right"}

    play(story)


def test_leaves_are_found_by_the_labels_of_their_nodes(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, NEAR) as (stage, _):
            for name, rack in zip("abcd", ("1", "2", "1", "2"), strict=True):
                await stage.node(name, cpu=1)
                await stage.change_node(name, metadata={"labels": {"rack": f"{namespace}-{rack}"}})
            for rack in ("1", "2"):
                chosen = {"matchLabels": {"rack": f"{namespace}-{rack}"}}
                await stage.hyper_node(f"rack-{rack}", 1, {"type": "Node", "selector": {"labelMatch": chosen}})
            await stage.gang("pair", pods=2, cpu=1, asks=within(1))
            placed = {node.removeprefix(f"{namespace}-") for node in (await stage.until_placed("pair", 2)).values()}
            assert placed in ({"a", "c"}, {"b", "d"})

    play(story)


def test_a_pod_that_is_made_again_joins_the_others(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, NEAR) as (stage, _):
            await tree(stage, cpu=4)
            await stage.gang("team", pods=3, cpu=2, asks=within(1))
            before = leaves(stage, await stage.until_placed("team", 3))
            await stage.until_phase("team", "Running")
            await client.delete(PODS, ObjectRef("team-0", namespace))
            await stage.pod("team-again", 2, group="team")
            assert leaves(stage, await stage.until_placed("team-again", 1)) == before

    play(story)


def test_a_gang_whose_leaf_comes_back_under_another_name_goes_on(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, NEAR) as (stage, _):
            await tree(stage)
            await stage.gang("team", pods=4, cpu=1, asks=within(1))
            (leaf,) = leaves(stage, await stage.until_placed("team", 4))
            await client.delete(HYPER_NODES, ObjectRef(f"{namespace}-{leaf}"))
            await client.delete(PODS, ObjectRef("team-0", namespace))
            await stage.pod("team-again", 1, group="team")

            async def told() -> bool:
                return any("of its pods that run" in c.get("message", "") for c in (await stage.group("team")).get("conditions", ()))

            await until_true(told)
            names = "ab" if leaf == "left" else "cd"
            await stage.hyper_node("other", 1, *(exactly("Node", f"{namespace}-{name}") for name in names))
            assert leaves(stage, await stage.until_placed("team-again", 1)) == {leaf}

            async def noted() -> bool:
                return await allocated(stage, "team") == "other"

            await until_true(noted)

    play(story)


def test_each_part_of_a_gang_has_a_leaf_of_its_own(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, NEAR) as (stage, _):
            await tree(stage)
            policy = {"name": "part", "subGroupSize": 2, "matchLabelKeys": ["part"], **within(1)}
            await stage.gang("job", pods=0, cpu=1, minimum=4, asks={"subGroupPolicy": [policy], **within(2)})
            for number in range(4):
                await stage.pod(f"job-{number}", 1.5, group="job", labels={"part": f"p{number % 2}"})
            placed = await stage.until_placed("job", 4)
            parts = [leaves(stage, {name: placed[name] for name in (f"job-{part}", f"job-{part + 2}")}) for part in range(2)]
            assert sorted(map(len, parts)) == [1, 1] and parts[0] != parts[1]

    play(story)
