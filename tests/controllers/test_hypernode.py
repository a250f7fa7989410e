"""HyperNodes are found by labels and count their nodes."""

from __future__ import annotations

from typing import Any

from pumice.api import kinds
from pumice.api.json_objects import Object, labels_of, name_of
from pumice.controllers.volcano.hypernode import HyperNodeCounts
from pumice.controllers.volcano.hypernode_discovery import HyperNodeDiscovery
from pumice.controllers.volcano.hypernode_tree import by_labels
from tests.controllers.stage import Stage

TOPOLOGY = by_labels("Main", ("zone", "rack"))


def node(name: str, **labels: str) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def hyper_node(name: str, *members: Object, tier: int = 1) -> Object:
    spec = {"tier": tier, "members": list(members)}
    return {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": name}, "spec": spec}


def member(type_: str, **selector: Any) -> Object:
    return {"type": type_, "selector": selector}


def members(subject: Object) -> list[str]:
    return [each["selector"]["exactMatch"]["name"] for each in subject["spec"]["members"]]


def play(*objects: Object) -> Stage:
    return Stage(*objects, controllers=[HyperNodeDiscovery([TOPOLOGY]), HyperNodeCounts()])


def test_domains_are_made_from_labels_and_follow_them() -> None:
    nodes = [node("n1", zone="a", rack="r1"), node("n2", zone="a", rack="r1"), node("n3", zone="a", rack="r2"), node("n4", rack="r9")]
    stage = play(*nodes)
    tiers = {each["spec"]["tier"]: each for each in stage.lister.all(kinds.HYPER_NODE)}
    racks = [each for each in stage.lister.all(kinds.HYPER_NODE) if each["spec"]["tier"] == 1]
    assert sorted(map(members, racks)) == [["n1", "n2"], ["n3"]]
    assert members(tiers[2]) == sorted(map(name_of, racks))
    assert tiers[2]["status"]["nodeCount"] == 3
    assert tiers[2]["spec"]["tierName"] == "zone"
    assert name_of(tiers[2]).startswith("hypernode-main-tier2-")
    assert labels_of(tiers[2]) == {"volcano.sh/network-topology-source": "label", "zone": "a"}, "as Volcano: users select by it"
    assert sorted(labels_of(each)["rack"] for each in racks) == ["r1", "r2"]
    stage.change(kinds.HYPER_NODE, name_of(tiers[2]), {"metadata": {"labels": {"zone": None, "mine": "x"}}})
    assert labels_of(stage.lister.get(kinds.HYPER_NODE, "", name_of(tiers[2])) or {}).items() >= {"zone": "a", "mine": "x"}.items()
    stage.assert_settled()
    stage.change(kinds.NODE, "n3", {"metadata": {"labels": {"rack": "r1"}}})
    racks = [each for each in stage.lister.all(kinds.HYPER_NODE) if each["spec"]["tier"] == 1]
    assert list(map(members, racks)) == [["n1", "n2", "n3"]]
    stage.delete(kinds.NODE, "n1")
    assert stage.lister.get(kinds.HYPER_NODE, "", name_of(racks[0]))["status"]["nodeCount"] == 2  # type: ignore[index]


def test_domains_stay_where_no_node_is_known() -> None:
    """So does a server look whose roles are not loaded yet."""
    stage = play(node("n1", zone="a", rack="r1"))
    found = stage.names(kinds.HYPER_NODE)
    stage.delete(kinds.NODE, "n1")
    assert stage.names(kinds.HYPER_NODE) == found and len(found) == 2


def test_hyper_nodes_of_a_user_are_left_alone_and_counted() -> None:
    by_name = hyper_node(
        "s1", member("Node", regexMatch={"pattern": "^n[12]$"}), member("Node", labelMatch={"matchLabels": {"rack": "r2"}})
    )
    wide = hyper_node("s2", member("HyperNode", exactMatch={"name": "s1"}), member("HyperNode", regexMatch={"pattern": "^s2$"}), tier=2)
    stage = play(node("n1"), node("n2"), node("n3", rack="r2"), node("n4"), by_name, wide)
    assert stage.names(kinds.HYPER_NODE) == ["s1", "s2"]
    assert [each["status"]["nodeCount"] for each in stage.lister.all(kinds.HYPER_NODE)] == [3, 3]
    stage.assert_settled()


CONF = """
networkTopologyDiscovery:
- source: ufm
  enabled: true
- source: label
  enabled: {enabled}
  config:
    networkTopologyTypes:
      flat:
      - nodeLabel: rack
      - nodeLabel: kubernetes.io/hostname
      deep:
        nodeSelector: {{matchLabels: {{kind: deep}}}}
        levels:
        - {{nodeLabel: cluster, tierName: wide}}
        - {{nodeLabel: pod}}
        - {{nodeLabel: kubernetes.io/hostname}}
"""


def config_map(text: str) -> Object:
    meta = {"name": "volcano-controller-configmap", "namespace": "volcano-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"volcano-controller.conf": text}}


def test_topologies_of_the_config_map_are_followed_and_their_last_label_is_the_nodes_own() -> None:
    nodes = [node("n1", rack="r1"), node("n2", rack="r1"), node("n3", kind="deep", cluster="c", pod="p"), node("n4", cluster="c", pod="p")]
    stage = Stage(*nodes, hyper_node("mine"), controllers=[HyperNodeDiscovery()])
    assert stage.names(kinds.HYPER_NODE) == ["mine"]
    stage.add(config_map(CONF.format(enabled="true")))
    found = {each["spec"].get("tierName"): each for each in stage.lister.all(kinds.HYPER_NODE)}
    assert {name: members(each) for name, each in found.items() if name} == {
        "rack": ["n1", "n2"],
        "pod": ["n3"],
        "wide": [name_of(found["pod"])],
    }
    assert labels_of(found["wide"])["volcano.sh/network-topology-profile"] == "deep"
    stage.assert_settled()
    text = {"volcano-controller.conf": CONF.format(enabled="false")}
    stage.change(kinds.CONFIG_MAP, "volcano-controller-configmap", {"data": text}, "volcano-system")
    assert stage.names(kinds.HYPER_NODE) == ["mine"]


def test_a_source_that_nobody_reads_is_told() -> None:
    text = "networkTopologyDiscovery: [{source: ufm, enabled: true}, {source: roce, enabled: false}, {source: label, enabled: true}]"
    stage = Stage(node("n1"), config_map(text), controllers=[HyperNodeDiscovery()])
    assert {(emitted.reason, emitted.message) for emitted in stage.lister.emitted} == {
        ("UnsupportedSource", "HyperNodes are not discovered by ufm: label the nodes, and use the source label")
    }


def test_a_config_map_that_cannot_be_understood_changes_nothing_and_says_so() -> None:
    stage = Stage(node("n1", rack="r1"), config_map(CONF.format(enabled="true")), controllers=[HyperNodeDiscovery()])
    before = stage.names(kinds.HYPER_NODE)
    for text in ("a: [", "networkTopologyDiscovery: [{source: label, enabled: true, config: {networkTopologyTypes: {x: {levels: 3}}}}]"):
        stage.change(kinds.CONFIG_MAP, "volcano-controller-configmap", {"data": {"volcano-controller.conf": text}}, "volcano-system")
        assert (stage.names(kinds.HYPER_NODE), stage.lister.emitted.pop().reason) == (before, "InvalidConfiguration")
