"""Where a pod with claims may go is what a plain reading of the rules says, one claim, one volume and one node at a time; pod after pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from pumice.scheduler.model import status
from pumice.scheduler.plugins.kube.indexes.assumed_volumes import AssumedVolumes
from pumice.scheduler.plugins.kube.node_volume_limits import NodeVolumeLimits
from pumice.scheduler.plugins.kube.volume_restrictions import VolumeRestrictions
from pumice.scheduler.plugins.kube.volume_zone import VolumeZone
from pumice.testing import ObjectBuilder, cluster, manifest
from tests.nodes_for_pods.asking import ZONE, admitted, zoned
from tests.nodes_for_pods.storage import Thing, binding, claim, storage_class, using, volume
from tests.samples import times

ZONES = {"a": "z1", "b": "z2", "c": ""}
CLASSES = {
    "local": storage_class(),
    "made": storage_class("made", "csi.x"),
    "there": storage_class("there", "csi.x", allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["z1"]}]}]),
    "now": storage_class("now", "csi.x", volumeBindingMode="Immediate"),
}
SELECTED = "volume.kubernetes.io/selected-node"


class Given(NamedTuple):
    volumes: list[ObjectBuilder]
    claims: list[ObjectBuilder]
    existing: list[tuple[str, list[str]]]  #: node, claims
    pending: list[list[str]]
    room: str  #: the zone in which volumes can be made, "" for any
    limits: dict[str, int]


def some(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


@st.composite
def volumes(draw: st.DrawFn, number: int) -> ObjectBuilder:
    spec: Thing = {"storageClassName": draw(some("local", "local", "made")), "accessModes": draw(some(["ReadWriteOnce"], ["ReadOnlyMany"]))}
    if draw(st.booleans()):
        spec["claimRef"] = {"namespace": "default", "name": f"c{draw(st.integers(0, 5))}"}
        if draw(some(False, False, True)):
            spec["claimRef"]["uid"] = "of another"
    if draw(st.booleans()):
        spec["csi"] = {"driver": "csi.x", "volumeHandle": f"h{number}"}
    if draw(some(False, False, True)):
        spec["volumeMode"] = "Block"
    labels = {ZONE: draw(some("z1", "z2", "z1__z2"))} if draw(some(False, False, True)) else {}
    phase = draw(some("Available", "Available", "Released"))
    # no two of a size: which of two alike is taken is left to chance
    return volume(f"v{number}", f"{draw(st.integers(1, 4)) * 10 + number}Gi", draw(some("", "a", "a b", "b c")), labels, phase, **spec)


@st.composite
def claims(draw: st.DrawFn, number: int, count: int) -> ObjectBuilder:
    bound_to = draw(some("", "", "", "v9", *(f"v{i}" for i in range(count))))
    modes = draw(some(["ReadWriteOnce"], ["ReadWriteOnce"], ["ReadWriteOncePod"]))
    kind = draw(some("local", "local", "made", "made", "there", "now", "none"))
    made = claim(f"c{number}", bound_to, f"{draw(st.integers(1, 4)) * 10 + number}Gi", storageClassName=kind, accessModes=modes)
    if draw(some(False, False, False, True)):
        return made.annotation(SELECTED, draw(some("a", "b", "gone")))
    return made


@st.composite
def states(draw: st.DrawFn) -> Given:
    count = draw(st.integers(0, 5))
    names = [f"c{i}" for i in range(6)]
    wanted = st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True)
    return Given(
        [draw(volumes(number)) for number in range(count)],
        [draw(claims(number, count)) for number in range(6)],
        draw(st.lists(st.tuples(some("a", "b", "c"), wanted), max_size=2)),
        draw(st.lists(wanted, min_size=1, max_size=4)),
        draw(some("", "z1")),
        {name: draw(st.integers(0, 3)) for name in draw(some("", "a", "ab"))},
    )


# -- the rules, read plainly


class Reference:
    """What is known of volumes and claims, and what placed pods were promised."""

    def __init__(self, given: Given) -> None:
        self.given = given
        self.volumes = {each.document["metadata"]["name"]: each.document for each in given.volumes}
        self.claims = {each.document["metadata"]["name"]: each.document for each in given.claims}
        self.owner = {name: dict(each["spec"]["claimRef"]) for name, each in self.volumes.items() if "claimRef" in each["spec"]}
        self.selected = {name: each["metadata"]["annotations"][SELECTED] for name, each in self.claims.items() if selects(each)}
        self.promised: dict[str, str] = {}  #: claim to the volume that a placed pod will get for it; no other is made elsewhere
        self.placed = list(given.existing)

    def admits(self, wanted: list[str], node: str) -> bool:
        if any(self._exclusive(name) for name in wanted) or not self._within_limits(wanted, node):
            return False
        if not all(self._zone_suits(name, node) for name in wanted):
            return False
        return self.bindings(wanted, node) is not None

    def place(self, wanted: list[str], node: str) -> None:
        for name, chosen in (self.bindings(wanted, node) or {}).items():
            if chosen:
                self.owner[chosen] = {"namespace": "default", "name": name}
                self.promised[name] = chosen
            else:
                self.selected[name] = node
        self.placed.append((node, wanted))

    def bindings(self, wanted: list[str], node: str) -> dict[str, str] | None:
        """Each waiting claim's volume, "" for one that is to be made; None if the pod cannot be there."""
        chosen: dict[str, str] = {}
        waiting, to_make = [], []
        for name in wanted:
            asked = self.claims[name]
            if "volumeName" in asked["spec"]:
                if asked["spec"]["volumeName"] not in self.volumes or not reaches(self.volumes[asked["spec"]["volumeName"]], node):
                    return None
            elif not self._waits(name):
                return None
            elif name in self.promised:
                if not reaches(self.volumes[self.promised[name]], node):
                    return None
                chosen[name] = self.promised[name]
            elif name in self.selected:
                if self.selected[name] != node:
                    return None
                to_make.append(name)
            else:
                waiting.append(name)
        for name in sorted(waiting, key=self._size):
            found = self._smallest(name, node, chosen)
            if found:
                chosen[name] = found
            else:
                to_make.append(name)
        return {**chosen, **dict.fromkeys(to_make, "")} if all(self._can_be_made(name, node) for name in to_make) else None

    def _smallest(self, name: str, node: str, chosen: dict[str, str]) -> str:
        free = [each for each in self.volumes if each not in chosen.values() and self._would_do(name, each)]
        reserved = [each for each in free if each in self.owner]
        for each in reserved:
            return each if reaches(self.volumes[each], node) else ""
        suitable = [each for each in free if self._suits(name, each) and reaches(self.volumes[each], node)]
        return min(suitable, key=lambda each: size(self.volumes[each]["spec"]["capacity"]), default="")

    def _would_do(self, name: str, volume_name: str) -> bool:
        asked, offered = self.claims[name]["spec"], self.volumes[volume_name]["spec"]
        owner = self.owner.get(volume_name)
        if owner is not None and (owner["name"] != name or owner.get("uid", f"default-{name}") != f"default-{name}"):
            return False
        if offered.get("volumeMode") or asked["storageClassName"] != offered["storageClassName"]:
            return False
        return size(offered["capacity"]) >= self._size(name)

    def _suits(self, name: str, volume_name: str) -> bool:
        found = self.volumes[volume_name]
        return found["status"]["phase"] == "Available" and set(self.claims[name]["spec"]["accessModes"]) <= set(
            found["spec"]["accessModes"]
        )

    def _waits(self, name: str) -> bool:
        return self.claims[name]["spec"]["storageClassName"] in {"local", "made", "there"}

    def _size(self, name: str) -> int:
        return size(self.claims[name]["spec"]["resources"]["requests"])

    def _can_be_made(self, name: str, node: str) -> bool:
        kind = self.claims[name]["spec"]["storageClassName"]
        allowed = kind == "made" or (kind == "there" and ZONES[node] == "z1")
        return allowed and self.given.room in ("", ZONES[node])

    def _exclusive(self, name: str) -> bool:
        used = any(name in others for _, others in self.placed)
        return used and "ReadWriteOncePod" in self.claims[name]["spec"]["accessModes"]

    def _zone_suits(self, name: str, node: str) -> bool:
        found = self.volumes.get(self.claims[name]["spec"].get("volumeName", ""))
        zones = found["metadata"].get("labels", {}).get(ZONE, "") if found else ""
        return not zones or not ZONES[node] or ZONES[node] in zones.split("__")

    def _within_limits(self, wanted: list[str], node: str) -> bool:
        if node not in self.given.limits:
            return True
        there = {handle for on, others in self.placed if on == node for handle in self._handles(others)}
        more = set(self._handles(wanted)) - there
        return not more or len(there) + len(more) <= self.given.limits[node]

    def _handles(self, names: list[str]) -> Iterator[str]:
        for name in names:
            spec = self.claims[name]["spec"]
            found = self.volumes.get(spec.get("volumeName", ""))
            if found is None:
                if spec["storageClassName"] in {"made", "there", "now"}:
                    yield f"claim {name}"
            elif "csi" in found["spec"]:
                yield found["spec"]["csi"]["volumeHandle"]


def selects(thing: Thing) -> bool:
    return SELECTED in thing["metadata"].get("annotations", {})


def size(amounts: Thing) -> int:
    return int(amounts["storage"].removesuffix("Gi"))


def reaches(thing: Thing, node: str) -> bool:
    terms = thing["spec"].get("nodeAffinity", {}).get("required", {}).get("nodeSelectorTerms")
    return terms is None or node in terms[0]["matchExpressions"][0]["values"]


# -- and ours


def compare(state: Given) -> None:
    reference = Reference(state)
    published = {"nodeTopology": {"matchLabels": {ZONE: state.room} if state.room else {}}, "capacity": "900Gi"}
    room = [manifest("CSIStorageCapacity", each, storageClassName=each, **published) for each in CLASSES]
    driver = manifest("CSIDriver", "csi.x", spec={"storageCapacity": True})
    limits = [
        manifest("CSINode", name, spec={"drivers": [{"name": "csi.x", "allocatable": {"count": count}}]})
        for name, count in state.limits.items()
    ]
    existing = [using(f"x{i}", *wanted).on(node) for i, (node, wanted) in enumerate(state.existing)]
    asking = [using(f"p{i}", *wanted) for i, wanted in enumerate(state.pending)]
    made = cluster(*zoned(**ZONES), *CLASSES.values(), driver, *room, *limits, *state.volumes, *state.claims, *existing, *asking)
    made.index(AssumedVolumes)
    for i, wanted in enumerate(state.pending):
        filters = [VolumeRestrictions(made), NodeVolumeLimits(made), *binding(made), VolumeZone(made)]
        possible = admitted(made, f"default/p{i}", *filters).split()
        assert possible == [name for name in ZONES if reference.admits(wanted, name)], (i, wanted)
        if possible:
            reference.place(wanted, possible[-1])
            made.move(made.tasks[f"default/p{i}"], status.ALLOCATED, made.nodes.rows[possible[-1]])


@settings(max_examples=times(25), deadline=None)
@given(states())
def test_pods_with_claims_go_where_a_plain_reading_of_the_rules_says(state: Given) -> None:
    compare(state)


@pytest.mark.nightly
@settings(max_examples=20_000, deadline=None)
@given(states())
def test_pods_with_claims_go_where_a_plain_reading_of_the_rules_says_many_times(state: Given) -> None:
    compare(state)
