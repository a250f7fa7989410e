"""Clusters in shorthand."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api.errors import InputError
from pumice.cluster.apiserver import Server, StatusError
from pumice.cluster.clock import VirtualClock
from pumice.cluster.control_plane import ControlPlane
from pumice.cluster.nodes.containers import SimulatedContainers
from pumice.cluster.nodes.node_pools import nodes_of, pools_of
from pumice.cluster.nodes.stage import read_stages

GPU = "nvidia.com/gpu"
START = 1_800_000_000.0


@pytest.mark.parametrize(
    ("text", "names", "first"),
    [
        ("2x4cpu", ["cpu4-0", "cpu4-1"], {"cpu": "4", "memory": "16Gi", "pods": "110"}),
        ("1x8gpu", ["gpu8-0"], {"cpu": "96", "memory": "768Gi", "pods": "110", GPU: "8"}),
        ("1x8gpu:64cpu:512Gi:30pods", ["gpu8-0"], {"cpu": "64", "memory": "512Gi", "pods": "30", GPU: "8"}),
        ("1x8gpu, 2x2cpu", ["gpu8-0", "cpu2-0", "cpu2-1"], {"cpu": "96", "memory": "768Gi", "pods": "110", GPU: "8"}),
        ("1x4cpu,1x4cpu:1Gi", ["cpu4-0", "cpu4-b-0"], {"cpu": "4", "memory": "16Gi", "pods": "110"}),
    ],
)
def test_pools_become_nodes(text: str, names: list[str], first: dict[str, str]) -> None:
    nodes = list(nodes_of(pools_of(text)))
    assert [node["metadata"]["name"] for node in nodes] == names
    assert nodes[0]["status"]["allocatable"] == first | {"ephemeral-storage": "100Gi"}


def test_names_of_a_large_pool_are_in_order() -> None:
    names = [node["metadata"]["name"] for node in nodes_of(pools_of("1000x8gpu"))]
    assert names == sorted(names)


@pytest.mark.parametrize("text", ["", "8gpu", "ax8gpu", "2x", "2x8tpu", "2x512Gi", "1x4cpu,,1x2cpu"])
def test_what_is_no_pool_is_explained(text: str) -> None:
    with pytest.raises(InputError, match="write such as 100x8gpu"):
        pools_of(text)


def plane() -> ControlPlane:
    clock = VirtualClock(START)
    return ControlPlane(clock, Server(clock=clock.now, containers=SimulatedContainers(clock.now)), read_stages())


def of_its_own(node: dict[str, Any]) -> tuple[str, str]:
    return node["metadata"]["uid"], node["metadata"]["resourceVersion"]


def test_nodes_of_a_pool_are_as_if_each_had_been_created() -> None:
    made, created = plane(), plane()
    made.add_nodes(nodes_of(pools_of("3x8gpu,2x4cpu")))
    created.add(nodes_of(pools_of("3x8gpu,2x4cpu")))
    found, wanted = (list(each.store.all("nodes")) for each in (made, created))
    assert len({of_its_own(node) for node in found}) == 5
    for node in [*found, *wanted]:
        for field in ("uid", "resourceVersion"):
            node["metadata"].pop(field)
    assert found == wanted


def test_nodes_that_exist_are_left_as_they_are() -> None:
    cluster = plane()
    cluster.add_nodes(nodes_of(pools_of("2x4cpu")))
    before = list(cluster.store.all("nodes"))
    cluster.add_nodes(nodes_of(pools_of("3x4cpu")))
    after = list(cluster.store.all("nodes"))
    assert after[:2] == before and len(after) == 3


def test_a_policy_sees_each_node_of_a_pool() -> None:
    cluster = plane()
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes"], "operations": ["CREATE"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "object.metadata.name != 'cpu4-1'"}]}
    for kind, about in (("Policy", spec), ("PolicyBinding", {"policyName": "one", "validationActions": ["Deny"]})):
        head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": f"ValidatingAdmission{kind}", "metadata": {"name": "one"}}
        cluster.add([head | {"spec": about}])
    with pytest.raises(StatusError, match="cpu4-1"):
        cluster.add_nodes(nodes_of(pools_of("2x4cpu")))
