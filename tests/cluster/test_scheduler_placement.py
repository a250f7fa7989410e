"""Where pods go on a real API server: by affinities, ports, roles, trees of queues, nodes that go; kube-scheduler's pods beside them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from live_scheduler import CAPACITY, events, scheduling
from stage import Stage, until_true

from pumice.api.kinds import NODES, PODS, QUEUES, ObjectRef
from pumice.client.client import Client
from pumice.client.transport import PatchType, as_dict
from pumice.scheduler.config.volcano_conf import DEFAULT

pytestmark = pytest.mark.cluster
Play = Callable[..., None]

HOST = "kubernetes.io/hostname"
HIERARCHY = CAPACITY.replace("  - name: capacity\n", "  - name: capacity\n    enableHierarchy: true\n")
KUBE = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def near(namespace: str, *, apart: bool) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": namespace}}, "topologyKey": HOST}
    return {"podAntiAffinity" if apart else "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


async def machines(stage: Stage, *names: str, cpu: int = 4) -> None:
    for name in names:
        full = await stage.node(name, cpu=cpu)
        await stage.change_node(name, metadata={"labels": {HOST: full}})


async def app(stage: Stage, name: str, pods: int, minimum: int | None = None, **spec: Any) -> None:
    await stage.gang(name, pods=pods, cpu=1, minimum=minimum, labels={"app": stage.namespace}, **spec)


def test_pods_that_belong_together_share_a_node_and_those_that_do_not_have_one_each(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace) as (stage, _):
            await machines(stage, "a", "b", "c")
            await app(stage, "apart", pods=3, affinity=near(namespace, apart=True))
            assert len(set((await stage.until_placed("apart", 3)).values())) == 3
            await stage.clear()
            await machines(stage, "d", "e")
            await app(stage, "together", pods=4, affinity=near(namespace, apart=False))
            assert len(set((await stage.until_placed("together", 4)).values())) == 1

    play(story)


def test_a_port_of_a_node_is_given_once(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        port = [{"name": "c", "image": "x", "ports": [{"containerPort": 80, "hostPort": 28080}]}]
        async with scheduling(client, namespace) as (stage, _):
            await machines(stage, "a", "b")
            await stage.gang("web", pods=3, cpu=1, minimum=2, containers=port, hostNetwork=False)
            assert len(set((await stage.until_placed("web", 2)).values())) == 2
            (waits,) = set(await stage.pods()) - set(await stage.placed())
            await machines(stage, "c")
            assert (await stage.until_placed(waits, 1))[waits] == f"{namespace}-c"

    play(story)


def test_pods_spread_over_nodes(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        selector = {"matchLabels": {"app": namespace}}
        spread = [{"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]
        async with scheduling(client, namespace) as (stage, _):
            await machines(stage, "a", "b", cpu=8)
            await app(stage, "even", pods=6, topologySpreadConstraints=spread)
            assert sorted(Counter((await stage.until_placed("even", 6)).values()).values()) == [3, 3]

    play(story)


def test_each_role_of_a_gang_needs_its_minimum(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace) as (stage, _):
            await machines(stage, "a", cpu=3)
            await stage.gang("job", pods=0, cpu=1, minimum=3, asks={"minTaskMember": {"ps": 1, "worker": 2}})
            for number in range(3):
                await stage.pod(f"job-worker-{number}", 1, group="job", annotations={"volcano.sh/task-spec": "worker"})
            await stage.until_phase("job", "Inqueue")
            await asyncio.sleep(1.0)
            assert not await stage.placed(), "three workers are no job"
            await stage.pod("job-ps-0", 1, group="job", annotations={"volcano.sh/task-spec": "ps"})
            placed = await stage.until_placed("job", 3)
            assert Counter(name.split("-")[1] for name in placed) == {"ps": 1, "worker": 2}

    play(story)


def test_best_effort_pods_fill_in_where_nothing_is_left(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        bare = [{"name": "c", "image": "x"}]
        async with scheduling(client, namespace) as (stage, _):
            await machines(stage, "a", cpu=1)
            await stage.gang("full", pods=1, cpu=1)
            await stage.until_placed("full", 1)
            await stage.gang("bare", pods=2, cpu=1, containers=bare)
            await stage.until_placed("bare", 2)

    play(story)


@pytest.mark.parametrize("cpu", [4, 8], ids=["the node is full", "only their parent is full"])
def test_queues_in_a_tree_borrow_and_give_back_and_tell_what_they_hold(play: Play, cpu: int) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, HIERARCHY) as (stage, _):
            await machines(stage, "a", cpu=cpu)
            await client.patch(QUEUES, ObjectRef("default"), {"spec": {"parent": "root"}}, PatchType.MERGE)
            team = await stage.queue("team", parent="root", capability={"cpu": "4"}, deserved={"cpu": "4"})
            one = await stage.queue("one", parent=team, deserved={"cpu": "2"})
            two = await stage.queue("two", parent=team, deserved={"cpu": "2"})
            await stage.gang("one", pods=4, cpu=1, minimum=1, queue=one)
            await stage.until_placed("one", 4)
            await stage.until_phase("one", "Running")
            await stage.gang("two", pods=2, cpu=1, queue=two)
            await stage.until_placed("two", 2)

            async def held(queue: str) -> Any:
                status = as_dict(await client.get(QUEUES, ObjectRef(queue))).get("status") or {}
                return (status.get("allocated") or {}).get("cpu")

            async def told() -> bool:
                return [await held(queue) for queue in (one, two, team, "root")] == ["2", "2", "4", "4"]

            await until_true(told)

    play(story)


def test_a_node_that_goes_takes_its_room_along_and_one_that_comes_back_brings_it(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace) as (stage, scheduler):
            await machines(stage, "a", cpu=2)
            await stage.gang("first", pods=2, cpu=1)
            await stage.until_placed("first", 2)
            await client.delete(NODES, ObjectRef(f"{namespace}-a"))
            await stage.gang("second", pods=1, cpu=1)
            await stage.until_phase("second", "Inqueue")
            await asyncio.sleep(0.5)
            assert not await stage.placed("second")
            await machines(stage, "a", cpu=2)
            await asyncio.sleep(1.0)
            assert not await stage.placed("second"), "the pods of the first still stand there"
            await client.delete(PODS, ObjectRef("first-0", namespace))
            await stage.until_placed("second", 1)
            scheduler.cluster.check()

    play(story)


def test_pods_of_kube_scheduler_wait_for_help_preempt_and_are_told_why(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        kube = {"scheduler": "default-scheduler", "group": ""}
        async with scheduling(client, namespace, KUBE, stop_s=1.0, schedulers=("default-scheduler",)) as (stage, _):
            high = await stage.priority_class("high", 1000)
            await stage.pod("early", 1, **kube, terminationGracePeriodSeconds=30)

            async def told() -> bool:
                found = [e for e in await events(client, namespace) if e["reason"] == "FailedScheduling"]
                return any("0/0 nodes are available" in e["message"] or "no nodes available" in e["message"] for e in found)

            await until_true(told)
            await machines(stage, "a", cpu=2)
            await stage.pod("late", 1, **kube, terminationGracePeriodSeconds=30)
            await stage.until_placed("", 2)
            await stage.pod("urgent", 2, **kube, priorityClassName=high)

            async def nominated() -> bool:
                return (await stage.pods())["urgent"]["status"].get("nominatedNodeName") == f"{namespace}-a"

            await until_true(nominated)
            await stage.until_placed("urgent", 1)
            assert not set(await stage.pods()) & {"early", "late"}

    play(story)


def test_who_wants_volcano_and_who_wants_kube_scheduler_share_the_nodes(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        names = ("volcano", "default-scheduler")
        async with scheduling(client, namespace, DEFAULT, KUBE, schedulers=names) as (stage, _):
            await machines(stage, "a", cpu=4)
            await stage.gang("gang", pods=2, cpu=1)
            for number in range(2):
                await stage.pod(f"plain-{number}", 1, group="", scheduler="default-scheduler")
            await stage.until_placed("", 4)

    play(story)
