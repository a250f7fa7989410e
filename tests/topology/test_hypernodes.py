"""The tree of HyperNodes over a node table."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.hypernodes import MOST_LEVELS, NOWHERE, ROOT, HyperNode, HyperNodes, hypernodes_of
from pumice.testing import cluster, hypernode, node


def spine() -> Cluster:
    """a and b in rack r1, c in r2, both below s; d in no rack."""
    racks = hypernode("r1", 1, "rack").holds("a", "b"), hypernode("r2", 1, "rack").holds("c")
    return cluster(*(node(name).cpu(1) for name in "abcd"), *racks, hypernode("s", 2, "row").holds("r1", "r2", kind="HyperNode"))


def names(made: Cluster, found: HyperNode) -> list[str]:
    return [made.nodes.names[row] for row in np.flatnonzero(found.rows)]


def members(*selectors: dict[str, object], kind: str = "Node") -> list[str]:
    """What a HyperNode with these selectors holds, of nodes a1, a2, b1 and racks ra (a1), rb (b1)."""
    racks = hypernode("ra").holds("a1"), hypernode("rb").holds("b1")
    top = hypernode("x", 2).member(*({"type": kind, "selector": selector} for selector in selectors))
    made = cluster(node("a1"), node("a2").label("zone", "west"), node("b1").label("zone", "west"), *racks, top)
    return names(made, hypernodes_of(made).by_name["x"])


def test_a_hypernode_holds_its_nodes_and_those_of_its_children() -> None:
    made = spine()
    tree = hypernodes_of(made)
    assert names(made, tree.by_name["r1"]) == ["a", "b"]
    assert names(made, tree.by_name["s"]) == ["a", "b", "c"]
    assert names(made, tree.root) == ["a", "b", "c", "d"]


def test_a_virtual_root_stands_one_tier_above_all() -> None:
    tree = hypernodes_of(spine())
    assert (tree.root.name, tree.root.tier) == (ROOT, 3)
    assert [child.name for child in tree.root.children] == ["s"]
    assert [found.name for found in tree.all] == ["r1", "r2", "s", ROOT]
    assert [found.name for found in tree.root.downward()] == [ROOT, "s", "r1", "r2"]


def test_without_hypernodes_the_root_is_of_tier_one() -> None:
    made = cluster(node("a"))
    tree = hypernodes_of(made)
    assert (tree.root.tier, tree.ready, names(made, tree.root)) == (1, True, ["a"])


@pytest.mark.parametrize(
    ("left", "right", "common"), [("r1", "r1", "r1"), ("r1", "r2", "s"), ("s", "r2", "s"), ("r1", ROOT, ROOT)], ids=lambda name: str(name)
)
def test_the_lowest_common_ancestor(left: str, right: str, common: str) -> None:
    tree = hypernodes_of(spine())
    found = tree.lowest_common(tree.by_name[left], tree.by_name[right])
    assert found.name == common
    assert found.contains(tree.by_name[left])
    assert found.contains(tree.by_name[right])


def test_the_lowest_hypernode_that_holds_some_nodes() -> None:
    made = spine()
    tree, rows = hypernodes_of(made), made.nodes.rows
    assert tree.enclosing([rows["a"], rows["b"]]).name == "r1"
    assert tree.enclosing([rows["a"], rows["c"]]).name == "s"
    assert tree.enclosing([rows["a"], rows["d"]]).name == ROOT


def test_every_row_knows_its_lowest_hypernode_and_that_of_each_tier() -> None:
    tree = hypernodes_of(spine())
    assert [tree.all[number].name for number in tree.homes] == ["r1", "r1", "r2", ROOT]
    assert [tree.all[number].name for number in tree.of_tier(2)[:3]] == ["s"] * 3
    assert tree.of_tier(2)[3] == NOWHERE


def test_a_hypernode_names_itself_and_its_tier() -> None:
    assert [str(found) for found in hypernodes_of(spine()).all][::3] == ["<HyperNode r1 tier 1>", f"<HyperNode {ROOT} tier 3>"]


def test_tiers_have_names() -> None:
    assert hypernodes_of(spine()).tier_numbers == {"rack": 1, "row": 2}


@pytest.mark.parametrize(
    ("selector", "held"),
    [
        ({"exactMatch": {"name": "a2"}}, ["a2"]),
        ({"exactMatch": {"name": "nobody"}}, []),
        ({"regexMatch": {"pattern": "^a"}}, ["a1", "a2"]),
        ({"regexMatch": {"pattern": "1"}}, ["a1", "b1"]),
        ({"regexMatch": {"pattern": "("}}, []),
        ({"regexMatch": {"pattern": "^(?i:A)\\pN\\z"}}, ["a1", "a2"]),
        ({"labelMatch": {"matchLabels": {"zone": "west"}}}, ["a2", "b1"]),
        ({}, []),
    ],
    ids=str,
)
def test_nodes_are_members_by_name_pattern_or_label(selector: dict[str, object], held: list[str]) -> None:
    assert members(selector) == held


def test_hypernodes_are_members_by_name_or_pattern() -> None:
    assert members({"exactMatch": {"name": "rb"}}, kind="HyperNode") == ["b1"]
    assert members({"regexMatch": {"pattern": "^r"}}, kind="HyperNode") == ["a1", "b1"]
    assert members({"exactMatch": {"name": "rb"}}, {"regexMatch": {"pattern": "^rb$"}}, kind="HyperNode") == ["b1"]


def test_a_hypernode_in_two_others_makes_the_tree_unusable() -> None:
    tops = (hypernode(name, 2).holds("r", kind="HyperNode") for name in ("x", "y"))
    tree = hypernodes_of(cluster(node("a"), hypernode("r").holds("a"), *tops))
    assert not tree.ready
    assert tree.trouble == "HyperNode r is a member of both x and y"
    assert list(tree.by_name) == [ROOT]


def test_a_cycle_makes_the_tree_unusable() -> None:
    ring = (
        hypernode("x").holds("y", kind="HyperNode"),
        hypernode("y").holds("z", kind="HyperNode"),
        hypernode("z").holds("x", kind="HyperNode"),
    )
    assert hypernodes_of(cluster(*ring)).trouble == "HyperNode x is a member of itself"


def test_a_branch_above_a_cycle_is_no_cycle_of_its_own() -> None:
    ring = hypernode("x").holds("y", kind="HyperNode"), hypernode("y").holds("x", kind="HyperNode")
    assert not hypernodes_of(cluster(hypernode("a").holds("b", kind="HyperNode"), hypernode("b"), *ring)).ready


def test_the_hypernode_that_is_named_is_one_of_the_cycle_not_one_below_it() -> None:
    ring = hypernode("x").holds("y", "a", kind="HyperNode"), hypernode("y").holds("x", kind="HyperNode")
    assert hypernodes_of(cluster(node("n"), hypernode("a").holds("n"), *ring)).trouble == "HyperNode x is a member of itself"


@pytest.mark.parametrize("levels", [MOST_LEVELS, MOST_LEVELS + 1, 5000])
def test_a_tree_of_more_levels_than_any_network_has_is_unusable_and_says_so(levels: int) -> None:
    width = len(str(levels))
    tower = [hypernode(f"h{number:0{width}}").holds(f"h{number + 1:0{width}}", kind="HyperNode") for number in range(levels)]
    tree = hypernodes_of(cluster(node("n"), *tower))
    assert tree.ready == (levels <= MOST_LEVELS)
    deepest = f"h{levels - 1:0{width}}"
    assert tree.ready or tree.trouble == f"HyperNode {deepest} has {levels - 1} others above it; nest them at most {MOST_LEVELS} deep"
    flat = hypernodes_of(cluster(node("n"), *(hypernode(f"h{number}", number).holds("n") for number in range(levels))))
    assert flat.ready == (levels <= MOST_LEVELS)
    assert flat.ready or flat.trouble == f"HyperNodes are of {levels} different tiers; use at most {MOST_LEVELS}"


def test_the_tree_is_kept_until_nodes_or_hypernodes_change() -> None:
    made = spine()
    first = hypernodes_of(made)
    assert hypernodes_of(made) is first
    made.put(*node("e").cpu(1).build())
    second = hypernodes_of(made)
    assert len(second.root.rows) == 5
    made.put(*hypernode("r3").holds("e").build())
    assert "r3" in hypernodes_of(made).by_name
    made.remove("HyperNode", "r3")
    assert "r3" not in hypernodes_of(made).by_name


def test_a_removed_node_is_in_no_hypernode() -> None:
    made = spine()
    row = made.nodes.rows["a"]
    made.remove("Node", "a")
    tree: HyperNodes = hypernodes_of(made)
    assert names(made, tree.by_name["r1"]) == ["b"]
    assert tree.homes[row] == NOWHERE
