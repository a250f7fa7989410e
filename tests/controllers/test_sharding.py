"""Each scheduler has the nodes that the policies of the sharding ConfigMap give it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pumice.api import kinds
from pumice.api.errors import InputError
from pumice.api.json_objects import Object, labels_of
from pumice.controllers.volcano.sharding import CONFIG_MAP, FILE, NodeShards, ShardingSettings, of_flag, settings_in
from tests.controllers.stage import Stage, plain_pod

BOTH = """
schedulerConfigs:
- name: volcano
  policies: [{name: allocation-rate, arguments: {minCPUUtil: 0.0, maxCPUUtil: 0.6}}]
- name: agent-scheduler
  policies: [{name: allocation-rate, arguments: {minCPUUtil: 0.7, maxCPUUtil: 1.0}}, {name: node-limit, arguments: {maxNodes: 2}}]
shardSyncPeriod: 30s
"""
STATED = ShardingSettings((of_flag("volcano:volcano:0:1:false:0:0"),))


def config_map(text: str = BOTH) -> Object:
    return kinds.new(kinds.CONFIG_MAP, CONFIG_MAP.namespace, CONFIG_MAP.name, data={FILE: text})


def node(name: str, cpu: str = "10", **labels: str) -> Object:
    made = kinds.new(kinds.NODE, "", name, status={"capacity": {"cpu": cpu}})
    made["metadata"]["labels"] = {key.replace("_", "/"): value for key, value in labels.items()}
    return made


def pod(name: str, on: str, cpu: str, **status: Any) -> Object:
    made = plain_pod(name, nodeName=on)
    made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    return {**made, "status": status}


def play(*objects: Object, stated: ShardingSettings = STATED) -> Stage:
    return Stage(*objects, controllers=[NodeShards(stated)])


def shards(stage: Stage) -> dict[str, Sequence[str]]:
    return {each["metadata"]["name"]: each["spec"]["nodesDesired"] for each in stage.lister.all(kinds.NODE_SHARD)}


def test_nodes_go_by_what_their_pods_request_and_the_fullest_come_first() -> None:
    loads = {"a": "1", "b": "6", "c": "6500m", "d": "8", "e": "9", "f": "20"}
    stage = play(config_map(), *map(node, loads), *(pod(f"on-{name}", name, cpu) for name, cpu in loads.items()))
    assert shards(stage) == {"volcano": ["b", "a"], "agent-scheduler": ["f", "e"]}, "c is in no range, d beyond the limit"
    stage.assert_settled()


def test_pods_that_ended_and_mirrors_of_the_kubelets_count_nothing() -> None:
    mirror = pod("static", "a", "9")
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    stage = play(config_map(), node("a"), mirror, pod("over", "a", "9", phase="Succeeded"), pod("failed", "a", "9", phase="Failed"))
    assert shards(stage) == {"volcano": ["a"], "agent-scheduler": []}


def test_what_one_scheduler_has_no_later_one_gets_and_warm_nodes_are_preferred() -> None:
    text = """
schedulerConfigs:
- name: first
  policies: [{name: warmup, weight: 2}, {name: node-limit, arguments: {maxNodes: 2}}]
- name: second
  policies: [{name: warmup, arguments: {warmupLabel: pool, warmupLabelValue: spare}}]
"""
    nodes = [node("a"), node("b", pool="spare"), node("c", **{"node.volcano.sh_warmup": "true"}), node("d", pool="spare")]
    assert labels_of(nodes[2]) == {"node.volcano.sh/warmup": "true"}
    assert shards(play(config_map(text), *nodes)) == {"first": ["c", "a"], "second": ["b", "d"]}


def test_the_old_form_of_a_scheduler_is_understood() -> None:
    text = (
        "schedulerConfigs: [{name: s, cpuUtilizationMin: 0.0, cpuUtilizationMax: 0.5, preferWarmupNodes: true, minNodes: 1, maxNodes: 1}]"
    )
    stage = play(config_map(text), node("a"), node("b"), pod("p", "b", "5"))
    assert shards(stage) == {"s": ["b"]}
    flags = ShardingSettings(tuple(map(of_flag, ("volcano:volcano:0.0:0.6:false:2:100", "agent:agent:0.7:inf:true:2:100"))))
    assert shards(play(node("a"), node("b"), pod("p", "b", "9"), stated=flags)) == {"volcano": ["a"], "agent": ["b"]}


def test_the_shards_follow_the_configuration_the_nodes_and_whoever_changes_them() -> None:
    stage = play(node("a"), node("b"))
    assert shards(stage) == {"volcano": ["a", "b"]}
    stage.add(config_map())
    assert shards(stage) == {"volcano": ["a", "b"], "agent-scheduler": []}
    stage.add(node("c"))
    assert shards(stage)["volcano"] == ["a", "b", "c"]
    stage.delete(kinds.NODE, "b")
    assert shards(stage)["volcano"] == ["a", "c"]
    stage.delete(kinds.NODE_SHARD, "volcano")
    assert shards(stage)["volcano"] == ["a", "c"], "it is made again"
    stage.change(
        kinds.CONFIG_MAP, CONFIG_MAP.name, {"data": {FILE: "schedulerConfigs: [{name: only, cpuUtilizationMax: 1.0}]"}}, "volcano-system"
    )
    assert shards(stage) == {"only": ["a", "c"]}, "a NodeShard of no scheduler is deleted"
    stage.change(kinds.CONFIG_MAP, CONFIG_MAP.name, {"data": {FILE: "schedulerConfigs: [{}]"}}, "volcano-system")
    stage.add(node("d"))
    assert shards(stage) == {"only": ["a", "c", "d"]}, "a ConfigMap that cannot be read leaves the old configuration in force"
    assert any("has no name" in emitted.message for emitted in stage.lister.emitted)


def test_a_large_change_counts_at_once_and_a_small_one_after_the_period() -> None:
    stage = play(config_map(), node("a"), node("b"))
    stage.add(pod("small", "a", "3"))
    assert shards(stage)["volcano"] == ["a", "b"]
    stage.add(pod("large", "b", "7"))
    assert shards(stage) == {"volcano": ["a"], "agent-scheduler": ["b"]}
    stage.add(pod("more", "a", "4"))
    assert shards(stage)["volcano"] == ["a"]
    stage.wait(30)
    assert shards(stage) == {"volcano": [], "agent-scheduler": ["a", "b"]}


def test_without_the_trigger_only_the_period_counts() -> None:
    stage = play(config_map(BOTH + "enableNodeEventTrigger: false\n"), node("a"))
    stage.add(node("b"))
    stage.add(pod("large", "a", "9"))
    assert shards(stage) == {"volcano": ["a"], "agent-scheduler": []}
    stage.wait(30)
    assert shards(stage) == {"volcano": ["b"], "agent-scheduler": ["a"]}


def test_shards_of_many_nodes_are_not_written_for_every_node_that_changes_places() -> None:
    text = "schedulerConfigs: [{name: s, cpuUtilizationMax: 1.0, minNodes: 1, maxNodes: 20}]"
    stage = play(config_map(text), *(node(f"n{number:02d}") for number in range(30)))
    before = shards(stage)
    stage.add(pod("p", "n29", "1"))
    stage.wait(60)
    assert shards(stage) == before, "n29 is the fullest, but one of twenty is less than a tenth"
    stage.add(pod("q", "n28", "1"))
    stage.wait(60)
    assert shards(stage)["s"][:2] == ["n28", "n29"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("schedulerConfigs: []", "schedulerConfigs is not a list of schedulers"),
        ("schedulerConfigs: [{name: s, policies: [{name: allocation-rat}]}]", 'did you mean "allocation-rate"'),
        ("schedulerConfigs: [{name: s, policies: [{name: warmup, weight: -1}]}]", "warmup of s: weight is negative"),
        ("schedulerConfigs: [{name: s, cpuUtilizationMin: 0.9, cpuUtilizationMax: 0.1}]", "0.9 to 0.1 is no range within 0 to 1"),
        ("schedulerConfigs: [{name: s, cpuUtilizationMax: high}]", 'maxCPUUtil: "high" is not a number'),
        ("schedulerConfigs: [{name: s, minNodes: 3, maxNodes: 2}]", "minNodes 3 and maxNodes 2 are no limits"),
        ("schedulerConfigs: [{name: s, cpuUtilizationMax: 1}]\nshardSyncPeriod: soon", "shardSyncPeriod"),
    ],
)
def test_a_wrong_configuration_says_what_is_wrong(text: str, told: str) -> None:
    with pytest.raises(InputError, match=r"volcano-system/volcano-sharding-configmap, sharding\.yaml") as raised:
        settings_in(config_map(text), STATED)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("text", "told"), [("a:b", "seven parts"), ("a:b:x:1:f:1:2", '"x" is not a share'), ("a:b:0:1:f:one:2", "number of")]
)
def test_a_wrong_flag_says_what_to_write(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        of_flag(text)
