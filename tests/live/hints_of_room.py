"""Room that is found otherwise than by a pod's going: a nominated pod takes it no more, or a profile does not ask for what a node lacks."""

from __future__ import annotations

from typing import Any

from pumice.api.kinds import NODES, NUMA_TOPOLOGIES, PODS
from pumice.scheduler.framework.cluster_events import EventKind
from tests.live.crowds import HOST, TAINT, node, pod
from tests.live.hints_of_pods import UNEVEN
from tests.live.memory import MemoryServer
from tests.live.situations import KUBE
from tests.live.wakes import Act, Story, act, stands, waits

NOMINEE = "p2"
TOLERATING = {"priority": 1, "tolerations": [{"operator": "Exists"}]}
IGNORING = KUBE + "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [example.com/disk]}}]}]\n"


def important(number: int, cpu: int, node: str = "a") -> Act:
    return act(pod, number, cpu, "blue", {"priority": 2, "nodeSelector": {HOST: node}})


#: p2 waits for p1 to leave node a, where there would be room for p0 without it
PROMISED = (act(node, "a", 2), stands(1, "a", spec={"priority": 0}), act(pod, 2, 2, "blue", {"priority": 2}), waits(TOLERATING))


def gone(api: MemoryServer) -> None:
    api.remove(PODS, NOMINEE)


def no_longer_nominated(api: MemoryServer) -> None:
    """By somebody else."""
    there = api.found(PODS, NOMINEE)
    assert there["status"].pop("nominatedNodeName") == "a"
    api.put(PODS, NOMINEE, metadata=there["metadata"], status=there["status"])


def sent_elsewhere(api: MemoryServer) -> None:
    """By somebody else, who binds it."""
    there = api.found(PODS, NOMINEE)
    api.put(PODS, NOMINEE, metadata=there["metadata"], spec={**there["spec"], "nodeName": "b"}, status=there["status"])


def kept_off(api: MemoryServer) -> None:
    """It is tried again, and the node where it was nominated will not have it."""
    a, nominee = api.found(NODES, "a"), api.found(PODS, NOMINEE)
    api.put(NODES, "a", metadata=a["metadata"], spec={**a["spec"], "taints": TAINT}, status=a["status"])
    less = [{**each, "resources": {"requests": {"cpu": "1900m"}}} for each in nominee["spec"]["containers"]]
    api.put(PODS, NOMINEE, metadata=nominee["metadata"], spec={**nominee["spec"], "containers": less}, status=nominee["status"])


def sized(api: MemoryServer, name: str, **amounts: str) -> None:
    has = {"allocatable": {"pods": "110", **amounts}}
    api.put(NODES, name, metadata={"labels": {HOST: name}}, spec={}, status=has)


def asking(api: MemoryServer, number: int, requests: dict[str, str], **spec: Any) -> None:
    container = {"name": "c", "resources": {"requests": requests}}
    made = {"containers": [container], "schedulerName": "default-scheduler", **spec}
    api.put(PODS, f"p{number}", metadata={"labels": {}}, spec=made, status={"phase": "Pending"})


#: the same in memory; p0 asks for more cpu than the node has that is to come
PROMISED_MEMORY = (
    act(sized, "a", cpu="8", memory="100Gi"),
    act(asking, 1, {"cpu": "1", "memory": "60Gi"}, nodeName="a", priority=0),
    act(asking, 2, {"cpu": "1", "memory": "60Gi"}, priority=2),
    act(asking, 0, {"cpu": "3", "memory": "10Gi"}, priority=1),
)

CPUS_APART = KUBE + "profiles: [{plugins: {filter: {enabled: [{name: numa-aware}]}}}]\n"


def cpus(api: MemoryServer, free: str) -> None:
    """Of node a: four on each side."""
    detail = {str(cpu): {"numa": cpu // 4, "socket": cpu // 4, "core": cpu} for cpu in range(8)}
    policies = {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "single-numa-node"}
    has = {"numares": {"cpu": {"allocatable": free, "capacity": 8}}}
    api.put(NUMA_TOPOLOGIES, "a", spec={"policies": policies, "cpuDetail": detail, **has})


def guaranteed(api: MemoryServer) -> None:
    amounts = {"cpu": "3", "memory": "1Gi"}
    container = {"name": "c", "resources": {"requests": amounts, "limits": amounts}}
    meta = {"annotations": {"volcano.sh/numa-topology-policy": "single-numa-node"}}
    spec = {"containers": [container], "schedulerName": "default-scheduler"}
    api.put(PODS, "p0", metadata=meta, spec=spec, status={"phase": "Pending"})


FIT = "NodeResourcesFit"
STORIES = [
    Story(FIT, EventKind.POD_GONE, PROMISED, gone, how="the nominated pod is gone"),
    Story(FIT, EventKind.POD_GONE, PROMISED, no_longer_nominated, how="the pod is nominated no longer"),
    Story(FIT, EventKind.POD_GONE, PROMISED, sent_elsewhere, how="the nominated pod is bound elsewhere"),
    Story(FIT, EventKind.POD_GONE, PROMISED, kept_off, how="the nominated pod may not stand there"),
    Story(FIT, EventKind.POD_GONE, PROMISED_MEMORY, act(sized, "b", cpu="2", memory="65Gi"), how="the nominated pod has another node"),
    Story("PodTopologySpread", EventKind.POD_LEAVING, UNEVEN, important(5, 3), how="a pod is evicted for another"),
    Story(
        FIT,
        EventKind.NODE_ALLOCATABLE,
        (act(sized, "a", cpu="4", pods="0"), waits()),
        act(sized, "a", cpu="4", pods="1"),
        how="room for one pod",
    ),
    Story(
        FIT,
        EventKind.NODE_ADDED,
        (act(sized, "a", cpu="1"), act(asking, 0, {"cpu": "2", "example.com/disk": "1"})),
        act(sized, "b", cpu="2"),
        IGNORING,
        how="a node without what the profile ignores",
    ),
    Story(
        "numa-aware",
        EventKind.OTHER,
        (act(node, "a", 8), act(cpus, "0-1,4-5"), guaranteed),
        act(cpus, "0-2"),
        CPUS_APART,
        how="a rule of ours hears of what it alone reads",
    ),
]
IN_VAIN = [
    Story(
        FIT,
        EventKind.NODE_ADDED,
        (act(sized, "a", cpu="1"), act(asking, 0, {"cpu": "2", "example.com/gpu": "1"})),
        act(sized, "b", cpu="2"),
        IGNORING,
        how="a node without what the profile does not ignore",
    ),
]
