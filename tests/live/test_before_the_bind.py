"""What is written before a pod is bound: its volumes, its devices, its gate; and taken back when the bind is not to be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from pumice.api.annotations import QUEUE_GATE
from pumice.api.kinds import (
    DEVICE_CLASSES,
    EVENTS,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
    Kind,
)
from pumice.api.times import instant
from pumice.client.failures import ApiError
from pumice.extensions import plugins
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from pumice.scheduler.config import config_text, read_configurations
from pumice.scheduler.framework.feature_gates import DEFAULT, Release, release
from tests.live.memory import MemoryServer
from tests.live.situations import KUBE
from tests.live.stories import running, scheduling, server, until
from tests.live.virtual import VirtualClock, run

SELECTED = "volume.kubernetes.io/selected-node"
CLAIMED = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
DRA = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: predicates
    arguments:
      predicate.DynamicResourceAllocationEnable: true
  - name: nodeorder
"""


def lone(api: MemoryServer, **spec: Any) -> None:
    api.gang("train", pods=0, minimum=1)
    api.pod("train-0", group="train", **spec)


def waiting_claim(api: MemoryServer) -> None:
    api.put(STORAGE_CLASSES, "slow", provisioner="x", volumeBindingMode="WaitForFirstConsumer")
    claim = {"storageClassName": "slow", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    api.put(VOLUME_CLAIMS, "data", spec=claim, status={"phase": "Pending"})


def annotations(api: MemoryServer) -> dict[str, str]:
    found: dict[str, str] = api.found(VOLUME_CLAIMS, "data")["metadata"].get("annotations") or {}
    return found


def bind_volume(api: MemoryServer, volume: str) -> None:
    """What the volume controller does."""
    claim = api.found(VOLUME_CLAIMS, "data")
    bound = {**annotations(api), "pv.kubernetes.io/bind-completed": "yes"}
    api.put(VOLUME_CLAIMS, "data", metadata={"annotations": bound}, spec={**claim["spec"], "volumeName": volume}, status={"phase": "Bound"})


def local_volume(api: MemoryServer) -> None:
    spec = {"storageClassName": "slow", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    api.put(VOLUMES, "disk", spec=spec, status={"phase": "Available"})


def test_a_pod_is_bound_only_when_the_volume_that_is_made_for_its_node_is_there() -> None:
    async def story() -> None:
        api = server("a")
        waiting_claim(api)
        lone(api, volumes=CLAIMED)
        async with scheduling(api) as scheduler:
            await until(lambda: annotations(api).get(SELECTED) == "a")
            api.gang("other", pods=1)
            await until(lambda: list(api.placed()) == ["other-0"])
            await asyncio.sleep(100)
            assert list(api.placed()) == ["other-0"], "others do not wait with it"
            api.put(VOLUMES, "made", spec={"claimRef": {"namespace": "default", "name": "data"}})
            bind_volume(api, "made")
            await until(lambda: "train-0" in api.placed())
            scheduler.cluster.check()

    run(story())


def test_a_volume_that_is_there_is_given_to_the_claim() -> None:
    async def story() -> None:
        api = server("a")
        waiting_claim(api)
        local_volume(api)
        lone(api, volumes=CLAIMED)
        async with scheduling(api):
            await until(lambda: "claimRef" in api.found(VOLUMES, "disk")["spec"])
            given = api.found(VOLUMES, "disk")
            assert given["spec"]["claimRef"]["uid"] == api.found(VOLUME_CLAIMS, "data")["metadata"]["uid"]
            assert given["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
            assert SELECTED not in annotations(api) and not api.placed()
            bind_volume(api, "disk")
            await until(lambda: list(api.placed()) == ["train-0"])

    run(story())


@pytest.mark.parametrize("there", [False, True], ids=["made", "local"])
def test_volumes_that_are_not_bound_in_time_are_given_back_and_tried_again(there: bool) -> None:
    async def story() -> None:
        api = server("a")
        waiting_claim(api)
        if there:
            local_volume(api)
        lone(api, volumes=CLAIMED)

        def given() -> bool:
            return SELECTED in annotations(api) or (there and "claimRef" in api.found(VOLUMES, "disk")["spec"])

        async with scheduling(api, options=Options(volume_timeout_s=30.0)) as scheduler:
            await until(given)
            await until(lambda: not given())
            await until(given)
            assert scheduler.metrics.binds.value("failed") == 1 and not api.placed()
            local_volume(api)
            bind_volume(api, "disk")
            await until(lambda: list(api.placed()) == ["train-0"])
            scheduler.cluster.check()

    run(story())


@asynccontextmanager
async def waiting_for_a_volume() -> AsyncIterator[tuple[MemoryServer, Scheduler]]:
    """A scheduler that has chosen a node for a pod, and waits until the volume of the pod's claim is made there."""
    api = server("a")
    waiting_claim(api)
    lone(api, volumes=CLAIMED)
    async with scheduling(api) as scheduler:
        await until(lambda: SELECTED in annotations(api))
        yield api, scheduler


def test_for_a_pod_that_goes_no_volume_is_waited_for() -> None:
    async def story() -> None:
        async with waiting_for_a_volume() as (api, scheduler):
            api.remove(PODS, "train-0")
            await until(lambda: SELECTED not in annotations(api), within_s=5)
            assert scheduler._sender.idle and not [event for event in api.all(EVENTS) if event["reason"] == "FailedScheduling"]

    run(story())


def test_a_claim_that_goes_while_its_volume_is_waited_for_ends_the_attempt() -> None:
    async def story() -> None:
        async with waiting_for_a_volume() as (api, scheduler):
            api.remove(VOLUME_CLAIMS, "data")
            await asyncio.sleep(5)
            assert not api.placed() and scheduler.metrics.binds.value("failed") == 1

    run(story())


def devices(api: MemoryServer, *names: str) -> None:
    api.put(DEVICE_CLASSES, "gpu", spec={"config": [{"opaque": {"driver": "d", "parameters": {"fast": True}}}]})
    found = [{"name": name} for name in names]
    api.put(
        RESOURCE_SLICES, "slice", spec={"driver": "d", "nodeName": "a", "pool": {"name": "a", "resourceSliceCount": 1}, "devices": found}
    )
    api.put(RESOURCE_CLAIMS, "gpus", spec={"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}, status={})


USING = {"resourceClaims": [{"name": "g", "resourceClaimName": "gpus"}]}


@pytest.mark.parametrize("minor", [36, 37])
def test_driver_configurations_are_told_once_and_of_what_was_chosen(minor: int) -> None:
    async def story() -> None:
        api = server("a")
        devices(api, "gpu-0", "gpu-1")
        api.put(DEVICE_CLASSES, "none", spec={"selectors": [{"cel": {"expression": "false"}}]})
        ways = [{"name": "x", "deviceClassName": "none"}, {"name": "y", "deviceClassName": "gpu"}]
        requests = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}, {"name": "s", "firstAvailable": ways}]
        told = [[], ["r"], ["s"], ["s/x"], ["r", "s/y"]]
        config = [{"requests": names, "opaque": {"driver": "d", "parameters": {}}} for names in told]
        api.put(RESOURCE_CLAIMS, "gpus", spec={"devices": {"requests": requests, "config": config}}, status={})
        lone(api, schedulerName="default-scheduler", **USING)
        async with plain(api, release(minor)):
            await until(lambda: list(api.placed()) == ["train-0"])
        found = api.found(RESOURCE_CLAIMS, "gpus")["status"]["allocation"]["devices"]["config"]
        assert [(each["source"], each.get("requests") or []) for each in found] == [
            ("FromClass", [] if minor == 37 else ["r", "s/y"]),
            ("FromClaim", []),
            ("FromClaim", ["r"]),
            ("FromClaim", ["s"]),
            ("FromClaim", [] if minor == 37 else ["r", "s/y"]),
        ]

    run(story())


def test_a_claim_of_devices_is_allocated_and_reserved_before_the_bind() -> None:
    async def story() -> None:
        api = server("a")
        devices(api, "gpu-0")
        lone(api, **USING)
        async with scheduling(api, DRA):
            await until(lambda: list(api.placed()) == ["train-0"])
        claim = api.found(RESOURCE_CLAIMS, "gpus")
        allocation = claim["status"]["allocation"]
        assert allocation["devices"]["results"] == [{"request": "r", "driver": "d", "pool": "a", "device": "gpu-0"}]
        assert allocation["devices"]["config"] == [
            {"source": "FromClass", "requests": ["r"], "opaque": {"driver": "d", "parameters": {"fast": True}}}
        ]
        where = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]
        assert allocation["nodeSelector"] == {"nodeSelectorTerms": where}
        assert instant(allocation["allocationTimestamp"]) > 0  # kube-scheduler adds it later if it is missing, and is refused
        assert [user["name"] for user in claim["status"]["reservedFor"]] == ["train-0"]
        assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
        order = [(plural, sub) for _, plural, sub, _ in api.writes if plural in ("resourceclaims", "pods")]
        assert order[:3] == [("resourceclaims", ""), ("resourceclaims", "status"), ("pods", "binding")]

    run(story())


def test_devices_of_a_pod_that_is_not_bound_are_given_back() -> None:
    async def story() -> None:
        api = server("a")
        devices(api, "gpu-0")
        lone(api, **USING)

        def refuse(verb: str, resource: Kind, name: str) -> None:
            if verb == "create" and resource == PODS:
                raise ApiError(403, "Forbidden", "no")

        api.before_write = refuse
        async with scheduling(api, DRA):
            await until(lambda: "allocation" in api.found(RESOURCE_CLAIMS, "gpus")["status"])
            await until(lambda: "allocation" not in api.found(RESOURCE_CLAIMS, "gpus")["status"])
            api.before_write = lambda verb, resource, name: None
            await until(lambda: list(api.placed()) == ["train-0"])

    run(story())


SERVED = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "example.com/gpu": "1"}}}]}


def plain(api: MemoryServer, rules: Release = DEFAULT) -> AbstractAsyncContextManager[Scheduler]:
    """A scheduler of plain pods, at work."""
    policy, _ = read_configurations([config_text(KUBE, "story")], plugins(None), release=rules)
    return running(Scheduler(api, policy, Options(schedulers=("default-scheduler",)), VirtualClock()))


def serving(api: MemoryServer, **device: Any) -> None:
    """A class that stands for an extended resource, and one device."""
    api.put(DEVICE_CLASSES, "gpu", spec={"extendedResourceName": "example.com/gpu"})
    spec = {"driver": "d", "nodeName": "a", "pool": {"name": "a", "resourceSliceCount": 1}, "devices": [{"name": "gpu-0"} | device]}
    api.put(RESOURCE_SLICES, "slice", spec=spec)


def special(api: MemoryServer) -> dict[str, Any]:
    found: dict[str, Any] = api.found(
        RESOURCE_CLAIMS, api.found(PODS, "train-0")["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
    )
    return found


def test_a_pods_extended_resource_that_a_class_serves_becomes_a_claim() -> None:
    async def story() -> None:
        api = server("a")
        serving(api)
        api.pod("train-0", scheduler="default-scheduler", **SERVED)
        async with plain(api):
            await until(lambda: list(api.placed()) == ["train-0"])
        keep_raw = api.found(PODS, "train-0")["status"]["extendedResourceClaimStatus"]
        mapping = {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "container-0-request-1"}
        assert keep_raw["requestMappings"] == [mapping]
        claim = special(api)
        assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
        assert [owner["name"] for owner in claim["metadata"]["ownerReferences"]] == ["train-0"]
        wanted = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
        assert claim["spec"]["devices"]["requests"] == [{"name": "container-0-request-1", "exactly": wanted}]
        assert [result["device"] for result in claim["status"]["allocation"]["devices"]["results"]] == ["gpu-0"]
        assert [user["name"] for user in claim["status"]["reservedFor"]] == ["train-0"]

    run(story())


def test_devices_of_such_a_claim_are_given_back_and_taken_anew() -> None:
    async def story() -> None:
        api = server("a")
        serving(api)
        api.pod("train-0", scheduler="default-scheduler", **SERVED)

        def refuse(verb: str, resource: Kind, name: str) -> None:
            if verb == "create" and resource == PODS:
                raise ApiError(403, "Forbidden", "no")

        api.before_write = refuse
        async with plain(api):
            await until(lambda: "extendedResourceClaimStatus" in api.found(PODS, "train-0")["status"])
            first = special(api)["metadata"]["name"]
            await until(lambda: "allocation" not in api.found(RESOURCE_CLAIMS, first)["status"])
            api.before_write = lambda verb, resource, name: None
            await until(lambda: list(api.placed()) == ["train-0"])
            assert special(api)["metadata"]["name"] != first

    run(story())


def test_for_a_pod_that_goes_no_device_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        api = server("a")
        serving(api, bindingConditions=["Ready"])
        api.pod("train-0", scheduler="default-scheduler", **SERVED)
        async with plain(api) as scheduler:
            await until(lambda: "extendedResourceClaimStatus" in api.found(PODS, "train-0")["status"])
            await until(lambda: "allocation" in special(api)["status"])
            api.remove(PODS, "train-0")
            await until(lambda: scheduler._sender.idle, within_s=5)

    run(story())
    assert not caplog.records


def test_a_device_that_must_be_prepared_is_waited_for() -> None:
    async def story() -> None:
        api = server("a")
        serving(api, bindingConditions=["Ready"], bindingFailureConditions=["Broken"])
        api.pod("train-0", scheduler="default-scheduler", **SERVED)

        def says(condition: str) -> None:
            claim = special(api)
            device = {"driver": "d", "pool": "a", "device": "gpu-0", "conditions": [{"type": condition, "status": "True"}]}
            name = claim["metadata"]["name"]
            api.put(RESOURCE_CLAIMS, name, metadata=claim["metadata"], spec=claim["spec"], status=claim["status"] | {"devices": [device]})

        async with plain(api):
            await until(lambda: "extendedResourceClaimStatus" in api.found(PODS, "train-0")["status"])
            await asyncio.sleep(30)
            assert not api.placed()
            first = special(api)["metadata"]["name"]
            says("Broken")
            await until(lambda: special(api)["metadata"]["name"] != first)
            await asyncio.sleep(5)
            says("Ready")
            await until(lambda: list(api.placed()) == ["train-0"])

    run(story())


def test_a_share_of_a_device_is_told_with_what_it_takes() -> None:
    async def story() -> None:
        api = server("a")
        devices(api, "gpu-0")
        shared = {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "8Gi"}}}
        pool = {"name": "a", "resourceSliceCount": 1}
        api.put(RESOURCE_SLICES, "slice", spec={"driver": "d", "nodeName": "a", "pool": pool, "devices": [shared]})
        exactly = {"deviceClassName": "gpu", "capacity": {"requests": {"memory": "2Gi"}}}
        api.put(RESOURCE_CLAIMS, "gpus", spec={"devices": {"requests": [{"name": "r", "exactly": exactly}]}}, status={})
        lone(api, **USING)
        async with scheduling(api, DRA):
            await until(lambda: list(api.placed()) == ["train-0"])
        (result,) = api.found(RESOURCE_CLAIMS, "gpus")["status"]["allocation"]["devices"]["results"]
        assert result["consumedCapacity"] == {"memory": "2Gi"} and len(result["shareID"]) == 36

    run(story())


def test_the_claim_says_what_kubelets_leave_out_for_its_device() -> None:
    async def story() -> None:
        api = server("a")
        api.put(NODES, "a", status=api.found(NODES, "a")["status"] | {"declaredFeatures": ["DRAOptionalNodeOperations"]})
        devices(api, "gpu-0")
        slice_ = api.found(RESOURCE_SLICES, "slice")
        api.put(RESOURCE_SLICES, "slice", spec=slice_["spec"] | {"skipNodeOperations": ["*"]})
        api.pod("train-0", scheduler="default-scheduler", **USING)
        async with plain(api, release(37, {"DRAOptionalNodeOperations": True})):
            await until(lambda: list(api.placed()) == ["train-0"])
        (result,) = api.found(RESOURCE_CLAIMS, "gpus")["status"]["allocation"]["devices"]["results"]
        assert result["skipNodeOperations"] == ["*"]

    run(story())


@pytest.mark.parametrize("fails", [False, True])
def test_the_pod_says_what_its_devices_take_of_the_node_until_its_bind_has_failed(fails: bool) -> None:
    written = "nodeAllocatableResourceClaimStatuses"

    async def story() -> None:
        api = server("a")
        devices(api, "gpu-0")
        taking = {"name": "gpu-0", "nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "1"}}}}
        api.put(RESOURCE_SLICES, "slice", spec=api.found(RESOURCE_SLICES, "slice")["spec"] | {"devices": [taking]})
        api.pod("train-0", scheduler="default-scheduler", **USING)
        seen: list[Any] = []

        def before(verb: str, resource: Kind, name: str) -> None:
            if verb == "create" and resource == PODS:
                seen.append(api.found(PODS, "train-0")["status"].get(written))
                if fails:
                    raise ApiError(422, "Invalid", "not yours")

        api.before_write = before
        async with plain(api, release(37, {"DRANodeAllocatableResources": True})) as scheduler:
            await until(lambda: bool(seen))
            assert seen[0] == [
                {"resourceClaimName": "gpus", "containers": [], "mapping": [{"name": "cpu", "quantity": "1"}], "overhead": []}
            ]
            if fails:
                await until(lambda: api.found(PODS, "train-0")["status"].get(written) == [])
            else:
                await until(lambda: list(api.placed()) == ["train-0"])
            scheduler.cluster.check()

    run(story())


def test_a_claim_that_may_not_be_written_is_tried_again_with_pauses_and_that_is_told() -> None:
    async def story() -> None:
        api = server("a")
        devices(api, "gpu-0")
        lone(api, **USING)
        refused: list[float] = []

        def refuse(verb: str, resource: Kind, name: str) -> None:
            if resource == RESOURCE_CLAIMS and verb == "update":
                refused.append(asyncio.get_running_loop().time())
                raise ApiError(422, "Invalid", "not yours")

        api.before_write = refuse

        def keep_raw() -> set[str]:
            return {c["message"] for c in api.found(PODS, "train-0")["status"].get("conditions", ()) if c.get("reason") == "SchedulerError"}

        async with scheduling(api, DRA):
            await until(lambda: keep_raw() == {"binding to a failed: 422 Invalid: not yours"})
            await asyncio.sleep(60)
            assert 10 < len(refused) < 100
            api.before_write = lambda verb, resource, name: None
            await until(lambda: list(api.placed()) == ["train-0"])

    run(story())


def test_the_gate_of_a_pod_that_is_made_anew_under_its_name_stays_until_its_own_turn() -> None:
    async def story() -> None:
        api = server("a")
        gate = {"metadata": {"annotations": {"scheduling.k8s.io/group-name": "train", QUEUE_GATE: "true"}}}
        lone(api, schedulingGates=[{"name": QUEUE_GATE}])
        found = api.found(PODS, "train-0")
        api.put(PODS, "train-0", **gate, spec=found["spec"], status=found["status"])
        tries: list[Any] = []

        def is_made_anew(verb: str, resource: Kind, name: str) -> None:
            if (verb, resource) == ("patch", PODS):
                tries.append(api.found(PODS, "train-0")["spec"]["schedulingGates"])
                if len(tries) == 1:
                    api.remove(PODS, "train-0")
                    api.put(PODS, "train-0", **gate, spec=found["spec"], status=found["status"])

        api.before_write = is_made_anew
        async with scheduling(api):
            await until(lambda: list(api.placed()) == ["train-0"])
        assert tries == [[{"name": QUEUE_GATE}]] * 2

    run(story())


def test_the_gate_of_a_pod_is_taken_away_once_its_queue_has_room() -> None:
    async def story() -> None:
        api = server("a")
        gate = {"metadata": {"annotations": {"scheduling.k8s.io/group-name": "train", QUEUE_GATE: "true"}}}
        lone(api, schedulingGates=[{"name": QUEUE_GATE}])
        pod = api.found(PODS, "train-0")
        api.put(PODS, "train-0", **gate, spec=pod["spec"], status=pod["status"])
        async with scheduling(api):
            await until(lambda: list(api.placed()) == ["train-0"])
            assert not api.found(PODS, "train-0")["spec"]["schedulingGates"]

    run(story())
