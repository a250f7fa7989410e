"""HyperNodes: found by the labels of nodes, and told how many nodes they hold.

A topology is a list of node labels from the widest domain to the narrowest: nodes with equal values share a domain. The
narrowest are tier 1 and hold nodes, each wider one holds those of the tier below. HyperNodes that a user made are only counted.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence

from pumice.api.selectors import matches
from pumice.controllers import kinds
from pumice.controllers.controller import NOTHING, Change, Result, itself, result
from pumice.controllers.disruption import label_selector
from pumice.controllers.naming import suffix
from pumice.controllers.objects import Key, Object, labels_of, name_of, spec_of, status_of, terminating
from pumice.controllers.world import World
from pumice.controllers.writes import Create, Write, change, delete, status_change

SOURCE = "volcano.sh/network-topology-source"
SOURCE_LABEL = "label"
ALL = Key("", "")  #: discovery looks at all nodes at once


class HyperNodeCounts:
    """Keeps `status.nodeCount`."""

    name = "hypernode-count"

    def __init__(self) -> None:
        self.watches = {kinds.HYPER_NODE: _with_wider, kinds.NODE: _all_hyper_nodes}

    def reconcile(self, key: Hashable, world: World, now: float) -> Result:
        assert isinstance(key, Key)
        hyper_node = world.get(kinds.HYPER_NODE, "", key.name)
        if hyper_node is None or terminating(hyper_node):
            return NOTHING
        count = len(nodes_in(hyper_node, world))
        return result(status_change(hyper_node, {**status_of(hyper_node), "nodeCount": count}))


def nodes_in(hyper_node: Object, world: World, above: frozenset[str] = frozenset()) -> set[str]:
    """The names of all nodes in a HyperNode and those within it; a loop holds nothing more."""
    found: set[str] = set()
    inside = above | {name_of(hyper_node)}
    for member in spec_of(hyper_node).get("members") or ():
        if member.get("type") == "Node":
            found.update(name_of(node) for node in world.all(kinds.NODE) if selects(member, node))
            continue
        for other in world.all(kinds.HYPER_NODE):
            if name_of(other) not in inside and selects(member, other):
                found |= nodes_in(other, world, inside)
    return found


def selects(member: Object, candidate: Object) -> bool:
    selector = member.get("selector") or {}
    if selector.get("exactMatch"):
        return bool(selector["exactMatch"].get("name") == name_of(candidate))
    if selector.get("regexMatch"):
        return re.search(selector["regexMatch"].get("pattern") or r"\Z.", name_of(candidate)) is not None
    labels = label_selector(selector.get("labelMatch"))
    return bool(labels) and matches(labels or (), labels_of(candidate))


def _with_wider(changed: Change, world: World) -> Iterable[Key]:
    if changed.old and changed.new and spec_of(changed.old) == spec_of(changed.new):
        return itself(changed, world)
    return [Key("", name_of(each)) for each in world.all(kinds.HYPER_NODE)]


def _all_hyper_nodes(changed: Change, world: World) -> Iterable[Key]:
    if _moved(changed):
        yield from (Key("", name_of(each)) for each in world.all(kinds.HYPER_NODE))


def _moved(changed: Change) -> bool:
    return not (changed.old and changed.new and labels_of(changed.old) == labels_of(changed.new))


class HyperNodeDiscovery:
    """Makes HyperNodes from node labels. `topologies` maps a name to labels, the widest domain first."""

    name = "hypernode-discovery"

    def __init__(self, topologies: Mapping[str, Sequence[str]]) -> None:
        self.topologies = topologies
        self.watches = {
            kinds.NODE: lambda changed, world: (ALL,) if _moved(changed) else (),
            kinds.HYPER_NODE: lambda changed, world: (ALL,),
        }

    def reconcile(self, key: Hashable, world: World, now: float) -> Result:
        wanted: dict[str, Object] = {}
        nodes = [node for node in world.all(kinds.NODE) if not terminating(node)]
        for topology, labels in sorted(self.topologies.items()):
            wanted |= {name_of(each): each for each in discovered(topology, labels, nodes)}
        writes: list[Write] = []
        for each in world.all(kinds.HYPER_NODE):
            ours = labels_of(each).get(SOURCE) == SOURCE_LABEL
            if ours and name_of(each) not in wanted and not terminating(each):
                writes.append(delete(each))
            elif ours and name_of(each) in wanted:
                target = {**each, "spec": wanted[name_of(each)]["spec"]}
                writes.extend(change(each, target))
            wanted.pop(name_of(each), None)
        return result([*writes, *map(Create, wanted.values())])


def discovered(topology: str, labels: Sequence[str], nodes: Iterable[Object]) -> list[Object]:
    """The HyperNodes that a topology describes. A node that lacks one of the labels is in none."""
    members: dict[tuple[str, ...], set[tuple[str, str]]] = {}
    for node in nodes:
        domain = tuple(labels_of(node).get(label, "") for label in labels)
        if not all(domain):
            continue
        members.setdefault(domain, set()).add(("Node", name_of(node)))
        for depth in range(len(labels) - 1, 0, -1):
            members.setdefault(domain[:depth], set()).add(("HyperNode", _name(topology, labels, domain[: depth + 1])))
    return [_hyper_node(topology, labels, domain, sorted(inside)) for domain, inside in sorted(members.items())]


def _name(topology: str, labels: Sequence[str], domain: tuple[str, ...]) -> str:
    return f"hypernode-{topology.lower()}-tier{_tier(labels, domain)}-{suffix(topology, *domain)}"


def _tier(labels: Sequence[str], domain: tuple[str, ...]) -> int:
    return len(labels) - len(domain) + 1


def _hyper_node(topology: str, labels: Sequence[str], domain: tuple[str, ...], inside: list[tuple[str, str]]) -> Object:
    members = [{"type": type_, "selector": {"exactMatch": {"name": name}}} for type_, name in inside]
    fields = {"tier": _tier(labels, domain), "tierName": labels[len(domain) - 1], "members": members}
    made = kinds.new(kinds.HYPER_NODE, "", _name(topology, labels, domain), spec=fields)
    made["metadata"]["labels"] = {SOURCE: SOURCE_LABEL}
    return made
