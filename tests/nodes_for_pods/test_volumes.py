"""Volumes: where a pod can have those it has, and where it could get those it waits for."""

from __future__ import annotations

import pytest

from pumice.scheduler.config import KUBE_DEFAULT, config_text, read_configurations
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.feature_gates import release
from pumice.scheduler.model import status
from pumice.scheduler.plugins.kube.indexes.assumed_volumes import AssumedVolumes
from pumice.scheduler.plugins.kube.requested_to_capacity_ratio import ShapePoint
from pumice.scheduler.plugins.kube.volume_binding import BoundVolumes, StorageScorer, WaitingVolumes
from pumice.scheduler.plugins.kube.volume_restrictions import VolumeRestrictions
from pumice.scheduler.plugins.kube.volume_zone import VolumeZone
from pumice.scheduler.registry import PLUGINS
from pumice.testing import NOW, ObjectBuilder, PodBuilder, cluster, manifest, node, pod
from tests.kube_scheduler.stage import cluster as of_profiles
from tests.nodes_for_pods.asking import ZONE, admitted, refusals, scores
from tests.nodes_for_pods.storage import NODES, Thing, binding, claim, driver, storage_class, using, volume

# -- claims that are bound, or cannot be used


def test_a_bound_volume_is_used_where_it_can_be_reached() -> None:
    made = cluster(*NODES, volume("v", nodes="b", phase="Bound"), claim("c", "v"), using("p", "c"))
    assert refusals(made, "default/p", *binding(made)) == dict.fromkeys("ac", "node(s) didn't match PersistentVolume's node affinity!")


def test_a_claim_on_a_volume_that_is_gone_can_be_used_nowhere() -> None:
    made = cluster(*NODES, claim("c", "v"), using("p", "c"))
    refused = refusals(made, "default/p", *binding(made))
    assert refused == dict.fromkeys("abc", "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)!")


@pytest.mark.parametrize(
    ("things", "reason"),
    [
        ([], 'persistentvolumeclaim "c" not found!'),
        (
            [claim("c").having("metadata", "deletionTimestamp", value="2026-01-01T00:00:00Z")],
            'persistentvolumeclaim "c" is being deleted!',
        ),
        ([claim("c", phase="Lost")], 'persistentvolumeclaim "c" bound to non-existent persistentvolume ""!'),
        ([claim("c", "v", phase="Lost")], 'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"!'),
        ([claim("c", storageClassName="other")], "pod has unbound immediate PersistentVolumeClaims!"),
        ([storage_class(), claim("c", "v", bound=False)], "pod has unbound immediate PersistentVolumeClaims!"),
    ],
)
def test_a_claim_in_the_way_is_told(things: list[Thing], reason: str) -> None:
    made = cluster(*NODES, *things, using("p", "c"))
    assert refusals(made, "default/p", *binding(made)) == dict.fromkeys("abc", reason)
    assert WaitingVolumes(made).prepare(made.tasks["default/p"]) is None


def test_a_claim_of_an_ephemeral_volume_is_waited_for_by_the_pods_name() -> None:
    asker = pod("p").having("spec", "volumes", value=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}])
    owned = claim("q-scratch")
    owned = owned.having("metadata", "ownerReferences", value=[{"name": "q", "uid": "default-q", "controller": True}])
    others = [asker.having("metadata", "name", value=name) for name in "qr"]
    made = cluster(*NODES, asker, *others, storage_class(provisioner="x"), owned, claim("r-scratch"))
    waits = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-scratch"!'
    assert refusals(made, "default/p", *binding(made)) == dict.fromkeys("abc", waits)
    assert admitted(made, "default/q", *binding(made)) == "a b c"
    foreign = "PVC default/r-scratch was not created for pod default/r (pod is not owner)!"
    assert refusals(made, "default/r", *binding(made)) == dict.fromkeys("abc", foreign)
    assert BoundVolumes(made).key(made.tasks["default/p"]) != BoundVolumes(made).key(made.tasks["default/q"])


# -- claims that wait for their pod


def test_a_waiting_claim_needs_a_free_volume_within_reach() -> None:
    made = cluster(
        *NODES, storage_class(), volume("v", "5Gi", "b"), claim("c"), claim("big", size="50Gi"), using("p", "c"), using("q", "big")
    )
    assert refusals(made, "default/p", *binding(made)) == dict.fromkeys("ac", "node(s) didn't find available persistent volumes to bind!")
    assert admitted(made, "default/q", *binding(made)) == ""


@pytest.mark.parametrize(
    "wrong",
    [
        {"phase": "Released"},
        {"storageClassName": "other"},
        {"accessModes": ["ReadOnlyMany"]},
        {"volumeMode": "Block"},
        {"volumeAttributesClassName": "gold"},
        {"labels": {"kind": "slow"}},
        {"claimRef": {"namespace": "default", "name": "somebody"}},
        {"claimRef": {"namespace": "default", "name": "c", "uid": "of an earlier one"}},
    ],
)
def test_a_volume_that_does_not_suit_is_not_taken(wrong: Thing) -> None:
    asker = claim("c", selector={"matchLabels": {"kind": "fast"}})
    suits = {"labels": {"kind": "fast"}}
    things = [*NODES, storage_class(), asker, using("p", "c"), volume("v", nodes="a", **suits | wrong)]
    made = cluster(*things)
    assert admitted(made, "default/p", *binding(made)) == ""
    made = cluster(*things, volume("w", nodes="b", **suits))
    assert admitted(made, "default/p", *binding(made)) == "b"


@pytest.mark.parametrize(
    "wrong", [{"size": "1Mi"}, {"storageClassName": "other"}, {"volumeMode": "Block"}, {"volumeAttributesClassName": "gold"}]
)
def test_a_volume_that_is_reserved_for_the_claim_and_would_not_do_is_passed_over(wrong: Thing) -> None:
    reserved = {"claimRef": {"namespace": "default", "name": "c"}}
    first, second = volume("v", nodes="a", **reserved | wrong), volume("w", nodes="b", **reserved)
    made = cluster(*NODES, storage_class(), first, volume("x", nodes="c"), claim("c"), using("p", "c"))
    assert admitted(made, "default/p", *binding(made)) == "c"
    made.put(*second.build())
    assert admitted(made, "default/p", *binding(made)) == "b"


def test_the_old_annotation_names_the_class_even_by_an_empty_word() -> None:
    old = "volume.beta.kubernetes.io/storage-class"
    asker = claim("c", storageClassName="other").annotation(old, "local")
    offered = volume("v", nodes="a", storageClassName="other").annotation(old, "local")
    made = cluster(*NODES, storage_class(), asker, offered, using("p", "c"))
    assert admitted(made, "default/p", *binding(made)) == "a"
    made.put(*asker.annotation(old, "").having("spec", "storageClassName", value="local").build())
    assert refusals(made, "default/p", *binding(made)) == dict.fromkeys("abc", "pod has unbound immediate PersistentVolumeClaims!")


def test_what_a_claim_was_promised_somewhere_is_made_there() -> None:
    """As the annotation says that a scheduler wrote: volumes that are there are not looked at."""
    chosen = claim("c").annotation("volume.kubernetes.io/selected-node", "b")
    made = cluster(*NODES, storage_class(provisioner="made.by/us"), volume("v"), chosen, claim("d"), using("p", "c", "d"))
    refused = refusals(made, "default/p", *binding(made))
    assert refused == dict.fromkeys("ac", "node(s) didn't find available persistent volumes to bind!")
    made.move(made.tasks["default/p"], status.ALLOCATED, 1)
    assert [(each.claim, each.volume) for each in made.index(AssumedVolumes).of_pod(made.tasks["default/p"])] == [
        ("default/c", ""),
        ("default/d", "v"),
    ]


def test_affinity_of_a_volume_goes_by_labels_alone() -> None:
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
    only_a = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z1"]}]}
    for term, where in ((named, "a b c"), (named | only_a, "a")):
        bound = volume("v", phase="Bound", nodeAffinity={"required": {"nodeSelectorTerms": [term]}})
        made = cluster(*NODES, bound, claim("c", "v"), using("p", "c"))
        assert admitted(made, "default/p", *binding(made)) == where


def test_a_class_without_words_on_topology_in_a_term_allows_nothing_by_it() -> None:
    made = cluster(*NODES, storage_class(provisioner="made.by/us", allowedTopologies=[{}]), claim("c"), using("p", "c"))
    assert admitted(made, "default/p", *binding(made)) == ""


def test_a_volume_reserved_for_the_claim_is_the_only_one_it_gets() -> None:
    reserved = volume("v", nodes="a", claimRef={"namespace": "default", "name": "c"})
    made = cluster(*NODES, storage_class(), reserved, volume("other"), claim("c"), using("p", "c"))
    assert admitted(made, "default/p", *binding(made)) == "a"


def test_a_volume_can_be_made_where_the_class_allows() -> None:
    zones = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z2"]}]}]
    fixed = storage_class("local", "made.by/us", allowedTopologies=zones)
    made = cluster(*NODES, fixed, volume("v", nodes="c"), claim("c"), using("p", "c"))
    assert admitted(made, "default/p", *binding(made)) == "b c"
    made = cluster(*NODES, storage_class("local", "made.by/us"), claim("c"), using("p", "c"))
    assert admitted(made, "default/p", *binding(made)) == "a b c"


def test_each_claim_of_a_pod_needs_a_volume_of_its_own_the_smallest_that_will_do() -> None:
    volumes = (
        volume("s", "1Gi", "a"),
        volume("l", "9Gi", "a"),
        volume("x", "9Gi", "b"),
        volume("y", "1Gi", "b"),
        volume("one", "9Gi", "c"),
    )
    made = cluster(*NODES, storage_class(), *volumes, claim("large", size="5Gi"), claim("small"), using("p", "large", "small"))
    assert admitted(made, "default/p", *binding(made)) == "a b"
    made.move(made.tasks["default/p"], status.ALLOCATED, made.nodes.rows["a"])
    decided = made.index(AssumedVolumes).of_pod(made.tasks["default/p"])
    assert [(each.claim, each.volume, each.node) for each in decided] == [("default/large", "l", "a"), ("default/small", "s", "a")]


def test_a_claim_that_a_pod_names_twice_gets_one_volume() -> None:
    made = cluster(*NODES, storage_class(), volume("v"), claim("c"), using("p", "c", "c"))
    assert admitted(made, "default/p", *binding(made)) == "a b c"


def test_a_volume_decided_on_is_taken_until_the_pod_leaves() -> None:
    made = cluster(*NODES, storage_class(), volume("v"), claim("c"), claim("d"), using("p", "c"), using("q", "d"))
    assert admitted(made, "default/q", *binding(made)) == "a b c"
    made.move(made.tasks["default/p"], status.ALLOCATED, 0)
    assert admitted(made, "default/q", *binding(made)) == ""
    made.move(made.tasks["default/p"], status.PENDING, -1)
    assert admitted(made, "default/q", *binding(made)) == "a b c"
    assert made.index(AssumedVolumes).of_pod(made.tasks["default/p"]) == []


def test_what_a_bound_pod_was_given_is_not_given_back_when_it_goes() -> None:
    made = cluster(*NODES, storage_class(), volume("v"), claim("c"), claim("d"), using("p", "c"), using("q", "d"), using("r", "c"))
    made.index(AssumedVolumes)
    first, third = made.tasks["default/p"], made.tasks["default/r"]
    made.move(first, status.ALLOCATED, 0)
    made.decide(first)
    made.move(first, status.RUNNING, 0)
    made.remove("Pod", "default/p")
    made.move(third, status.ALLOCATED, 1)
    made.move(third, status.PENDING, -1)
    assert admitted(made, "default/q", *binding(made)) == ""
    assert [each.volume for each in made.index(AssumedVolumes).of_pod(third)] == ["v"]


def test_a_pod_that_came_with_its_node_decides_nothing() -> None:
    made = cluster(*NODES, storage_class(), volume("v"), claim("c"), claim("d"), using("x", "c").on("a"), using("p", "d"), using("q", "c"))
    assert admitted(made, "default/p", *binding(made)) == "a b c"
    made.move(made.tasks["default/x"], status.RELEASING, 0)
    assert admitted(made, "default/p", *binding(made)) == "a b c"
    made.move(made.tasks["default/q"], status.ALLOCATED, 1)
    assert admitted(made, "default/p", *binding(made)) == ""
    made.move(made.tasks["default/q"], status.PENDING, -1)
    assert admitted(made, "default/p", *binding(made)) == "a b c"


def test_a_volume_given_back_and_taken_by_another_is_not_taken_again() -> None:
    made = cluster(*NODES, storage_class(), volume("v"), volume("w", "9Gi"), claim("c"), claim("d"), using("p", "c"), using("q", "d"))
    first, second, assumed = made.tasks["default/p"], made.tasks["default/q"], made.index(AssumedVolumes)
    for task, to, row in (
        (first, status.ALLOCATED, 0),
        (first, status.PENDING, -1),
        (second, status.ALLOCATED, 0),
        (first, status.ALLOCATED, 0),
    ):
        made.move(task, to, row)
    assert {each.claim: each.volume for each in assumed.by_claim.values()} == {"default/c": "w", "default/d": "v"}


def test_a_claim_that_two_pods_share_is_decided_by_the_first_and_given_back_by_the_last() -> None:
    made = cluster(
        *NODES, storage_class(provisioner="made.by/us"), volume("v", nodes="b c"), claim("c"), claim("d"), *using("p", "c").times(3)
    )
    first, second = made.tasks["default/p-0"], made.tasks["default/p-1"]
    assert admitted(made, "default/p-2", *binding(made)) == "a b c"
    made.move(first, status.ALLOCATED, made.nodes.rows["b"])
    assert admitted(made, "default/p-2", *binding(made)) == "b c"
    made.move(second, status.ALLOCATED, made.nodes.rows["c"])
    made.move(first, status.PENDING, -1)
    assert admitted(made, "default/p-2", *binding(made)) == "b c"
    made.move(second, status.PENDING, -1)
    made.move(first, status.ALLOCATED, made.nodes.rows["a"])
    assert admitted(made, "default/p-2", *binding(made)) == "a"


def test_once_the_claim_object_says_it_nothing_is_assumed() -> None:
    made = cluster(*NODES, storage_class(), volume("v"), volume("w"), claim("c"), claim("d"), using("p", "c"), using("q", "d"))
    made.index(AssumedVolumes)
    made.move(made.tasks["default/p"], status.BINDING, 0)
    made.put(*volume("v", phase="Bound", claimRef={"namespace": "default", "name": "c"}).build())
    made.put(*claim("c", "v").build())
    assert admitted(made, "default/q", *binding(made)) == "a b c"
    assert not made.index(AssumedVolumes).by_claim
    made.move(made.tasks["default/q"], status.ALLOCATED, 1)
    assert [each.volume for each in made.index(AssumedVolumes).of_pod(made.tasks["default/q"])] == ["w"]
    made.put(*volume("late").build())
    made.move(made.tasks["default/q"], status.RUNNING, 1)
    made.move(made.tasks["default/p"], status.PENDING, -1)
    assert [each.volume for each in made.index(AssumedVolumes).by_claim.values()] == ["w"]


# -- room that storage publishes


def room(name: str, size: str, zone: str = "", of: str = "local", **more: str) -> Thing:
    """Free storage in a zone; everywhere without one."""
    topology = {"matchLabels": {ZONE: zone}} if zone else {}
    published = {"nodeTopology": topology, "storageClassName": of, "capacity": size}
    return manifest("CSIStorageCapacity", name, **published, **more)


NO_TOPOLOGY = manifest("CSIStorageCapacity", "lost", storageClassName="local", capacity="9Gi")


@pytest.mark.parametrize(
    ("published", "nodes"),
    [
        ([], "a b c"),
        ([driver(False)], "a b c"),
        ([driver(None), room("r", "1Mi")], "a b c"),
        ([driver()], ""),
        ([driver(), NO_TOPOLOGY], ""),
        ([driver(), room("r", "1Gi", "z1")], "a"),
        ([driver(), room("r", "1Gi", "z1"), room("s", "1Gi", "z2")], "a b"),
        ([driver(), room("r", "1Gi")], "a b c"),
        ([driver(), room("r", "1023Mi")], ""),
        ([driver(), room("r", "9Gi", of="other")], ""),
        ([driver(), room("r", "9Gi", maximumVolumeSize="1Mi")], ""),
        ([driver(), room("r", "1Mi", maximumVolumeSize="2Gi")], "a b c"),
    ],
)
def test_volumes_are_made_only_where_the_driver_publishes_room(published: list[Thing], nodes: str) -> None:
    made = cluster(*NODES, storage_class(provisioner="made.by/us"), claim("c"), using("p", "c"), *published)
    assert admitted(made, "default/p", *binding(made)) == nodes
    full = refusals(made, "default/p", *binding(made))
    assert full == {name: "node(s) did not have enough free storage!" for name in "abc" if name not in nodes}


def test_a_volume_that_is_there_needs_no_room() -> None:
    made = cluster(*NODES, storage_class(provisioner="made.by/us"), driver(), volume("v", nodes="b"), claim("c"), using("p", "c"))
    assert admitted(made, "default/p", *binding(made)) == "b"


# -- zones


@pytest.mark.parametrize("old", ["zone", "region"])
def test_a_volume_of_a_zone_is_used_there_and_on_nodes_of_no_zone(old: str) -> None:
    for key in (f"topology.kubernetes.io/{old}", f"failure-domain.beta.kubernetes.io/{old}"):
        nodes = [node("a").label(f"topology.kubernetes.io/{old}", "z1"), node("b").label(f"topology.kubernetes.io/{old}", "z2"), node("c")]
        made = cluster(*nodes, volume("v", labels={key: "z2__z3"}), claim("c", "v"), using("p", "c"))
        assert refusals(made, "default/p", VolumeZone(made)) == {"a": "node(s) had no available volume zone!"}


@pytest.mark.parametrize("empty", ["", "z2____z3"])
def test_a_label_that_names_an_empty_zone_says_nothing(empty: str) -> None:
    made = cluster(*NODES, volume("v", labels={ZONE: empty}), claim("c", "v"), using("p", "c"))
    assert admitted(made, "default/p", VolumeZone(made)) == "a b c"


@pytest.mark.parametrize(
    ("things", "reason"),
    [
        ([], 'persistentvolumeclaim "c" not found!'),
        ([claim("c", "v")], 'persistentvolume "v" not found!'),
        ([claim("c", storageClassName="")], "PersistentVolumeClaim had no pv name and storageClass name!"),
        ([claim("c", storageClassName="none")], 'storageclass.storage.k8s.io "none" not found!'),
        ([claim("c"), storage_class(volumeBindingMode="Immediate")], "PersistentVolume had no name!"),
    ],
)
def test_a_volume_without_a_zone_to_look_at_is_told(things: list[Thing], reason: str) -> None:
    made = cluster(node("a"), *things, using("p", "c"))
    assert refusals(made, "default/p", VolumeZone(made)) == {"a": reason}


def test_zones_do_not_matter_to_claims_that_wait_and_volumes_that_name_none() -> None:
    made = cluster(*NODES, storage_class(), claim("c"), claim("d", "v"), volume("v"), using("p", "c", "d"))
    assert VolumeZone(made).prepare(made.tasks["default/p"]) is None


# -- restrictions


def mounting(name: str, **source: Thing) -> PodBuilder:
    return pod(name).having("spec", "volumes", value=[{"name": "v"} | source])


RBD = {"monitors": ["m1", "m2"], "pool": "x", "image": "i"}


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ({"gcePersistentDisk": {"pdName": "d"}}, {"gcePersistentDisk": {"pdName": "d"}}, False),
        ({"gcePersistentDisk": {"pdName": "d", "readOnly": True}}, {"gcePersistentDisk": {"pdName": "d", "readOnly": True}}, True),
        ({"gcePersistentDisk": {"pdName": "d", "readOnly": True}}, {"gcePersistentDisk": {"pdName": "d"}}, False),
        (
            {"awsElasticBlockStore": {"volumeID": "d", "readOnly": True}},
            {"awsElasticBlockStore": {"volumeID": "d", "readOnly": True}},
            False,
        ),
        ({"awsElasticBlockStore": {"volumeID": "d"}}, {"awsElasticBlockStore": {"volumeID": "e"}}, True),
        ({"iscsi": {"iqn": "q", "readOnly": True}}, {"iscsi": {"iqn": "q", "readOnly": True}}, True),
        ({"iscsi": {"iqn": "q"}}, {"iscsi": {"iqn": "q", "readOnly": True}}, False),
        ({"rbd": RBD}, {"rbd": RBD | {"monitors": ["m2", "m3"], "readOnly": True}}, False),
        ({"rbd": RBD}, {"rbd": RBD | {"monitors": ["m3"]}}, True),
        ({"rbd": RBD}, {"rbd": RBD | {"pool": "y"}}, True),
    ],
)
def test_a_disk_is_mounted_together_only_by_those_that_may(one: Thing, other: Thing, together: bool) -> None:
    made = cluster(*NODES, mounting("x", **one).on("a"), mounting("p", **other))
    refused = refusals(made, "default/p", VolumeRestrictions(made))
    assert refused == ({} if together else {"a": "node(s) had no available disk"})
    made.move(made.tasks["default/x"], status.PENDING, -1)
    assert refusals(made, "default/p", VolumeRestrictions(made)) == {}


def test_a_claim_for_one_pod_only_is_refused_everywhere_while_it_is_in_use() -> None:
    made = cluster(*NODES, claim("c", "v", accessModes=["ReadWriteOncePod"]), volume("v"), using("x", "c").on("a"), using("p", "c"))
    in_use = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
    assert refusals(made, "default/p", VolumeRestrictions(made)) == dict.fromkeys("abc", in_use)
    made.move(made.tasks["default/x"], status.PENDING, -1)
    assert refusals(made, "default/p", VolumeRestrictions(made)) == {}


def test_a_missing_claim_is_told_by_restrictions_as_well() -> None:
    made = cluster(*NODES, using("p", "c"), pod("q"))
    assert refusals(made, "default/p", VolumeRestrictions(made)) == dict.fromkeys("abc", 'persistentvolumeclaim "c" not found!')
    assert VolumeRestrictions(made).prepare(made.tasks["default/q"]) is None


def test_what_was_decided_stands_while_other_volumes_change() -> None:
    made = cluster(*NODES, storage_class(), volume("v"), claim("c"), claim("d"), using("p", "c"), using("q", "d"))
    made.index(AssumedVolumes)
    made.move(made.tasks["default/p"], status.BINDING, 0)
    made.put(*volume("other", storageClassName="else").build())
    assert admitted(made, "default/q", *binding(made)) == ""
    made.remove("PersistentVolume", "v")
    assert made.index(AssumedVolumes).of_pod(made.tasks["default/p"]) == []


def test_disks_and_claims_of_a_pod_are_looked_at_together() -> None:
    asker = using("p", "c").having("spec", "volumes", 1, value={"name": "d", "iscsi": {"iqn": "q"}})
    made = cluster(*NODES, claim("c", "v"), volume("v"), mounting("x", iscsi={"iqn": "q"}).on("a"), asker)
    assert admitted(made, "default/p", VolumeRestrictions(made)) == "b c"


# -- how much of its storage a node would use


def stored(*things: ObjectBuilder, shape: list[ShapePoint] | None = None, asks: str = "c") -> list[int]:
    made = cluster(*NODES, storage_class("local", "made.by/us"), *things, using("p", *asks.split()))
    return scores(made, "default/p", StorageScorer(made, shape))


def test_of_volumes_that_match_the_emptier_one_is_better() -> None:
    volumes = [volume("v", "2Gi", nodes="a"), volume("w", "4Gi", nodes="b")]
    assert stored(*volumes, claim("c")) == [50, 75, 0]
    assert stored(*volumes, claim("c"), shape=[ShapePoint(0, 0), ShapePoint(100, 10)]) == [50, 25, 0]
    assert stored(*volumes, claim("c"), volume("x", "1Gi", nodes="a"), claim("d"), asks="c d") == [34, 75, 0], "the sums of a class"
    assert stored(volume("v", "2Gi", nodes="a", phase="Bound"), claim("c", "v")) == [], "nothing waits"


def test_where_nothing_matches_what_is_published_as_free_counts() -> None:
    published = [driver(), room("r", "4Gi", "z1"), room("s", "10Gi", "z2"), room("later", "1Ti", "z2")]
    assert stored(*published, claim("c"), claim("d"), asks="c d") == [50, 80, 0], "both are taken from the same storage"
    assert stored(claim("c")) == [0, 0, 0]
    assert stored(*published, claim("c"), volume("v", "2Gi", nodes="b")) == [75, 50, 0], "a volume that matches comes first"
    big = claim("d", size="3Gi")
    assert stored(*published, claim("c"), big, volume("v", "2Gi", nodes="b"), asks="c d") == [0, 50, 0]
    chosen = claim("c").annotation("volume.kubernetes.io/selected-node", "b")
    assert stored(*published, chosen, volume("v", "2Gi", nodes="b")) == [75, 90, 0], "it will be provisioned"
    most = manifest("CSIStorageCapacity", "t", nodeTopology={}, storageClassName="local", maximumVolumeSize="9Gi")
    assert stored(driver(), most, claim("c")) == [0, 0, 0], "how much is free is not known"


def test_classes_count_alike() -> None:
    fast = [storage_class("fast", "made.by/us"), claim("d", storageClassName="fast"), room("f", "2Gi", of="fast")]
    assert stored(driver(), room("r", "4Gi"), claim("c"), *fast, asks="c d") == [63, 63, 63]


def test_profiles_score_storage_from_1_37_on() -> None:
    """The node whose volume would be emptier is taken, not the first."""
    volumes = [volume("v", "2Gi", nodes="a"), volume("w", "9Gi", nodes="b"), storage_class(), claim("c")]
    for minor, chosen in ((36, "a"), (37, "b")):
        policy, _ = read_configurations([config_text(KUBE_DEFAULT, "test")], PLUGINS, release=release(minor))
        made = of_profiles(policy, *NODES, *volumes, using("p", "c").scheduler("default-scheduler"))
        assert [bind.node for bind in cycle(made, policy, NOW).binds] == [chosen]
