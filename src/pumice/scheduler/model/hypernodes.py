"""HyperNodes: network domains (racks, rows, halls) as a tree above the nodes, each with a mask of the node rows in it.

The tree is built from HyperNode objects, whose members are named, matched by a pattern, or (nodes only) matched by labels. A virtual root
above all stands for the whole cluster. If there is a cycle, a HyperNode in two others, or more than MOST_LEVELS levels, the tree cannot be
used: only the root is left, and `trouble` says why.

A tier that PodGroups name and that no HyperNode has may be the key of a node label. Where there are no HyperNode objects, each value of
the label is a domain, within the domains of the labels that have fewer values. Where there are, it stands for the highest tier whose
HyperNodes, and those of all lower tiers, each have nodes of one value only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from pumice.api.regular_expressions import PatternError, pattern
from pumice.api.volcano import HyperNode as HyperNodeObject, HyperNodeMember
from pumice.scheduler.model.nodes import ABSENT, Nodes
from pumice.scheduler.model.resources import Mask, NDArray

if TYPE_CHECKING:
    from pumice.scheduler.model.cluster import Cluster

Codes = NDArray[np.intp]

ROOT = "<cluster-top-hypernode>"
NOWHERE = -1
BELOW_ALL = -1  #: a tier that no HyperNode has: that of a node label, if there are HyperNodes and none keeps to one value of it
NO_SUCH_TIER = "no HyperNode is of the tier that its topology names, or keeps to one value of the node label of this name"
MOST_LEVELS = 100  #: networks have a handful; work and memory grow with levels times nodes
MEMORY = "hypernodes"  #: its key in the cluster's memory


class HyperNode:
    """One network domain. The smaller its tier, the closer its nodes are to each other."""

    def __init__(self, name: str, tier: int, tier_name: str, rows: Mask) -> None:
        self.name = name
        self.tier = tier
        self.tier_name = tier_name
        self.rows = rows  #: mask of the nodes in it, those of its children included
        self.number = 0  #: index in HyperNodes.all
        self.parent: HyperNode | None = None
        self.children: list[HyperNode] = []

    def __repr__(self) -> str:
        return f"<HyperNode {self.name} tier {self.tier}>"

    def upward(self) -> Iterator[HyperNode]:
        """The HyperNode itself, its parent, and so on to the root."""
        node: HyperNode | None = self
        while node is not None:
            yield node
            node = node.parent

    def downward(self) -> Iterator[HyperNode]:
        """The HyperNode itself and all below it, level by level."""
        level = [self]
        while level:
            yield from level
            level = [child for node in level for child in node.children]

    def contains(self, other: HyperNode) -> bool:
        return any(node is self for node in other.upward())


class HyperNodes:
    """The tree of HyperNodes over a node table. It holds until nodes, HyperNode objects or the `asked` names of tiers change."""

    def __init__(self, objects: Iterable[HyperNodeObject], nodes: Nodes, asked: Iterable[str] = ()) -> None:
        self.trouble = ""  #: why the tree cannot be used
        given = sorted(objects, key=lambda item: item.metadata.name)
        labels = [key for key in sorted(asked) if nodes.codes(key)[1]]
        self.by_name = {item.metadata.name: _made(item, nodes) for item in given} if given else _domains(labels, nodes)
        for item in given:
            self._adopt(item)
        if not self.trouble:
            self._measure()
        real = list(self.by_name.values())
        self.root = HyperNode(ROOT, max((node.tier for node in real), default=0) + 1, "", nodes.alive.copy())
        if self.trouble:
            real = []
            self.by_name.clear()
        self._join(real)
        self.tier_numbers = {key: _highest_within(key, real, nodes) for key in labels}
        self.tier_numbers |= {node.tier_name: node.tier for node in self.by_name.values() if node.tier_name}
        self.all = [*sorted(real, key=lambda node: node.tier), self.root]  #: the closest first
        for number, node in enumerate(self.all):
            node.number = number
        self.by_name[ROOT] = self.root
        self._tiers: dict[int, Codes] = {}

    # -- making the tree

    def _adopt(self, item: HyperNodeObject) -> None:
        parent = self.by_name[item.metadata.name]
        for name in self._children(item):
            child = self.by_name[name]
            if child.parent is not None:
                self.trouble = f"HyperNode {name} is a member of both {child.parent.name} and {parent.name}"
            else:
                child.parent = parent
                parent.children.append(child)

    def _children(self, item: HyperNodeObject) -> list[str]:
        names: dict[str, None] = {}
        for member in item.spec.members or ():
            if member.type == "HyperNode":
                names |= dict.fromkeys(_named(member, self.by_name))
        return list(names)

    def _measure(self) -> None:
        """Look for reasons why the tree cannot be used (`trouble`): go up from each HyperNode to the first whose depth is known."""
        depths: dict[str, int] = {}  #: number of HyperNodes from each one up to the top, itself included
        for node in self.by_name.values():
            path: dict[str, HyperNode] = {}
            above: HyperNode | None = node
            while above is not None and above.name not in depths:
                if above.name in path:
                    names = list(path)
                    self.trouble = f"HyperNode {min(names[names.index(above.name) :])} is a member of itself"
                    return
                path[above.name] = above
                above = above.parent
            depth = depths[above.name] if above is not None else 0
            for number, name in enumerate(reversed(path), 1):
                depths[name] = depth + number
        deepest = max(depths, key=depths.__getitem__, default="")
        tiers = len({node.tier for node in self.by_name.values()})
        if deepest and depths[deepest] > MOST_LEVELS:
            self.trouble = f"HyperNode {deepest} has {depths[deepest] - 1} others above it; nest them at most {MOST_LEVELS} deep"
        elif tiers > MOST_LEVELS:
            self.trouble = f"HyperNodes are of {tiers} different tiers; use at most {MOST_LEVELS}"

    def _join(self, real: list[HyperNode]) -> None:
        for node in real:
            if node.parent is None:
                node.parent = self.root
                self.root.children.append(node)
        for node in reversed(list(self.root.downward())):
            if node.parent is not None:
                node.parent.rows |= node.rows

    # -- questions

    @property
    def ready(self) -> bool:
        return not self.trouble

    def lowest_common(self, left: HyperNode, right: HyperNode) -> HyperNode:
        """The lowest HyperNode that contains both."""
        above = set(right.upward())
        return next(node for node in left.upward() if node in above)

    def enclosing(self, rows: list[int]) -> HyperNode:
        """The lowest HyperNode that contains all the nodes."""
        return next((node for node in self.all if node.rows[rows].all()), self.root)

    @cached_property
    def homes(self) -> Codes:
        """For each row the number of its lowest HyperNode."""
        return self._numbers(self.all)

    def of_tier(self, tier: int) -> Codes:
        """For each row the number of the HyperNode of this tier that holds it, or NOWHERE."""
        if tier not in self._tiers:
            self._tiers[tier] = self._numbers([node for node in self.all if node.tier == tier])
        return self._tiers[tier]

    def _numbers(self, nodes: list[HyperNode]) -> Codes:
        numbers = np.full(len(self.root.rows), NOWHERE, np.intp)
        for node in reversed(nodes):
            numbers[node.rows] = node.number
        return numbers


def _made(item: HyperNodeObject, nodes: Nodes) -> HyperNode:
    rows = np.zeros(len(nodes), bool)
    for member in item.spec.members or ():
        if member.type == "Node":
            rows |= _nodes_of(member, nodes)
    return HyperNode(item.metadata.name, item.spec.tier, item.spec.tier_name or "", rows)


def _highest_within(key: str, nodes_above: Iterable[HyperNode], nodes: Nodes) -> int:
    """The highest tier up to which each HyperNode has nodes of one value of a label only; BELOW_ALL if there is none."""
    codes, _ = nodes.codes(key)
    highest = BELOW_ALL
    for tier, group in groupby(sorted(nodes_above, key=lambda node: node.tier), key=lambda node: node.tier):
        values = [codes[node.rows] for node in group]
        if any(len(found) and (found.min() == ABSENT or found.min() != found.max()) for found in values):
            break
        highest = tier
    return highest


def _domains(labels: Iterable[str], nodes: Nodes) -> dict[str, HyperNode]:
    """A domain for each value of each label, within the domains of the labels that have fewer values."""
    found: list[HyperNode] = []
    above = np.full(len(nodes), NOWHERE)  #: by row, the number in `found` of the domain that holds it so far
    ordered = sorted(labels, key=lambda key: (len(nodes.codes(key)[1]), key))
    for tier, key in zip(range(len(ordered), 0, -1), ordered, strict=True):
        codes, values = nodes.codes(key)
        within = above.copy()
        for parent, code in sorted({*zip(within[codes >= 0].tolist(), codes[codes >= 0].tolist(), strict=True)}):
            rows = (within == parent) & (codes == code)
            outer = found[parent] if parent != NOWHERE else None
            name = f"{key}={values[code]}"
            domain = HyperNode(f"{outer.name},{name}" if outer is not None else name, tier, key, rows)
            domain.parent = outer
            if outer is not None:
                outer.children.append(domain)
            above[rows] = len(found)
            found.append(domain)
    return {domain.name: domain for domain in found}


def _nodes_of(member: HyperNodeMember, nodes: Nodes) -> Mask:
    if member.selector.label_match is not None:
        return nodes.matching(member.selector.label_match.requirements) & nodes.alive
    rows = np.zeros(len(nodes), bool)
    rows[[nodes.rows[name] for name in _named(member, nodes.rows)]] = True
    return rows


def _named(member: HyperNodeMember, names: Collection[str]) -> list[str]:
    """The names, out of `names`, that the selector of a member matches."""
    selector = member.selector
    if selector.exact_match is not None:
        return [selector.exact_match.name] if selector.exact_match.name in names else []
    if selector.regex_match is None:
        return []
    try:
        chosen = pattern(selector.regex_match.pattern)
        return [name for name in names if chosen.found_in(name)]
    except PatternError:
        return []


def hypernodes_of(cluster: Cluster) -> HyperNodes:
    """The tree of HyperNodes as it is now. It is kept until something changes on which it depends."""
    version = cluster.nodes.static_version, len(cluster.nodes), cluster.versions.get("HyperNode", 0)
    kept = cluster.memory.get(MEMORY)
    if kept is None or kept[0] != version:
        kept = cluster.memory[MEMORY] = version, HyperNodes(cluster.of("HyperNode").values(), cluster.nodes, cluster.tier_names)
    tree: HyperNodes = kept[1]
    return tree
