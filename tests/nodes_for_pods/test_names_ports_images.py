"""NodeName, NodePorts, NodeUnschedulable, NodeDeclaredFeatures and ImageLocality."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.scheduler.model import status
from pumice.scheduler.plugins.kube.image_locality import ImageLocality, full_name
from pumice.scheduler.plugins.kube.node_declared_features import NodeDeclaredFeatures
from pumice.scheduler.plugins.kube.node_name import NodeName
from pumice.scheduler.plugins.kube.node_ports import NodePorts
from pumice.scheduler.plugins.kube.node_unschedulable import NodeUnschedulable
from pumice.testing import NodeBuilder, PodBuilder, cluster, node, pod
from tests.nodes_for_pods.asking import admitted, refusals, scores


def listening(name: str, *ports: str) -> PodBuilder:
    """A port is PORT, PROTOCOL:PORT or PROTOCOL:ADDRESS:PORT."""
    wanted = []
    for port in ports:
        *where, number = port.split(":")
        wanted.append({"hostPort": int(number)} | dict(zip(("protocol", "hostIP"), where, strict=False)))
    return pod(name).having("spec", "containers", 0, "ports", value=wanted)


@pytest.mark.parametrize(
    ("used", "wanted", "free"),
    [
        ("8080", "8081", True),
        ("8080", "8080", False),
        ("8080", "UDP:8080", True),
        ("8080", "TCP:127.0.0.1:8080", False),
        ("TCP:127.0.0.1:8080", "8080", False),
        ("TCP:127.0.0.1:8080", "TCP:127.0.0.2:8080", True),
        ("TCP:127.0.0.1:8080", "TCP:127.0.0.1:8080", False),
    ],
)
def test_a_host_port_is_free_unless_used_at_the_same_or_any_address(used: str, wanted: str, free: bool) -> None:
    made = cluster(node("a"), node("b"), listening("u", used).on("a"), listening("p", wanted))
    assert admitted(made, "default/p", NodePorts(made)) == ("a b" if free else "b")


def test_ports_of_sidecars_count_and_ports_without_a_host_port_do_not() -> None:
    sidecar = [{"name": "s", "restartPolicy": "Always", "ports": [{"hostPort": 80}]}]
    made = cluster(node("a"), pod("u").having("spec", "initContainers", value=sidecar).on("a"), listening("p", "80"), listening("q", "0"))
    assert refusals(made, "default/p", NodePorts(made)) == {"a": "node(s) didn't have free ports for the requested pod ports"}
    assert NodePorts(made).prepare(made.tasks["default/q"]) is None


def test_a_port_is_free_again_when_its_pod_has_left() -> None:
    made = cluster(node("a"), listening("u", "80").on("a"), listening("p", "80"))
    assert admitted(made, "default/p", NodePorts(made)) == ""
    made.move(made.tasks["default/u"], status.PENDING, -1)
    assert admitted(made, "default/p", NodePorts(made)) == "a"


def test_a_pod_that_names_its_node_goes_nowhere_else() -> None:
    made = cluster(node("a"), node("b"), pod("p").on("b"), pod("q").on("gone"), pod("r"))
    assert refusals(made, "default/p", NodeName()) == {"a": "node(s) didn't match the requested node name!"}
    assert admitted(made, "default/q", NodeName()) == ""
    assert admitted(made, "default/r", NodeName()) == "a b"


def test_a_cordoned_node_takes_those_that_tolerate_it() -> None:
    made = cluster(node("a").cordoned(), node("b"), pod("p"), pod("q").tolerates("node.kubernetes.io/unschedulable"))
    assert refusals(made, "default/p", NodeUnschedulable()) == {"a": "node(s) were unschedulable!"}
    assert admitted(made, "default/q", NodeUnschedulable()) == "a b"


def with_images(name: str, **sizes_mib: int) -> NodeBuilder:
    images = [{"names": [f"{image}:latest", f"{image}@sha"], "sizeBytes": size * 1024**2} for image, size in sizes_mib.items()]
    return node(name).having("status", "images", value=images)


def running(*images: str) -> PodBuilder:
    return pod("p").having("spec", "containers", value=[{"name": f"c{i}", "image": image} for i, image in enumerate(images)])


@pytest.mark.parametrize(
    ("nodes", "images", "expected"),
    [
        ([{"x": 250}, {}], ["x", "y"], [5, 0]),
        ([{"x": 40, "y": 300}, {}], ["x", "y"], [7, 0]),
        ([{"x": 2000}, {}], ["x", "y"], [49, 0]),
        ([{"x": 5000}, {"x": 5000}], ["x"], [100, 100]),
        ([{"x": 250}, {}], ["z"], []),
    ],
)
def test_images_count_by_size_and_by_the_share_of_nodes_that_have_them(nodes: list[Any], images: list[str], expected: list[int]) -> None:
    made = cluster(*(with_images(f"n{i}", **sizes) for i, sizes in enumerate(nodes)), running(*images))
    assert scores(made, "default/p", ImageLocality(made)) == expected


def test_images_of_init_containers_and_mounted_images_count_too() -> None:
    asker = running("y").having("spec", "initContainers", value=[{"name": "i", "image": "x"}])
    asker = asker.having("spec", "volumes", value=[{"name": "v", "image": {"reference": "z"}}])
    made = cluster(with_images("a", x=3000, z=3000), with_images("b"), asker)
    assert scores(made, "default/p", ImageLocality(made)) == [100, 0]


@pytest.mark.parametrize(("newer", "score"), [(False, 64), (True, 31)])
def test_from_1_37_on_more_is_expected_of_a_pod_that_mounts_images(newer: bool, score: int) -> None:
    """The scores are those that kube-scheduler 1.36.1 and 1.37.2 gave."""
    asker = running("x").having("spec", "volumes", value=[{"name": "v", "image": {"reference": "z"}}])
    made = cluster(with_images("a", x=500, z=800), with_images("b"), asker)
    made.newer = newer
    assert scores(made, "default/p", ImageLocality(made)) == [score, 0]


def test_a_node_that_gets_an_image_is_seen_to_have_it() -> None:
    made = cluster(with_images("a", x=900), with_images("b"), running("x"))
    assert scores(made, "default/p", ImageLocality(made)) == [43, 0]
    made.put(*with_images("b", x=900).build())
    assert scores(made, "default/p", ImageLocality(made)) == [89, 89]


@pytest.mark.parametrize(
    ("image", "name"),
    [("root", "root:latest"), ("root:tag", "root:tag"), ("host:5000/root", "host:5000/root:latest"), ("h:5/r:t", "h:5/r:t")],
)
def test_an_image_without_a_tag_is_the_latest(image: str, name: str) -> None:
    assert full_name(image) == name


def test_a_pod_that_needs_a_feature_goes_to_nodes_that_declare_it() -> None:
    both = ["RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"]
    nodes = [node(name).cpu(4).having("status", "declaredFeatures", value=declared) for name, declared in (("a", both), ("b", both[:1]))]
    users = pod("users").having("spec", "hostNetwork", value=True).having("spec", "hostUsers", value=False)
    restarts = pod("restarts").having("spec", "containers", 0, "restartPolicyRules", value=[{"action": "RestartAllContainers"}])
    others = pod("others").having("spec", "containers", 0, "restartPolicyRules", value=[{"action": "Restart"}])
    made = cluster(*nodes, node("c").cpu(4), users, restarts, others)
    refusal = "node(s) didn't match Pod's required features!"
    assert refusals(made, "default/users", NodeDeclaredFeatures()) == {"b": refusal, "c": refusal}
    assert admitted(made, "default/restarts", NodeDeclaredFeatures()) == "a b"
    assert admitted(made, "default/others", NodeDeclaredFeatures()) == "a b c"
