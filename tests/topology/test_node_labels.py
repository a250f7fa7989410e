"""Where there are no HyperNodes, the names of tiers are keys of node labels."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.hypernodes import NO_SUCH_TIER, ROOT, hypernodes_of
from pumice.testing import cluster, hypernode, node, pod, podgroup, schedule
from tests.topology.racks import ACTIONS, PLUGINS, gang, running

ZONE, RACK = "example.com/zone", "example.com/rack"


def nodes(*labels: dict[str, str], cpu: int = 2) -> list[Any]:
    made: list[Any] = []
    for number, each in enumerate(labels, 1):
        one = node(f"n{number}").cpu(cpu).memory("16Gi")
        for key, value in each.items():
            one = one.label(key, value)
        made.append(one)
    return made


HALLS = [{ZONE: "a", RACK: "1"}, {ZONE: "a", RACK: "2"}, {ZONE: "b", RACK: "3"}, {ZONE: "b", RACK: "3"}]


def wish(name: str, count: int, key: str) -> Any:
    return podgroup(name, count).having("spec", "networkTopology", value={"mode": "hard", "highestTierName": key})


def binds(*objects: Any) -> dict[str, str]:
    return schedule(cluster(*objects), ACTIONS, *PLUGINS).binds


def domains(made: Cluster) -> dict[str, tuple[int, str]]:
    """Each domain with its tier and the domain above it."""
    tree = hypernodes_of(made)
    made.check()
    tree_of = {each.name: (each.tier, each.parent.name if each.parent else "") for each in tree.all}
    assert tree.ready and tree_of.pop(ROOT)
    return tree_of


@pytest.mark.parametrize(("key", "count", "places"), [(RACK, 4, {"n3", "n4"}), (RACK, 5, set()), (ZONE, 3, {"n1", "n2", "n3", "n4"})])
def test_a_gang_stays_where_nodes_share_a_value(key: str, count: int, places: set[str]) -> None:
    found = set(binds(*nodes(*HALLS), wish("g", count, key), *gang("g", count)).values())
    assert found <= places and bool(found) == bool(places)
    if key == ZONE:
        assert found in ({"n1", "n2"}, {"n3", "n4"})


def test_the_domains_are_those_that_podgroups_ask_for() -> None:
    made = cluster(*nodes(*HALLS), wish("g", 2, RACK))
    assert domains(made) == {f"{RACK}={value}": (1, ROOT) for value in "123"}
    made.put("PodGroup", wish("h", 2, ZONE).build()[1])
    assert domains(made) == {
        f"{ZONE}=a,{RACK}=1": (1, f"{ZONE}=a"),
        f"{ZONE}=a,{RACK}=2": (1, f"{ZONE}=a"),
        f"{ZONE}=b,{RACK}=3": (1, f"{ZONE}=b"),
        f"{ZONE}=a": (2, ROOT),
        f"{ZONE}=b": (2, ROOT),
    }
    made.put("PodGroup", wish("h", 3, ZONE).build()[1])
    made.put("PodGroup", wish("i", 3, ZONE).build()[1])
    made.remove("PodGroup", "default/i")
    made.remove("PodGroup", "default/g")
    assert domains(made) == {f"{ZONE}=a": (1, ROOT), f"{ZONE}=b": (1, ROOT)}


def test_a_node_without_a_label_is_in_no_domain_of_it() -> None:
    made = cluster(*nodes({ZONE: "a", RACK: "1"}, {RACK: "1"}, {RACK: "2"}, {}), wish("g", 2, RACK), wish("h", 2, ZONE))
    assert domains(made) == {f"{ZONE}=a": (2, ROOT), f"{ZONE}=a,{RACK}=1": (1, f"{ZONE}=a"), f"{RACK}=1": (1, ROOT), f"{RACK}=2": (1, ROOT)}


def test_a_gang_that_runs_grows_in_its_domain() -> None:
    group = wish("g", 2, ZONE).phase("Running")
    pods = [*running("g", "n1", "n1"), *[pod(f"more-{number}").cpu(1).gang("g") for number in range(3)]]
    assert set(binds(*nodes(*HALLS), group, *pods).values()) == {"n2"}


def test_hypernodes_that_have_the_tier_count_and_labels_do_not() -> None:
    spine = hypernode("left", 1, RACK).holds("n1", "n3")
    assert set(binds(*nodes(*HALLS), spine, wish("g", 4, RACK), *gang("g", 4)).values()) == {"n1", "n3"}


def test_a_label_stands_for_the_hypernodes_that_keep_to_one_value_of_it() -> None:
    tiers = [hypernode("h1", 1, "switch").holds("n1"), hypernode("h2", 1, "switch").holds("n3", "n4")]
    tiers.append(hypernode("h3", 2, "row").holds("h1", kind="HyperNode"))
    tiers += [hypernode("h4", 3, "hall").holds("h2", "h3", kind="HyperNode"), hypernode("empty", 1, "switch")]
    made = cluster(*nodes(*HALLS), *tiers, wish("g", 4, ZONE), wish("h", 1, "example.com/none"), *gang("g", 4))
    assert hypernodes_of(made).tier_numbers == {ZONE: 2, "switch": 1, "row": 2, "hall": 3}
    assert set(schedule(made, ACTIONS, *PLUGINS).binds.values()) == {"n3", "n4"}


@pytest.mark.parametrize("labels", [HALLS, [{RACK: "1"}, {}]])
def test_where_no_hypernode_keeps_to_one_value_nothing_is_near_enough(labels: list[dict[str, str]]) -> None:
    spine = hypernode("left", 1, "switch").holds("n1", "n2")
    outcome = schedule(cluster(*nodes(*labels), spine, wish("g", 2, RACK), *gang("g", 2)), ACTIONS, *PLUGINS)
    assert outcome.binds == {}
    assert any(NO_SUCH_TIER in why for why in outcome.waiting.values())
