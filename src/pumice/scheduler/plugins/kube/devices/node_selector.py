"""Where pods can use the devices of a claim: on one node, on the nodes that reach all of the devices, or everywhere."""

from collections.abc import Sequence

from pumice.api.meta import LabelSelectorRequirement
from pumice.api.pod import NodeSelector, NodeSelectorTerm
from pumice.scheduler.plugins.kube.devices.allocation import Pick
from pumice.scheduler.plugins.kube.devices.pools import Offered


def reach(picks: Sequence[Pick], node: str) -> NodeSelector | None:
    """The selector of the nodes that can use the devices; None for all nodes. `node` is the node of the pod for which they were chosen."""
    expressions: list[LabelSelectorRequirement] = []
    fields: list[LabelSelectorRequirement] = []
    for pick in picks:
        name, selector = _selection(pick.offered)
        if name is not None or pick.offered.device.binds_to_node:
            return NodeSelector([NodeSelectorTerm(match_fields=[LabelSelectorRequirement("metadata.name", "In", [node])])])
        for term in (selector.node_selector_terms if selector is not None else None) or ():
            expressions += [each for each in term.match_expressions or () if each not in expressions]
            fields += [each for each in term.match_fields or () if each not in fields]
    if not expressions and not fields:
        return None
    return NodeSelector([NodeSelectorTerm(expressions or None, fields or None)])


def _selection(offered: Offered) -> tuple[str | None, NodeSelector | None]:
    """The node name and node selector of a device: its own, or its slice's for all of the slice's devices."""
    source = offered.device if offered.piece.spec.per_device_node_selection else offered.piece.spec
    return source.node_name, source.node_selector
