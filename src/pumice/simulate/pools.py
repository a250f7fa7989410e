"""Nodes in shorthand, as `pumice up --nodes` reads it: `300x8gpu`, `4x1cpu,2x8gpu:64cpu`."""

from __future__ import annotations

from pumice.api.codec import convert
from pumice.api.core import Node
from pumice.cluster.nodes.node_pools import nodes_of, pools_of


def nodes_of_pools(text: str) -> list[Node]:
    """Raises InputError."""
    return [convert(node, Node) for node in nodes_of(pools_of(text))]
