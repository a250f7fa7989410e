"""For rules about nodes and about other pods: a story for each happening that may help, and some of happenings that cannot."""

from __future__ import annotations

from typing import Any

from pumice.api.kinds import NODES, PODS, SERVICES
from pumice.scheduler.framework.cluster_events import EventKind
from tests.live.crowds import (
    HOST,
    ZONE,
    cordoned,
    gone,
    labelled,
    leaving,
    namespace,
    node,
    port,
    recoloured,
    resized,
    shrunk,
    spread,
    tainted,
    terms,
    without,
)
from tests.live.memory import MemoryServer
from tests.live.situations import KUBE
from tests.live.wakes import Story, act, stands, waits

A = act(node, "a", 4)
BLUE = {"nodeSelector": {"colour": "blue"}}
WEB, MAIL, WEB_OVER_UDP = port(80, "TCP", ""), port(25, "TCP", ""), port(80, "UDP", "")
NEAR = terms("podAffinity", "blue", ZONE, spaces=False)
FAR = terms("podAntiAffinity", "blue", ZONE, spaces=False)
NEAR_IN_SPACES = terms("podAffinity", "blue", ZONE, spaces=True)
EVEN = {
    "topologySpreadConstraints": [spread("red", key, 1, "Honor", "Honor")["topologySpreadConstraints"][0] for key in (ZONE, HOST)],
}
#: zone x has too many for its empty node to take one more; the only node of zone y has one more than that empty one
UNEVEN = (
    *(act(node, name, 4, zone) for name, zone in ("ax", "bx", "cy")),
    *(stands(number, name, "red") for number, name in ((1, "a"), (2, "a"), (3, "c"))),
    waits(EVEN),
)

#: a pod that wants no red pods near it
APART = terms("podAntiAffinity", "red", ZONE, spaces=False)

EVEN_BY_DEFAULT = (
    KUBE
    + """\
profiles:
- pluginConfig:
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule}
"""
)


def declares(api: MemoryServer, name: str, *features: str) -> None:
    there = api.found(NODES, name)
    status = {**there["status"], "declaredFeatures": list(features)}
    api.put(NODES, name, metadata=there["metadata"], spec=there["spec"], status=status)


def declaring(api: MemoryServer, name: str) -> None:
    """A node that declares the feature, from the beginning."""
    made = {"cpu": "4", "memory": "100Gi", "pods": "110"}
    api.put(NODES, name, metadata={"labels": {}}, status={"allocatable": made, "declaredFeatures": [FEATURE]})


def now_tolerates(api: MemoryServer, key: str) -> None:
    there = api.found(PODS, "p0")
    more = {"tolerations": [{"operator": "Exists", **({"key": key} if key else {})}]}
    api.put(PODS, "p0", metadata=there["metadata"], spec={**there["spec"], **more})


def asks_for_less(api: MemoryServer) -> None:
    there = api.found(PODS, "p0")
    less = [{**each, "resources": {"requests": {"cpu": "1"}}} for each in there["spec"]["containers"]]
    api.put(PODS, "p0", metadata=there["metadata"], spec={**there["spec"], "containers": less})


FEATURE = "UserNamespacesHostNetworkSupport"
NEEDS_FEATURE = waits({"hostNetwork": True, "hostUsers": False})


def service(api: MemoryServer, colour: str) -> None:
    api.put(SERVICES, "s", spec={"selector": {"colour": colour}})


STORIES = [
    Story("NodeDeclaredFeatures", EventKind.NODE_FEATURES, (A, NEEDS_FEATURE), act(declares, "a", FEATURE)),
    Story("NodeDeclaredFeatures", EventKind.NODE_ADDED, (A, NEEDS_FEATURE), act(declaring, "b")),
    Story("NodeResourcesFit", EventKind.OWN_SHRUNK, (act(node, "a", 1), waits(cpu=2)), act(asks_for_less)),
    Story("NodeUnschedulable", EventKind.OWN_TOLERATIONS, (act(node, "a", cordoned=True), waits()), act(now_tolerates, "")),
    Story("TaintToleration", EventKind.OWN_TOLERATIONS, (act(node, "a", tainted=True), waits()), act(now_tolerates, "colour")),
    Story("InterPodAffinity", EventKind.OWN_LABELS, (A, stands(1, "a", spec=APART), waits()), act(recoloured, 0, "green", False)),
    Story("PodTopologySpread", EventKind.OWN_LABELS, UNEVEN, act(recoloured, 0, "blue", False)),
    Story("NodeResourcesFit", EventKind.POD_GONE, (act(node, "a", 1), stands(1, "a"), waits()), act(gone, 0)),
    Story("NodeResourcesFit", EventKind.POD_SHRUNK, (act(node, "a", 2), stands(1, "a", cpu=2), waits()), act(shrunk, 0)),
    Story("NodeResourcesFit", EventKind.NODE_ADDED, (act(node, "a", 1), waits(cpu=2)), act(node, "b", 2)),
    Story("NodeResourcesFit", EventKind.NODE_ALLOCATABLE, (act(node, "a", 1), waits(cpu=2)), act(resized, "a", 2)),
    Story("NodeUnschedulable", EventKind.NODE_ADDED, (act(node, "a", cordoned=True), waits()), act(node, "b")),
    Story("NodeUnschedulable", EventKind.NODE_TAINTS, (act(node, "a", cordoned=True), waits()), act(cordoned, "a", False)),
    Story("TaintToleration", EventKind.NODE_ADDED, (act(node, "a", tainted=True), waits()), act(node, "b")),
    Story("TaintToleration", EventKind.NODE_TAINTS, (act(node, "a", tainted=True), waits()), act(tainted, "a", False)),
    Story("NodeAffinity", EventKind.NODE_ADDED, (A, waits(BLUE)), act(node, "b", colour="blue")),
    Story("NodeAffinity", EventKind.NODE_LABELS, (A, waits(BLUE)), act(labelled, "a", "colour", "blue")),
    Story("NodePorts", EventKind.POD_GONE, (A, stands(1, "a", spec=WEB), waits(WEB)), act(gone, 0)),
    Story("NodePorts", EventKind.NODE_ADDED, (A, stands(1, "a", spec=WEB), waits(WEB)), act(node, "b")),
    Story("InterPodAffinity", EventKind.POD_PLACED, (A, waits(NEAR)), stands(1, "a")),
    Story("InterPodAffinity", EventKind.POD_GONE, (A, stands(1, "a"), waits(FAR)), act(gone, 0)),
    Story("InterPodAffinity", EventKind.POD_LABELS, (A, stands(1, "a"), waits(FAR)), act(recoloured, 0, "red", True)),
    Story("InterPodAffinity", EventKind.NODE_REMOVED, (A, act(node, "b"), stands(1, "b"), waits(FAR)), act(without, "b")),
    Story("InterPodAffinity", EventKind.NODE_LABELS, (A, act(node, "b"), stands(1, "b"), waits(FAR)), act(labelled, "b", ZONE, "y")),
    Story("InterPodAffinity", EventKind.NODE_ADDED, (A, stands(1, "a"), waits(FAR)), act(node, "b", zone="y")),
    Story(
        "InterPodAffinity", EventKind.NAMESPACE, (A, act(namespace, "blue"), stands(1, "a"), waits(NEAR_IN_SPACES)), act(namespace, "red")
    ),
    Story("PodTopologySpread", EventKind.POD_PLACED, UNEVEN, stands(4, "c", "red")),
    Story("PodTopologySpread", EventKind.POD_GONE, UNEVEN, act(gone, 0)),
    Story("PodTopologySpread", EventKind.POD_LEAVING, UNEVEN, act(leaving, 0)),
    Story("PodTopologySpread", EventKind.POD_LABELS, UNEVEN, act(recoloured, 0, "blue", True)),
    Story("PodTopologySpread", EventKind.NODE_REMOVED, UNEVEN, act(without, "c")),
    Story("PodTopologySpread", EventKind.NODE_LABELS, UNEVEN, act(labelled, "c", ZONE, "x")),
    Story("PodTopologySpread", EventKind.NODE_TAINTS, UNEVEN, act(tainted, "c", True)),
    Story("PodTopologySpread", EventKind.NODE_ADDED, UNEVEN, act(node, "d", zone="y")),
    Story("PodTopologySpread", EventKind.SELECTORS, (*UNEVEN[:-1], act(service, "red"), waits()), act(service, "blue"), EVEN_BY_DEFAULT),
]


# ---- of the right kind, and no help


def with_memory(api: MemoryServer, name: str, memory: str) -> None:
    """A pod that stands there, and asks for memory."""
    there = api.found(PODS, name)
    container = {**there["spec"]["containers"][0], "resources": {"requests": {"cpu": "1", "memory": memory}}}
    api.put(PODS, name, metadata=there["metadata"], spec={**there["spec"], "containers": [container]})


def resized_in(api: MemoryServer, name: str, **amounts: str) -> None:
    there = api.found(NODES, name)
    has = {"allocatable": {**there["status"]["allocatable"], **amounts}}
    api.put(NODES, name, metadata=there["metadata"], spec=there["spec"], status=has)


def elsewhere(api: MemoryServer, node: str, colour: str) -> None:
    """A pod of another namespace."""
    spec = {"containers": [{"name": "c"}], "schedulerName": "other", "nodeName": node}
    api.put(PODS, "far", "other", metadata={"labels": {"colour": colour}}, spec=spec, status={"phase": "Running"})


FULL: Any = (act(node, "a", 1), stands(1, "a"), act(with_memory, "p1", "2Gi"), waits())
TOO_SMALL = (act(node, "a", 1), waits(cpu=4))

IN_VAIN = [
    Story("NodeResourcesFit", EventKind.OWN_LABELS, TOO_SMALL, act(recoloured, 0, "blue", False)),
    Story("NodeUnschedulable", EventKind.OWN_TOLERATIONS, (act(node, "a", cordoned=True), waits()), act(now_tolerates, "colour")),
    Story("NodeResourcesFit", EventKind.POD_SHRUNK, FULL, act(with_memory, "p1", "1Gi")),
    Story("NodeResourcesFit", EventKind.NODE_ADDED, TOO_SMALL, act(node, "b", 3)),
    Story("NodeResourcesFit", EventKind.NODE_ALLOCATABLE, TOO_SMALL, act(resized, "a", 3)),
    Story("NodeResourcesFit", EventKind.NODE_ALLOCATABLE, FULL, act(resized_in, "a", memory="200Gi")),
    Story("NodeUnschedulable", EventKind.NODE_ADDED, (act(node, "a", cordoned=True), waits()), act(node, "b", cordoned=True)),
    Story("NodeUnschedulable", EventKind.NODE_TAINTS, (act(node, "a", cordoned=True), waits()), act(tainted, "a", True)),
    Story("TaintToleration", EventKind.NODE_ADDED, (act(node, "a", tainted=True), waits()), act(node, "b", tainted=True)),
    Story("TaintToleration", EventKind.NODE_TAINTS, (act(node, "a", tainted=True), waits()), act(cordoned, "a", True)),
    Story("NodeAffinity", EventKind.NODE_ADDED, (A, waits(BLUE)), act(node, "b", colour="red")),
    Story("NodeAffinity", EventKind.NODE_LABELS, (A, waits(BLUE)), act(labelled, "a", ZONE, "y")),
    *(
        Story("NodePorts", EventKind.POD_GONE, (A, stands(1, "a", spec=other), stands(2, "a", spec=WEB), waits(WEB)), act(gone, 0))
        for other in ({}, MAIL, WEB_OVER_UDP)
    ),
    Story("InterPodAffinity", EventKind.POD_PLACED, (A, waits(NEAR)), stands(1, "a", "red")),
    Story("InterPodAffinity", EventKind.POD_GONE, (A, stands(1, "a", "red"), stands(2, "a"), waits(FAR)), act(gone, 0)),
    Story(
        "InterPodAffinity", EventKind.POD_LABELS, (A, stands(1, "a", "red"), stands(2, "a"), waits(FAR)), act(recoloured, 0, "green", True)
    ),
    Story("InterPodAffinity", EventKind.POD_PLACED, (A, waits(NEAR)), act(elsewhere, "a", "blue")),
    Story("PodTopologySpread", EventKind.POD_PLACED, UNEVEN, act(elsewhere, "c", "red")),
    Story("PodTopologySpread", EventKind.SELECTORS, UNEVEN, act(service, "blue")),
]
