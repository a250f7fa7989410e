"""Clusters in shorthand."""

from __future__ import annotations

import pytest

from pumice.api.errors import InputError
from pumice.cluster.nodes.node_pools import nodes_of, pools_of

GPU = "nvidia.com/gpu"


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
