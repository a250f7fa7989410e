"""Each rule finds its fault, on the user's own objects where it can, and says nothing of a cluster that is in order."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert

from pumice.answers.lint import Finding, lint
from pumice.answers.lint.sarif import sarif
from pumice.api.core import PodDisruptionBudget
from pumice.scheduler.framework.policy import PluginOption, Policy
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.registry import PLUGINS
from pumice.testing import cluster, node, pod, podgroup, priority_class, queue
from pumice.testing.scene import NOW, policy
from tests.nodes_for_pods.storage import claim

GOOD = ("priority", "gang", "conformance", "predicates", "proportion", "nodeorder")


def tiers(actions: str, *names: tuple[str, ...], hierarchy: bool = False) -> Policy:
    return Policy(
        policy(actions, ()).actions, tuple(tuple(PluginOption(PLUGINS[name], hierarchy=hierarchy) for name in tier) for tier in names)
    )


def found(made: Cluster, by: Policy) -> dict[str, Finding]:
    findings = lint(made, by, NOW)
    made.check()
    assert len({finding.rule for finding in findings}) == len(findings), findings
    return {finding.rule: finding for finding in findings}


def small(*more: object) -> Cluster:
    return cluster(node("n1").cpu(8).memory("8Gi"), *more)  # type: ignore[arg-type]


def test_a_cluster_in_order_has_no_findings() -> None:
    assert found(small(podgroup("j"), pod("j").cpu(1).gang("j")), policy("enqueue, allocate, reclaim, preempt, backfill", GOOD)) == {}


def test_tiers_that_keep_voters_from_being_heard_are_shown_on_ones_own_pods() -> None:
    """As in Volcano's documented defaults: gang and conformance decide for proportion whom reclaim evicts."""
    queues = (queue("a"), queue("b"))
    fair = [podgroup(f"a{n}", 0).queue("a").phase("Running") for n in range(2)]
    held = [pod(f"a{n}").cpu(2).gang(f"a{n}").on("n1") for n in range(2)]
    rest = (podgroup("b", 0).queue("b").phase("Running"), *(pod(f"b-{n}").cpu(2).gang("b").on("n1") for n in range(2)))
    asks = (podgroup("b-more").queue("b"), pod("b-more").cpu(1).gang("b-more"))
    by = tiers("enqueue, allocate, reclaim, backfill", ("priority", "gang", "conformance"), ("predicates", "proportion", "nodeorder"))
    told = found(small(*queues, *fair, *held, *rest, *asks), by)["victims-short-circuited"]
    assert (
        told.consequence
        == "reclaim does not ask proportion whom it may evict, as long as an earlier tier (gang, conformance) names anybody"
    )
    assert told.fix == "Put proportion into the tier of gang"


CONFIGURATIONS = {
    "action-cannot-act": policy("enqueue, allocate, shuffle, backfill", GOOD),
    "plugin-cannot-act": policy("allocate, backfill", (*GOOD, "overcommit")),
    "harmful-order": policy("enqueue, reclaim, allocate, backfill", GOOD),
    "nothing-places": policy("enqueue", GOOD),
    "no-backfill": policy("enqueue, allocate", GOOD),
    "two-quotas": policy("enqueue, allocate, backfill", (*GOOD, "capacity")),
    "no-gang": policy("enqueue, allocate, backfill", ("predicates",)),
}


@pytest.mark.parametrize("rule", CONFIGURATIONS)
def test_a_configuration_that_does_otherwise_than_meant_is_told(rule: str) -> None:
    made = small(podgroup("g", 2), *(pod(f"g-{n}").cpu(1).gang("g") for n in range(2)))
    assert list(found(made, CONFIGURATIONS[rule])) == [rule]


def test_jobs_in_order_need_no_allocate() -> None:
    assert found(small(podgroup("g", 2)), policy("in-order, backfill", GOOD)) == {}
    assert list(found(small(podgroup("g", 2)), policy("in-order", ["predicates"]))) == ["no-gang", "no-backfill"]
    early = found(small(), policy("reclaim, in-order, backfill", GOOD))["harmful-order"]
    assert early.fix == "Put reclaim after in-order"


def test_enqueue_after_allocate_and_actions_twice_are_told() -> None:
    by = policy("allocate, enqueue, allocate, backfill", GOOD)
    assert [finding.rule for finding in lint(small(), by, NOW)] == ["harmful-order", "harmful-order"]


def of_queues(*queues: object) -> dict[str, Finding]:
    return found(small(*queues), tiers("enqueue, allocate, reclaim, backfill", ("gang", "predicates", "capacity"), hierarchy=True))


def test_amounts_beyond_the_cluster_are_told() -> None:
    told = of_queues(queue("a").deserves(cpu=5), queue("b").deserves(cpu=4))
    assert told["deserved-beyond-cluster"].consequence.startswith("queues deserve 9 cpu of the 8 that the cluster has")
    guaranteed = queue("c").having("spec", "guarantee", "resource", "cpu", value="9")
    assert list(of_queues(guaranteed)) == ["guarantee-beyond-cluster"]


def test_a_queue_that_may_not_hold_what_it_shall_have_is_told() -> None:
    told = of_queues(
        queue("a").deserves(cpu=4).capability(cpu=2), queue("b").having("spec", "guarantee", "resource", "cpu", value="2").capability(cpu=1)
    )
    assert told["capability-below-deserved"].subject == "queue/a"
    assert told["capability-below-guarantee"].fix == "Raise capability.cpu to 2, or lower guarantee"


def test_trees_that_do_not_hang_together_are_told() -> None:
    assert of_queues(queue("a").parent("gone"))["queue-tree"].consequence == (
        "its jobs never start: queue gone, the parent of a, does not exist"
    )
    circle = lint(
        small(queue("root"), queue("a").parent("b"), queue("b").parent("a")),
        tiers("enqueue, allocate, backfill", ("gang", "capacity"), hierarchy=True),
        NOW,
    )
    assert [finding.rule for finding in circle] == ["queue-tree", "queue-tree"]
    inner = of_queues(queue("root"), queue("a").parent("root"), queue("b").parent("a"), podgroup("j").queue("a"))
    assert inner["jobs-in-inner-queue"].example == "podgroup/default/j is in it"


def test_a_closed_queue_with_jobs_and_queues_that_never_give_are_told() -> None:
    made = of_queues(queue("shut").state("Closed"), podgroup("j").queue("shut"), pod("j").cpu(1).gang("j"))
    assert made["closed-with-jobs"].subject == "queue/shut"
    keeps = [queue(name).having("spec", "reclaimable", value=False) for name in ("default", "a")]
    assert "nothing-reclaimable" in of_queues(*keeps)


def test_priorities_without_effect_are_told() -> None:
    classes = (priority_class("low", 1), priority_class("high", 9).having("preemptionPolicy", value="Never"))
    job = podgroup("j").priority_class("high")
    assert list(found(small(*classes, job), policy("enqueue, allocate, backfill", GOOD))) == ["nobody-preempts"]
    assert list(found(small(*classes, job), policy("enqueue, allocate, preempt, backfill", GOOD))) == ["class-never-preempts"]


def test_jobs_that_can_never_run_are_told_and_errors_come_first() -> None:
    made = small(podgroup("j"), pod("j").cpu(9).gang("j"))
    findings = lint(made, policy("enqueue, allocate", GOOD), NOW)
    assert [(finding.rule, finding.level.value) for finding in findings] == [("never-fits", "error"), ("no-backfill", "note")]
    assert findings[0].text.startswith("podgroup/default/j: it can never run here: ")


def test_a_job_whose_claim_is_missing_or_unbound_waits_for_it() -> None:
    """It may yet come. A claim that is lost does not."""
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("data", "logs")]
    job = podgroup("j"), pod("j").cpu(1).gang("j").having("spec", "volumes", value=volumes)
    told = found(small(*job, claim("logs", bound=False)), policy("enqueue, allocate, backfill", GOOD))
    assert list(told) == ["waits-for-claim"]
    assert told["waits-for-claim"].consequence.startswith("it waits for PersistentVolumeClaims default/data, default/logs, without which")
    lost = claim("data", "v", phase="Lost"), claim("logs", "w", phase="Lost")
    assert list(found(small(*job, *lost), policy("enqueue, allocate, backfill", GOOD))) == ["never-fits"]


def test_a_hard_topology_that_no_plugin_heeds_is_told() -> None:
    made = small(podgroup("j").topology(1), pod("j").cpu(1).gang("j"))
    told = found(made, policy("enqueue, allocate, backfill", GOOD))
    assert [(each.rule, each.subject) for each in told.values()] == [("topology-unheeded", "podgroup/default/j")]
    assert found(made, policy("enqueue, allocate, backfill", [*GOOD, "network-topology-aware"])) == {}


@pytest.mark.parametrize(
    ("spec", "is_told"),
    [
        ({"minAvailable": "100%"}, True),
        ({"minAvailable": 2}, True),
        ({"minAvailable": 1}, False),
        ({"minAvailable": 3}, True),
        ({"minAvailable": "51%"}, True),
        ({"minAvailable": "50%"}, False),
        ({"minAvailable": "most"}, False),
        ({"maxUnavailable": "1%"}, False),
        ({"maxUnavailable": "0%"}, True),
        ({"maxUnavailable": 0}, True),
        ({"maxUnavailable": 1}, False),
    ],
)
def test_budgets_that_never_allow_an_eviction_are_told(spec: dict[str, Any], is_told: bool) -> None:
    ended = pod("c").cpu(1).label("app", "x").phase("Succeeded")
    made = small(pod("a").cpu(1).label("app", "x").on("n1"), pod("b").cpu(1).label("app", "x").on("n1"), ended)
    body = {"metadata": {"name": "b", "namespace": "default"}, "spec": spec | {"selector": {"matchLabels": {"app": "x"}}}}
    made.put("PodDisruptionBudget", convert(body, PodDisruptionBudget))
    assert ("budget-blocks-all" in found(made, policy("allocate, backfill", GOOD))) == is_told


def test_findings_can_be_had_as_sarif() -> None:
    findings = lint(small(), policy("enqueue, allocate", GOOD), NOW)
    run = sarif(findings, "cluster.yaml")["runs"][0]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["no-backfill"]
    result = run["results"][0]
    assert (result["ruleId"], result["level"]) == ("no-backfill", "note")
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "cluster.yaml"
