"""Where pods can use the devices that a claim got: on one node, on those that reach all of the devices, or everywhere."""

from __future__ import annotations

from collections.abc import Sequence

from pumice.api.meta import Expression
from pumice.api.pod import NodeSelector, NodeTerm
from pumice.plugins.kube.device_allocation import Pick
from pumice.plugins.kube.device_pools import Offered


def reach(picks: Sequence[Pick], node: str) -> NodeSelector | None:
    """None for everywhere. `node`: where the pod went for which they were chosen."""
    expressions: list[Expression] = []
    fields: list[Expression] = []
    for pick in picks:
        name, selector = _told(pick.offered)
        if name is not None or pick.offered.device.binds_to_node:
            return NodeSelector([NodeTerm(match_fields=[Expression("metadata.name", "In", [node])])])
        for term in (selector.node_selector_terms if selector is not None else None) or ():
            expressions += [each for each in term.match_expressions or () if each not in expressions]
            fields += [each for each in term.match_fields or () if each not in fields]
    if not expressions and not fields:
        return None
    return NodeSelector([NodeTerm(expressions or None, fields or None)])


def _told(offered: Offered) -> tuple[str | None, NodeSelector | None]:
    """By the device itself, or by its slice for all of its devices."""
    told = offered.device if offered.piece.spec.per_device_node_selection else offered.piece.spec
    return told.node_name, told.node_selector
