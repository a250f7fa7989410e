"""How many volumes of a driver a node takes."""

from __future__ import annotations

import pytest

from pumice.scheduler.config import KUBE_DEFAULT, config_text, read_configurations
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.feature_gates import release
from pumice.scheduler.model import status
from pumice.scheduler.plugins.kube.node_volume_limits import NodeVolumeLimits
from pumice.scheduler.registry import PLUGINS
from pumice.testing import NOW, ObjectBuilder, cluster, manifest, node, pod
from tests.kube_scheduler.stage import cluster as of_profiles
from tests.nodes_for_pods.asking import admitted, refusals
from tests.nodes_for_pods.storage import NODES, Thing, binding, claim, storage_class, using, volume


def limits(name: str, count: int | None, driver: str = "csi.test") -> ObjectBuilder:
    published: Thing = {"name": driver} if count is None else {"name": driver, "allocatable": {"count": count}}
    return manifest("CSINode", name, spec={"drivers": [published]})


def attached(name: str, driver: str = "csi.test") -> list[ObjectBuilder]:
    return [volume(f"v-{name}", phase="Bound", csi={"driver": driver, "volumeHandle": name}), claim(name, f"v-{name}")]


def test_a_node_takes_as_many_volumes_of_a_driver_as_it_says_each_counted_once() -> None:
    things = [*attached("1"), *attached("2"), *attached("3"), limits("a", 2), limits("b", 1), limits("gone", 1)]
    existing = (using("x", "1", "2").on("a"), using("y", "1").on("a"), using("z", "1").on("b"))
    made = cluster(*NODES, *things, *existing, using("p", "3"), using("q", "1"), using("r", "2"))
    rule = NodeVolumeLimits(made)
    assert refusals(made, "default/p", rule) == dict.fromkeys("ab", "node(s) exceed max volume count")
    assert admitted(made, "default/q", rule) == "a b c"
    assert admitted(made, "default/r", rule) == "a c"
    made.move(made.tasks["default/x"], status.PENDING, -1)
    assert admitted(made, "default/p", rule) == "a c"


EBS = "ebs.csi.aws.com"


def of_ebs(name: str) -> list[ObjectBuilder]:
    disk = {"volumeID": f"aws://us-east-1a/{name}"}
    return [volume(f"v-{name}", phase="Bound", awsElasticBlockStore=disk), claim(name, f"v-{name}")]


@pytest.mark.parametrize(
    ("driver", "source"),
    [
        (EBS, {"awsElasticBlockStore": {"volumeID": "vol-2"}}),
        ("pd.csi.storage.gke.io", {"gcePersistentDisk": {"pdName": "disk"}}),
        ("disk.csi.azure.com", {"azureDisk": {"diskName": "disk", "diskURI": "/subscriptions/x/disks/disk"}}),
        ("cinder.csi.openstack.org", {"cinder": {"volumeID": "disk"}}),
        ("pxd.portworx.com", {"portworxVolume": {"volumeID": "disk"}}),
    ],
)
def test_volumes_of_the_plugins_that_a_driver_has_replaced_count_as_its_own(driver: str, source: Thing) -> None:
    one, other = ([volume(f"v-{n}", phase="Bound", **source), claim(n, f"v-{n}")] for n in "12")
    inline = pod("r").having("spec", "volumes", value=[{"name": "i", **source}])
    new = attached("new", driver)
    made = cluster(*NODES, *one, *other, *new, limits("a", 1, driver), inline.on("a"), using("p", "1"), using("q", "new"), using("s", "2"))
    rule = NodeVolumeLimits(made)
    assert admitted(made, "default/p", rule) == "a b c", "it is the volume that is there"
    assert refusals(made, "default/q", rule) == {"a": "node(s) exceed max volume count"}
    made.move(made.tasks["default/r"], status.PENDING, -1)
    assert admitted(made, "default/q", rule) == "a b c"
    made.move(made.tasks["default/s"], status.RUNNING, 0)
    assert admitted(made, "default/q", rule) == "b c"


def test_a_volume_of_a_replaced_plugin_is_the_same_as_the_driver_s_and_a_claim_for_one_counts_too() -> None:
    same = [volume("v-same", phase="Bound", csi={"driver": EBS, "volumeHandle": "vol-1"}), claim("same", "v-same")]
    waits = [storage_class("old", provisioner="kubernetes.io/aws-ebs"), claim("waits", storageClassName="old")]
    made = cluster(
        *NODES, *of_ebs("vol-1"), *same, *waits, limits("a", 1, EBS), using("x", "vol-1").on("a"), using("p", "same"), using("q", "waits")
    )
    assert admitted(made, "default/p", NodeVolumeLimits(made)) == "a b c"
    assert admitted(made, "default/q", NodeVolumeLimits(made)) == "b c"


def attachment(volume: str | None, node: str) -> ObjectBuilder:
    source = {"persistentVolumeName": volume} if volume else {"inlineVolumeSpec": {}}
    spec = {"attacher": "csi.test", "nodeName": node, "source": source}
    return manifest("VolumeAttachment", f"{volume}-{node}", spec=spec)


def test_volumes_that_are_still_attached_count_though_no_pod_mounts_them_any_more() -> None:
    things = [*attached("1"), *attached("2"), volume("nfs"), *(limits(name, 1) for name in "abc")]
    made = cluster(*NODES, *things, using("x", "1").on("b"), using("p", "1"), using("q", "2"))
    rule = NodeVolumeLimits(made)
    assert admitted(made, "default/q", rule) == "a c"
    for on, name in (("a", "v-1"), ("b", "v-1"), ("c", None), ("c", "nfs"), ("c", "v-gone"), ("later", "v-1")):
        made.put(*attachment(name, on).build())
    assert admitted(made, "default/q", rule) == "c"
    assert admitted(made, "default/p", rule) == "a b c", "it is there already"
    made.move(made.tasks["default/x"], status.PENDING, -1)
    assert admitted(made, "default/q", rule) == "c"
    made.put(*node("later").cpu(1).pods(9).build())
    made.put(*limits("later", 1).build())
    assert admitted(made, "default/q", rule) == "c"
    made.remove("VolumeAttachment", "v-1-a")
    assert admitted(made, "default/q", rule) == "a c"


def test_a_driver_may_ask_that_its_volumes_go_only_where_it_is_installed() -> None:
    """With the gate VolumeLimitScaling, on from 1.37. A node has no CSINode, one another driver, and one is full."""

    def driver(name: str, prevents: bool | None) -> ObjectBuilder:
        return manifest("CSIDriver", name, spec={} if prevents is None else {"preventPodSchedulingIfMissing": prevents})

    things = [*attached("1"), *attached("2"), limits("a", 1), limits("b", None, "other"), limits("gone", 1)]
    made = cluster(*NODES, *things, driver("csi.test", True), using("x", "1").on("a"), using("p", "2"))
    assert admitted(made, "default/p", NodeVolumeLimits(made, of_release=True)) == "b c"  # the gate is off
    made.needs_drivers = True
    absent = "csi.test CSI driver is not installed on the node"
    found = refusals(made, "default/p", NodeVolumeLimits(made, of_release=True))
    assert found == {"a": "node(s) exceed max volume count", "b": absent, "c": absent}
    assert admitted(made, "default/p", NodeVolumeLimits(made)) == "b c", "Volcano's predicates do not ask"
    for prevents in (False, None):
        made.put(*driver("csi.test", prevents).build())
        assert admitted(made, "default/p", NodeVolumeLimits(made, of_release=True)) == "b c"


def test_the_release_says_whether_drivers_are_needed() -> None:
    things = [*attached("1"), manifest("CSIDriver", "csi.test", spec={"preventPodSchedulingIfMissing": True})]
    for minor, places in ((36, True), (37, False)):
        chosen, _ = read_configurations([config_text(KUBE_DEFAULT, "test")], PLUGINS, release=release(minor))
        made = of_profiles(chosen, *NODES, *things, using("p", "1").scheduler("default-scheduler"))
        decided = cycle(made, chosen, NOW)
        assert bool(decided.binds) is places
        assert places or "3 csi.test CSI driver is not installed on the node" in decided.waiting[0].message


def test_volumes_without_a_driver_or_a_limit_do_not_matter() -> None:
    things = [*attached("1", "other"), volume("plain"), claim("2", "plain"), limits("a", None, "other"), limits("b", 1)]
    made = cluster(*NODES, *things, using("p", "1", "2"), using("q", "none"))
    rule = NodeVolumeLimits(made)
    assert rule.prepare(made.tasks["default/p"]) is None
    assert rule.prepare(made.tasks["default/q"]) is None


def test_a_claim_yet_without_volume_counts_for_its_classs_driver_until_it_has_one() -> None:
    things = [storage_class("local", "csi.test"), claim("c"), claim("d"), limits("a", 1)]
    made = cluster(*NODES, *things, using("x", "c").on("a"), using("p", "d"), using("q", "none"))
    assert admitted(made, "default/p", NodeVolumeLimits(made)) == "b c"
    made.put(*volume("nfs").build())
    made.put(*claim("c", "nfs").build())
    assert admitted(made, "default/p", NodeVolumeLimits(made)) == "a b c"


def test_volumes_are_counted_from_pods_that_stand_there_already() -> None:
    claims = [claim("c"), claim("d"), claim("e", "w"), claim("f", storageClassName="none")]
    things = [storage_class(), volume("v"), *claims, volume("w", phase="Bound"), *attached("1"), limits("a", 1)]
    existing = (using("x", "c", "e").on("a"), using("y", "1", "none").on("a"), pod("z").on("a"))
    made = cluster(*NODES, *things, *existing, using("p", "d"), using("q", "1", "1"), using("r", "none", "e", "f"))
    assert admitted(made, "default/p", *binding(made)) == "a b c"
    assert admitted(made, "default/q", NodeVolumeLimits(made)) == "a b c"
    assert admitted(made, "default/r", NodeVolumeLimits(made)) == "a b c"
