"""Small clusters in which something happens again and again, by theme: what a filter of kube-scheduler refuses, and what ends its refusal.

A step is an action on the server with its arguments; each theme has its own, and all have nodes and pods that come, go and change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from pumice.api.kinds import (
    CSI_CAPACITIES,
    CSI_DRIVERS,
    CSI_NODES,
    DEVICE_CLASSES,
    DISRUPTION_BUDGETS,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    VOLUME_CLAIMS,
    VOLUMES,
    Kind,
)
from pumice.client.failures import ApiError
from tests.live.memory import MemoryServer

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREEMPTS = "PreemptLowerPriority"
TAINT = [{"key": "colour", "value": "x", "effect": "NoSchedule"}]
Step = tuple[Callable[..., None], tuple[Any, ...]]
Spec = dict[str, Any]

NAMES, ZONES = st.sampled_from("abc"), st.sampled_from("xy")
COLOURS, KEYS = st.sampled_from(["red", "blue"]), st.sampled_from([HOST, ZONE])
NUMBERS, FLAGS = st.integers(0, 9), st.booleans()
CLAIMS = st.sampled_from(["c0", "c1"])


# ---- nodes and pods, in every theme


def node(
    api: MemoryServer, name: str, cpu: int = 2, zone: str = "x", colour: str = "red", tainted: bool = False, cordoned: bool = False
) -> None:
    labels = {HOST: name, ZONE: zone, "colour": colour}
    amounts = {"cpu": str(cpu), "memory": "100Gi", "pods": "110"}
    spec = {"taints": TAINT if tainted else [], "unschedulable": cordoned}
    api.put(NODES, name, metadata={"labels": labels}, spec=spec, status={"allocatable": amounts, "capacity": amounts})


def changed(api: MemoryServer, name: str, **spec: Any) -> None:
    """One thing about a node, if it is there."""
    if ("nodes", "", name) in api.objects:
        there = api.found(NODES, name)
        api.put(NODES, name, metadata=there["metadata"], spec={**there["spec"], **spec}, status=there["status"])


def tainted(api: MemoryServer, name: str, yes: bool) -> None:
    changed(api, name, taints=TAINT if yes else [])


def cordoned(api: MemoryServer, name: str, yes: bool) -> None:
    changed(api, name, unschedulable=yes)


def resized(api: MemoryServer, name: str, cpu: int) -> None:
    if ("nodes", "", name) in api.objects:
        there = api.found(NODES, name)
        amounts = {**there["status"]["allocatable"], "cpu": str(cpu)}
        api.put(NODES, name, metadata=there["metadata"], spec=there["spec"], status={"allocatable": amounts, "capacity": amounts})


def labelled(api: MemoryServer, name: str, key: str, value: str) -> None:
    if ("nodes", "", name) in api.objects:
        there = api.found(NODES, name)
        labels = {**there["metadata"]["labels"], key: value}
        api.put(NODES, name, metadata={**there["metadata"], "labels": labels}, spec=there["spec"], status=there["status"])


def without(api: MemoryServer, name: str) -> None:
    api.remove(NODES, name)


def pod(api: MemoryServer, number: int, cpu: int, colour: str, spec: Spec) -> None:
    name = f"p{number}"
    if any(obj["metadata"]["name"] == name for obj in api.all(PODS)):
        return
    more = dict(spec)
    container = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}, "ports": more.pop("ports", [])}
    made = {"containers": [container], "schedulerName": "default-scheduler", **more}
    api.put(PODS, name, metadata={"labels": {"colour": colour}}, spec=made, status={"phase": "Pending"})


def some(api: MemoryServer, number: int, *, placed: bool) -> Spec | None:
    found = [obj for obj in api.all(PODS) if bool(obj["spec"].get("nodeName")) == placed]
    return found[number % len(found)] if found else None


def gone(api: MemoryServer, number: int) -> None:
    if (found := some(api, number, placed=True)) is not None:
        api.remove(PODS, found["metadata"]["name"])


def withdrawn(api: MemoryServer, number: int) -> None:
    """One that waits, perhaps for room that was made for it."""
    if (found := some(api, number, placed=False)) is not None:
        api.remove(PODS, found["metadata"]["name"])


def leaving(api: MemoryServer, number: int) -> None:
    """It is asked to go, and takes its time."""
    if (found := some(api, number, placed=True)) is not None:
        meta = {**found["metadata"], "deletionTimestamp": "2023-11-14T23:00:00Z"}
        api.put(PODS, found["metadata"]["name"], metadata=meta)


def finished(api: MemoryServer, number: int) -> None:
    if (found := some(api, number, placed=True)) is not None:
        api.put(PODS, found["metadata"]["name"], metadata=found["metadata"], status={"phase": "Succeeded"})


def recoloured(api: MemoryServer, number: int, colour: str, placed: bool) -> None:
    if (found := some(api, number, placed=placed)) is not None:
        api.put(PODS, found["metadata"]["name"], metadata={**found["metadata"], "labels": {"colour": colour}})


def shrunk(api: MemoryServer, number: int) -> None:
    if (found := some(api, number, placed=True)) is not None:
        less = [{**each, "resources": {"requests": {"cpu": "1"}}} for each in found["spec"]["containers"]]
        api.put(PODS, found["metadata"]["name"], metadata=found["metadata"], spec={**found["spec"], "containers": less})


def pods(spec: st.SearchStrategy[Spec]) -> st.SearchStrategy[Step]:
    return st.tuples(st.just(pod), st.tuples(NUMBERS, st.sampled_from([1, 1, 1, 2]), COLOURS, spec))


def act(what: Callable[..., None], *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.tuples(st.just(what), st.tuples(*arguments))


def unbindable(api: MemoryServer, times: int) -> None:
    """The next binds are refused."""
    refusals = iter(range(times))

    def refuse(verb: str, resource: Kind, name: str) -> None:
        if verb == "create" and resource == PODS and next(refusals, None) is not None:
            raise ApiError(403, "Forbidden", "not now")

    api.before_write = refuse


barred = act(node, NAMES, st.integers(1, 3), ZONES, COLOURS, FLAGS, FLAGS)
unlucky = act(unbindable, st.integers(1, 3))
EVERYWHERE = (
    act(node, NAMES, st.integers(2, 6), ZONES, COLOURS),
    act(without, st.sampled_from("bc")),
    act(gone, NUMBERS),
    act(finished, NUMBERS),
    act(recoloured, NUMBERS, COLOURS, FLAGS),
    act(shrunk, NUMBERS),
    pods(st.just({})),
)


# ---- other pods


def terms(kind: str, colour: str, key: str, spaces: bool) -> Spec:
    term: Spec = {"labelSelector": {"matchLabels": {"colour": colour}}, "topologyKey": key}
    if spaces:
        term["namespaceSelector"] = {"matchLabels": {"team": "red"}}
    return {"affinity": {kind: {REQUIRED: [term]}}}


def spread(colour: str, key: str, domains: int, policy: str, affinity: str) -> Spec:
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "minDomains": domains}
    constraint |= {"nodeTaintsPolicy": policy, "nodeAffinityPolicy": affinity, "labelSelector": {"matchLabels": {"colour": colour}}}
    return {"topologySpreadConstraints": [constraint]}


def port(number: int, protocol: str, address: str) -> Spec:
    return {"ports": [{"containerPort": 1, "hostPort": number, "protocol": protocol, "hostIP": address}]}


def namespace(api: MemoryServer, colour: str) -> None:
    api.put(NAMESPACES, "default", metadata={"labels": {"team": colour}})


repainted = act(recoloured, NUMBERS, COLOURS, st.just(True))
large = st.tuples(st.just(pod), st.tuples(NUMBERS, st.just(2), COLOURS, st.just(dict[str, Any]())))
near = pods(st.builds(terms, st.just("podAffinity"), COLOURS, KEYS, FLAGS))
far = pods(st.builds(terms, st.just("podAntiAffinity"), COLOURS, KEYS, FLAGS))
policies = st.sampled_from(["Honor", "Ignore"])
spreading = st.builds(
    lambda number, colour, *more: (pod, (number, 1, colour, spread(colour, *more))),
    NUMBERS,
    COLOURS,
    KEYS,
    st.integers(1, 3),
    policies,
    policies,
)
ports = pods(
    st.builds(port, st.sampled_from([80, 80, 80, 81]), st.sampled_from(["TCP", "TCP", "TCP", "UDP"]), st.sampled_from(["", "", "10.0.0.1"]))
)
selecting = pods(st.builds(lambda colour: {"nodeSelector": {"colour": colour}}, COLOURS))
tolerating = pods(st.just({"tolerations": [{"operator": "Exists"}]}))
gated = pods(st.just({"schedulingGates": [{"name": "example.com/hold"}]}))


def opened(api: MemoryServer, number: int) -> None:
    """The gates of a pod that waits are taken away."""
    if (found := some(api, number, placed=False)) is not None:
        api.put(PODS, found["metadata"]["name"], metadata=found["metadata"], spec={**found["spec"], "schedulingGates": []})


# ---- volumes


def claiming(*names: str) -> Spec:
    return {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]}


def claim(api: MemoryServer, name: str, storage: str, mode: str, bound: bool) -> None:
    """Bound to a volume of its own name, or not yet."""
    if ("persistentvolumeclaims", "default", name) in api.objects:
        return
    done = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}} if bound else {}
    spec = {"storageClassName": storage, "accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}}
    spec |= {"volumeName": f"v-{name}"} if bound else {}
    api.put(VOLUME_CLAIMS, name, metadata=done, spec=spec, status={"phase": "Bound" if bound else "Pending"})


def no_claim(api: MemoryServer, name: str) -> None:
    api.remove(VOLUME_CLAIMS, name)


def volume(api: MemoryServer, name: str, zone: str, where: str, storage: str) -> None:
    """For the claim of that name: bound to a zone by its labels, or to nodes of a zone by its affinity, or anywhere."""
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]}}
    known = api.objects.get(("persistentvolumes", "", f"v-{name}"), {}).get("spec", {})
    spec: Spec = {"storageClassName": storage, "accessModes": ["ReadWriteOnce", "ReadWriteOncePod"], "capacity": {"storage": "1Gi"}}
    spec |= {"csi": {"driver": "csi.test", "volumeHandle": name}, **{key: known[key] for key in ("claimRef",) if key in known}}
    spec |= {"nodeAffinity": affinity} if where == "affinity" else {}
    labels = {"labels": {ZONE: zone}} if where == "labels" else {}
    api.put(VOLUMES, f"v-{name}", metadata=labels, spec=spec, status={"phase": "Available"})


def storage_class(api: MemoryServer, zone: str, provisioner: str) -> None:
    where = [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}]
    api.put(STORAGE_CLASSES, "late", provisioner=provisioner, volumeBindingMode="WaitForFirstConsumer", allowedTopologies=where)


def capacity(api: MemoryServer, zone: str, amount: str) -> None:
    api.put(CSI_DRIVERS, "csi.test", spec={"storageCapacity": True})
    api.put(CSI_CAPACITIES, f"in-{zone}", storageClassName="late", capacity=amount, nodeTopology={"matchLabels": {ZONE: zone}})


def limit(api: MemoryServer, name: str, count: int) -> None:
    api.put(CSI_NODES, name, spec={"drivers": [{"name": "csi.test", "nodeID": name, "allocatable": {"count": count}}]})


def limits(api: MemoryServer, count: int) -> None:
    for name in "abc":
        limit(api, name, count)


def attached(api: MemoryServer, name: str, on: str) -> None:
    source = {"persistentVolumeName": f"v-{name}"}
    api.put(VOLUME_ATTACHMENTS, f"{name}-{on}", spec={"attacher": "csi.test", "nodeName": on, "source": source})


def detached(api: MemoryServer, name: str, on: str) -> None:
    api.remove(VOLUME_ATTACHMENTS, f"{name}-{on}")


def whole_claim(api: MemoryServer, name: str) -> None:
    claim(api, name, "", "ReadWriteOnce", True)
    volume(api, name, "x", "", "")


STORAGE = st.sampled_from(["", "late"])
with_claims = pods(st.sampled_from([claiming("c0"), claiming("c1"), claiming("c0", "c1")]))
claims = act(claim, CLAIMS, STORAGE, st.sampled_from(["ReadWriteOnce", "ReadWriteOncePod"]), FLAGS)
volumes = act(volume, CLAIMS, ZONES, st.sampled_from(["", "labels", "affinity"]), STORAGE)


# ---- devices


def devices(api: MemoryServer, name: str, count: int) -> None:
    api.put(DEVICE_CLASSES, "gpu", spec={})
    found = [{"name": f"gpu-{number}"} for number in range(count)]
    api.put(
        RESOURCE_SLICES, name, spec={"driver": "d", "nodeName": name, "pool": {"name": name, "resourceSliceCount": 1}, "devices": found}
    )


def device_claim(api: MemoryServer, name: str, count: int) -> None:
    asked = [{"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}}]
    if ("resourceclaims", "default", name) not in api.objects:
        api.put(RESOURCE_CLAIMS, name, spec={"devices": {"requests": asked}}, status={})


def given_back(api: MemoryServer, name: str) -> None:
    """What the controller of claims does when a claim's pods are gone."""
    found = api.objects.get(("resourceclaims", "default", name))
    users = {user["name"] for user in ((found or {}).get("status") or {}).get("reservedFor") or ()}
    if found is not None and not users & {obj["metadata"]["name"] for obj in api.all(PODS)}:
        api.put(RESOURCE_CLAIMS, name, metadata=found["metadata"], status={})


with_devices = pods(st.builds(lambda name: {"resourceClaims": [{"name": "g", "resourceClaimName": name}]}, CLAIMS))


# ---- priorities


def budget(api: MemoryServer, colour: str, least: int) -> None:
    api.put(
        DISRUPTION_BUDGETS,
        colour,
        spec={"minAvailable": least, "selector": {"matchLabels": {"colour": colour}}},
        status={"disruptionsAllowed": 0},
    )


important = pods(
    st.builds(
        lambda value, policy: {"priority": value, "preemptionPolicy": policy},
        st.integers(0, 3),
        st.sampled_from([PREEMPTS, PREEMPTS, "Never"]),
    )
)


THEMES: dict[str, tuple[st.SearchStrategy[Step], ...]] = {
    "room": (act(resized, NAMES, st.integers(1, 3)), act(shrunk, NUMBERS), large, large, gated, act(opened, NUMBERS), unlucky),
    "taints": (act(tainted, NAMES, FLAGS), act(tainted, NAMES, FLAGS), tolerating),
    "cordons": (act(cordoned, NAMES, FLAGS), act(cordoned, NAMES, FLAGS), tolerating),
    "selectors": (act(labelled, NAMES, st.just("colour"), COLOURS), selecting, selecting),
    "priorities": (important, important, important, barred, far, act(budget, COLOURS, st.integers(0, 2)), act(withdrawn, NUMBERS), unlucky),
    "near": (near, near, repainted, act(labelled, NAMES, st.just(ZONE), ZONES), act(namespace, COLOURS)),
    "far": (far, far, far, repainted, act(labelled, NAMES, st.just(ZONE), ZONES), act(namespace, COLOURS)),
    "spread": (
        spreading,
        spreading,
        spreading,
        repainted,
        act(leaving, NUMBERS),
        act(labelled, NAMES, st.just(ZONE), ZONES),
        act(tainted, NAMES, FLAGS),
        act(cordoned, st.just("b"), st.just(True)),
    ),
    "ports": (ports, ports, ports, act(gone, NUMBERS), act(without, NAMES)),
    "claims": (with_claims, with_claims, claims, claims, volumes, volumes, act(no_claim, CLAIMS), unlucky),
    "made": (
        with_claims,
        with_claims,
        claims,
        act(storage_class, ZONES, st.just("csi.test")),
        act(capacity, ZONES, st.sampled_from(["0", "9Gi"])),
        unlucky,
        act(limit, NAMES, st.integers(0, 2)),
    ),
    "limits": (
        with_claims,
        with_claims,
        act(whole_claim, CLAIMS),
        act(whole_claim, CLAIMS),
        act(limits, st.integers(0, 1)),
        act(limits, st.integers(0, 1)),
        act(limit, NAMES, st.integers(0, 2)),
        act(attached, CLAIMS, NAMES),
        act(detached, CLAIMS, NAMES),
    ),
    "devices": (
        with_devices,
        with_devices,
        act(devices, NAMES, st.integers(0, 2)),
        act(device_claim, CLAIMS, st.integers(1, 2)),
        unlucky,
        act(given_back, CLAIMS),
    ),
}


def crowds(theme: str) -> st.SearchStrategy[list[Step]]:
    """Steps of a theme, and of what goes on in every one."""
    return st.lists(st.one_of(*THEMES[theme] * 3, *EVERYWHERE), min_size=10, max_size=24)
