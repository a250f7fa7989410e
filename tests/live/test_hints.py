"""Pods that kube-scheduler's profiles place wait for what could help them, and back off; pods of Volcano's wait as before."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from msgspec.structs import replace

from pumice.api.kinds import NODES, POD_GROUPS, PODS, STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES, Kind
from pumice.client.failures import ApiError
from pumice.extensions import plugins
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from pumice.live.scheduler.sender import BIND_TRIES, EVICT_TRIES
from pumice.scheduler.config import config_text, read_configurations
from pumice.scheduler.config.volcano_conf import DEFAULT
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.kube.scheduling_queue import FORGOTTEN_S, SchedulingQueue
from tests.live.memory import MemoryServer
from tests.live.stories import running, until
from tests.live.virtual import VirtualClock, run

KUBE = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
GATES = [{"name": "example.com/hold"}]
CLAIMED = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
PLAIN = {"scheduler": "default-scheduler"}


def policy(*texts: str) -> Policy:
    return read_configurations([config_text(text, "test") for text in texts or (KUBE,)], plugins(None))[0]


class Counting(Scheduler):
    """Notes when each pod was refused a node, and when it got one."""

    def __init__(self, api: MemoryServer, chosen: Policy, *names: str) -> None:
        super().__init__(api, chosen, Options(schedulers=names or ("default-scheduler",)), VirtualClock())
        self.refusals: dict[str, list[float]] = {}
        self.binds: dict[str, list[float]] = {}

    async def turn(self) -> Any:
        decisions = await super().turn()
        for waiting in decisions.waiting:
            self.refusals.setdefault(waiting.task.name, []).append(self.clock.now())
        for bind in decisions.binds:
            self.binds.setdefault(bind.task.name, []).append(self.clock.now())
        return decisions


def cluster(*, cpu: int = 1) -> MemoryServer:
    api = MemoryServer()
    api.node("a", cpu=cpu)
    return api


def test_a_refused_pod_is_not_tried_again_until_something_could_help_it() -> None:
    async def story() -> None:
        api = cluster()
        api.pod("big", 4, **PLAIN)
        async with running(Counting(api, policy())) as scheduler:
            await until(lambda: "big" in scheduler.refusals)
            for second in range(60):
                api.node("a", cpu=1, annotations={"beat": str(second)})
                await asyncio.sleep(1)
            api.node("small", cpu=2)
            await asyncio.sleep(60)
            assert len(scheduler.refusals["big"]) == 1
            api.node("large", cpu=4)
            await until(lambda: api.placed("big") == {"big": "large"}, within_s=2)

    run(story())


def grow(api: MemoryServer) -> None:
    api.node("a", cpu=4)


def leave(api: MemoryServer) -> None:
    api.remove(PODS, "there")


def finish(api: MemoryServer) -> None:
    api.put(PODS, "there", status={"phase": "Succeeded"})


def shrink(api: MemoryServer) -> None:
    less = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}], "nodeName": "a", "schedulerName": "x"}
    api.put(PODS, "there", spec=less)


@pytest.mark.parametrize("help_it", [grow, leave, finish, shrink])
def test_what_makes_room_wakes_who_found_none(help_it: Any) -> None:
    async def story() -> None:
        api = cluster(cpu=2)
        api.pod("there", 1.5, node="a", scheduler="x")
        api.pod("big", 1.5, **PLAIN)
        async with running(Counting(api, policy())) as scheduler:
            await until(lambda: "big" in scheduler.refusals)
            await asyncio.sleep(20)
            help_it(api)
            await until(lambda: "big" in api.placed(), within_s=2)

    run(story())


def test_a_pod_that_is_no_longer_one_to_keep_away_from_wakes_who_did() -> None:
    async def story() -> None:
        api = cluster(cpu=4)
        api.pod("there", node="a", **PLAIN)
        there = api.found(PODS, "there")
        api.put(PODS, "there", metadata={"labels": {"noisy": "yes"}}, spec=there["spec"], status=there["status"])
        term = {"labelSelector": {"matchLabels": {"noisy": "yes"}}, "topologyKey": "kubernetes.io/hostname"}
        api.node("a", cpu=4, labels={"kubernetes.io/hostname": "a"})
        api.pod("shy", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}, **PLAIN)
        async with running(Counting(api, policy())) as scheduler:
            await until(lambda: "shy" in scheduler.refusals)
            await asyncio.sleep(30)
            api.put(PODS, "there", metadata={"labels": {"noisy": "no"}}, spec=there["spec"], status=there["status"])
            await until(lambda: api.placed("shy") == {"shy": "a"}, within_s=2)

    run(story())


def test_who_was_to_have_the_room_of_a_pod_that_is_not_evicted_after_all_tries_again() -> None:
    async def story() -> None:
        api = cluster()
        api.pod("low", node="a", **PLAIN)
        api.pod("high", priority=10, **PLAIN)
        refused: list[str] = []

        def refuse(verb: str, resource: Kind, name: str) -> None:
            if verb == "delete" and len(refused) < EVICT_TRIES:
                refused.append(name)
                raise ApiError(500, "InternalError", "no")

        api.before_write = refuse
        async with running(Counting(api, policy())) as scheduler:
            await until(lambda: api.placed("high") == {"high": "a"}, within_s=30)
            assert scheduler.metrics.evictions.value("failed") == 1

    run(story())


def test_a_gate_that_is_taken_away_and_a_label_that_comes() -> None:
    async def story() -> None:
        api = cluster(cpu=2)
        api.pod("gated", schedulingGates=GATES, **PLAIN)
        api.pod("picky", nodeSelector={"disk": "ssd"}, **PLAIN)
        async with running(Counting(api, policy())) as scheduler:
            await until(lambda: "picky" in scheduler.refusals)
            await asyncio.sleep(30)
            assert not api.placed()
            spec = api.found(PODS, "gated")["spec"]
            api.put(PODS, "gated", spec={**spec, "schedulingGates": []})
            await until(lambda: "gated" in api.placed(), within_s=2)
            api.node("a", cpu=2, labels={"disk": "ssd"})
            await until(lambda: "picky" in api.placed(), within_s=2)

    run(story())


def test_a_volume_claim_that_is_bound_wakes_its_pod() -> None:
    async def story() -> None:
        api = cluster()
        api.put(STORAGE_CLASSES, "now", provisioner="x", volumeBindingMode="Immediate")
        claim = {"storageClassName": "now", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        api.put(VOLUME_CLAIMS, "data", spec=claim, status={"phase": "Pending"})
        api.pod("p", volumes=CLAIMED, **PLAIN)
        async with running(Counting(api, policy())) as scheduler:
            await until(lambda: "p" in scheduler.refusals)
            api.put(VOLUMES, "disk", spec={"capacity": {"storage": "1Gi"}}, status={"phase": "Bound"})
            bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
            api.put(VOLUME_CLAIMS, "data", metadata=bound, spec={**claim, "volumeName": "disk"}, status={"phase": "Bound"})
            await until(lambda: "p" in api.placed(), within_s=3)

    run(story())


def test_a_bind_that_is_refused_backs_off_longer_each_time() -> None:
    async def story() -> None:
        api = cluster()
        tries: list[float] = []

        def refuse(verb: str, resource: Kind, name: str) -> None:
            if verb == "create" and resource == PODS and len(tries) < 3 * (BIND_TRIES + 1):
                tries.append(asyncio.get_running_loop().time())
                raise ApiError(403, "Forbidden", "not now")

        api.before_write = refuse
        api.pod("p", **PLAIN)
        async with running(Counting(api, policy())) as scheduler:
            await until(lambda: "p" in api.placed(), within_s=200)
        _, *again = scheduler.binds["p"]
        rests = [at - max(before for before in tries if before < at) for at in again]
        assert len(rests) >= 2 and rests[0] >= 1.0 and rests[1] >= 2.0

    run(story())


def test_nobody_waits_for_ever_for_an_event_that_was_missed() -> None:
    async def story() -> None:
        api = cluster()
        api.pod("big", 4, **PLAIN)
        async with running(Counting(api, policy())) as scheduler:
            await until(lambda: "big" in scheduler.refusals)
            await asyncio.sleep(2 * FORGOTTEN_S + 30)
            assert len(scheduler.refusals["big"]) == 3

    run(story(), limit_s=3 * FORGOTTEN_S)


def test_pods_of_volcano_beside_them_wait_as_they_always_did() -> None:
    async def story() -> None:
        api = cluster(cpu=2)
        api.queue("root")
        api.queue()
        api.pod("big", 4, **PLAIN)
        api.gang("train", pods=3)
        async with running(Counting(api, policy(DEFAULT, KUBE), "volcano", "default-scheduler")) as scheduler:
            await until(lambda: "big" in scheduler.refusals and "train-0" in scheduler.refusals)
            await asyncio.sleep(30)
            assert len(scheduler.refusals["big"]) == 1 and len(scheduler.refusals["train-0"]) > 10
            api.node("b", cpu=1)
            await until(lambda: len(api.placed("train")) == 3, within_s=2)

    run(story())


@pytest.mark.parametrize("by_group", [True, False], ids=["group", "pods"])
def test_room_that_was_kept_for_a_gang_is_free_when_the_gang_is_gone(by_group: bool) -> None:
    async def story() -> None:
        api = cluster(cpu=3)
        api.queue("root")
        api.queue()
        api.pod("stays", 1, node="a", scheduler="x")
        leaving = api.pod("leaves", 1, node="a", scheduler="x")
        api.put(PODS, "leaves", metadata={**leaving["metadata"], "deletionTimestamp": "2023-11-14T23:00:00Z"})
        api.gang("train", pods=2)
        api.pod("plain", **PLAIN)
        both = policy(DEFAULT, KUBE)
        gangs_first = replace(both, actions=tuple(sorted(both.actions, key=lambda action: action.name == "schedule")))
        async with running(Counting(api, gangs_first, "volcano", "default-scheduler")) as scheduler:
            await until(lambda: "plain" in scheduler.refusals)
            await asyncio.sleep(5)
            assert not api.placed("plain") and not api.placed("train")
            if by_group:
                api.remove(POD_GROUPS, "train")
            else:
                for number in range(2):
                    api.remove(PODS, f"train-{number}")
            await until(lambda: "plain" in api.placed(), within_s=12)

    run(story())


def test_a_pod_that_was_bound_and_finished_while_the_watch_was_away_leaves_its_room() -> None:
    async def story() -> None:
        api = cluster()
        api.pod("first", **PLAIN)
        api.pod("second", **PLAIN)
        away: list[asyncio.Task[None]] = []

        def no_news(verb: str, resource: Kind, name: str) -> None:
            if verb == "create" and resource == PODS and not away:
                away.append(asyncio.create_task(api.outage(5, forgets=True)))

        api.before_write = no_news
        async with running(Counting(api, policy())) as scheduler:
            await until(lambda: "second" in scheduler.refusals and "first" in api.placed())
            await asyncio.sleep(2)
            api.put(PODS, "first", status={"phase": "Succeeded"})
            await until(lambda: "second" in api.placed(), within_s=30)
            await asyncio.gather(*away)

    run(story())


def test_a_pod_that_somebody_else_bound_waits_no_more() -> None:
    async def story() -> None:
        api = cluster()
        api.pod("p", 4, **PLAIN)
        async with running(Counting(api, policy())) as scheduler:
            await until(lambda: "p" in scheduler.refusals)
            api.put(PODS, "p", spec={**api.found(PODS, "p")["spec"], "nodeName": "a"})
            queue = cast(SchedulingQueue, scheduler.scheduling_queue)
            await until(lambda: not queue.waiting, within_s=2)
            assert queue.next_due() is None

    run(story())


def test_another_policy_tries_everybody_anew() -> None:
    async def story() -> None:
        api = cluster()
        api.pod("p", nodeSelector={"disk": "ssd"}, **PLAIN)
        without = KUBE + "profiles: [{plugins: {multiPoint: {disabled: [{name: NodeAffinity}]}}}]\n"
        async with running(Counting(api, policy())) as scheduler:
            await until(lambda: "p" in scheduler.refusals)
            scheduler.adopt(policy(without))
            await until(lambda: "p" in api.placed(), within_s=2)

    run(story())


def test_a_pod_made_again_under_its_name_is_another_pod() -> None:
    async def story() -> None:
        api = cluster()
        api.pod("p", 4, **PLAIN)
        async with running(Counting(api, policy())) as scheduler:
            await until(lambda: "p" in scheduler.refusals)
            api.remove(PODS, "p")
            api.pod("p", 1, **PLAIN)
            await until(lambda: "p" in api.placed(), within_s=2)
            api.remove(NODES, "a")
            await asyncio.sleep(1)
            scheduler.cluster.check()

    run(story())
