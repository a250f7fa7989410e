"""Nodes in shorthand, as `pumice up --nodes` reads it: `300x8gpu`, `4x1cpu,2x8gpu:64cpu`."""

from __future__ import annotations

from pumice.api.core import Node
from pumice.api.structs import convert

MANY = "100000"  #: pods of a node of which nothing is said: workloads count processors, not pods


def nodes_of_pools(text: str) -> list[Node]:
    """Raises InputError."""
    from pumice.cluster.nodes.node_agent import nodes_of, pools_of  # comes with a whole control plane, which few simulations need

    pools = pools_of(text)
    if "pods" not in text:
        pools = [pool._replace(allocatable=pool.allocatable | {"pods": MANY}) for pool in pools]
    return [convert(node, Node) for node in nodes_of(pools)]
