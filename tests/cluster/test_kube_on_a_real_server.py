"""The client, the reflector, the election and the recorder against the server they are made for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from binaries import KUBERNETES
from realcluster import RealCluster

from pumice.api.kinds import CONFIG_MAPS, EVENTS, LEASES, NODES, PODS, SERVICE_ACCOUNTS, ObjectRef
from pumice.api.meta import Metadata, Wire
from pumice.client.bind_and_evict import bind, evict, eviction_conditions
from pumice.client.client import Backoff, Client
from pumice.client.event_correlator import EventRecord, InvolvedObject
from pumice.client.event_recorder import EventRecorder
from pumice.client.failures import ApiError
from pumice.client.known_versions import Added, Deleted, Modified
from pumice.client.leader_election import Election, LeaseCandidate, Term
from pumice.client.reflector import Pace, Reflector
from pumice.client.transport import ListScope, PatchType, as_dict

pytestmark = pytest.mark.cluster

Play = Callable[..., None]
AT = "2026-01-01T00:00:00Z"


class Thing(Wire):
    metadata: Metadata


decode = msgspec.json.Decoder(Thing).decode


async def create_pod(client: Client, namespace: str, name: str) -> ObjectRef:
    account = ObjectRef("default", namespace)
    try:
        await client.get(SERVICE_ACCOUNTS, account)
    except ApiError:  # nobody makes them here
        await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace)
    spec = {"containers": [{"name": "c", "image": "x"}], "schedulerName": "volcano", "automountServiceAccountToken": False}
    made = as_dict(await client.create(PODS, {"metadata": {"name": name}, "spec": spec}, namespace))
    return ObjectRef(name, namespace, made["metadata"]["uid"])


def test_a_pod_is_bound_once_and_evicted_once(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        await client.create(NODES, {"metadata": {"name": namespace}})
        pod = await create_pod(client, namespace, "a")
        await bind(client, pod, namespace, {"pumice/test": "yes"})
        read = as_dict(await client.get(PODS, pod))
        assert read["spec"]["nodeName"] == namespace and read["metadata"]["annotations"] == {"pumice/test": "yes"}
        await bind(client, pod, namespace)  # as after a lost answer
        with pytest.raises(ApiError, match="409"):
            await bind(client, pod, "elsewhere")
        with pytest.raises(ApiError, match="404"):
            await bind(client, ObjectRef("a", namespace, "another-uid"), namespace)
        await evict(client, pod, eviction_conditions("preempt", "volcano", AT))
        read = as_dict(await client.get(PODS, pod))
        assert "deletionTimestamp" in read["metadata"]
        assert {"DisruptionTarget", "Ready"} <= {condition["type"] for condition in read["status"]["conditions"]}
        await evict(client, pod, eviction_conditions("preempt", "volcano", AT))

    play(story)


def test_a_reflector_follows_from_its_first_list_to_the_last_change(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        for number in range(5):
            await client.create(CONFIG_MAPS, {"metadata": {"name": f"c{number}"}}, namespace)
        told: list[Any] = []
        reflector = Reflector(client, ListScope(CONFIG_MAPS, namespace), decode, told.append)
        task = asyncio.create_task(reflector.run())
        await reflector.synced.wait()
        assert [type(change) for change in told] == [Added] * 5
        await client.patch(CONFIG_MAPS, ObjectRef("c0", namespace), {"data": {"a": "b"}}, PatchType.MERGE)
        await client.delete(CONFIG_MAPS, ObjectRef("c1", namespace))
        while len(told) < 7:
            await asyncio.sleep(0.01)
        assert isinstance(told[5], Modified) and isinstance(told[6], Deleted) and told[6].name == "c1"
        task.cancel()

    play(story)


def test_a_server_that_is_killed_and_comes_back_is_caught_up_with(cluster: RealCluster, play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        told: list[Any] = []
        pace = Pace(Backoff(0.2, 1.0), page=2)
        reflector = Reflector(client, ListScope(CONFIG_MAPS, namespace), decode, told.append, pace=pace)
        for number in range(5):
            await client.create(CONFIG_MAPS, {"metadata": {"name": f"c{number}"}}, namespace)
        task = asyncio.create_task(reflector.run())
        await reflector.synced.wait()
        cluster.kill_apiserver()
        await asyncio.to_thread(cluster.start_apiserver)
        await client.delete(CONFIG_MAPS, ObjectRef("c3", namespace))
        while len(told) < 6:
            await asyncio.sleep(0.01)
        assert [type(change) for change in told] == [Added] * 5 + [Deleted] and reflector.trouble is None
        task.cancel()

    play(story)


def test_an_election_is_won_and_handed_over(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        lock = ObjectRef("volcano", namespace)
        term = Term(lease_s=8, renew_deadline_s=7, retry_s=0.5)
        first, second = (Election(client, LeaseCandidate(name, lock, term)) for name in ("first", "second"))
        tasks = [asyncio.create_task(first.run())]
        await first.won.wait()
        tasks.append(asyncio.create_task(second.run()))
        await asyncio.sleep(9)
        assert first.leading() and not second.leading()
        tasks[0].cancel()
        await asyncio.gather(tasks[0], return_exceptions=True)
        await first.release()
        await second.won.wait()
        lease = as_dict(await client.get(LEASES, lock))
        assert lease["spec"]["holderIdentity"] == "second" and lease["spec"]["leaseTransitions"] == 1
        tasks[1].cancel()

    play(story)


def test_events_are_created_and_counted(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        recorder = EventRecorder(client, "volcano")
        sending = asyncio.create_task(recorder.run())
        pod = InvolvedObject("Pod", "p", namespace, "uid", "v1")
        for _ in range(3):
            recorder.tell(EventRecord(pod, "Warning", "FailedScheduling", "0/3 nodes are unavailable"))
        await recorder.drain(10.0)
        sending.cancel()
        items = [as_dict(raw) async for page in client.pages(ListScope(EVENTS, namespace)) for raw in page.items]
        assert [(item["count"], item["reason"], item["source"]) for item in items] == [(3, "FailedScheduling", {"component": "volcano"})]
        assert recorder.dropped == 0

    play(story)


def test_the_server_is_of_the_version_that_we_build(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        assert as_dict(await client.get_path("/version"))["gitVersion"] == f"v{KUBERNETES}"

    play(story)


def test_who_may_not_is_told_so(cluster: RealCluster) -> None:
    async def story() -> None:
        async with Client(cluster.access("nobody")) as client:
            with pytest.raises(ApiError, match="403 Forbidden"):
                await client.get(PODS, ObjectRef("a", "default"))

    asyncio.run(story())
