"""Lost nodes, budgets, quotas, time to live."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api import kinds
from pumice.api.json_objects import Key, Object, name_of
from pumice.api.times import rfc3339
from pumice.controllers.controller import ObjectChange
from pumice.controllers.in_memory import Memory
from pumice.controllers.kubernetes.disruption import DisruptionBudgets
from pumice.controllers.kubernetes.node_lifecycle import NodeLifecycle
from pumice.controllers.kubernetes.resource_quota import ResourceQuotas
from pumice.controllers.kubernetes.role_aggregation import ROLE, RoleAggregation
from pumice.controllers.kubernetes.service_account import ServiceAccounts
from pumice.controllers.volcano.job_ttl import JobTtl
from tests.controllers.collected import Collected
from tests.controllers.stage import NOON, Stage, plain_pod, pod_spec, vcjob


def config(name: str, *owners: str, blocks: bool = False, **more: Any) -> Object:
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": f"uid-{owner}", "blockOwnerDeletion": blocks} for owner in owners
    ]
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", **({"ownerReferences": references} if references else {}), **more}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


class TestNodes:
    def node(self, ready: str = "True", **spec: Any) -> Object:
        status = {"conditions": [{"type": "Ready", "status": ready}]}
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": spec, "status": status}

    def lease(self) -> Object:
        meta = {"name": "n1", "namespace": "kube-node-lease"}
        spec = {"renewTime": rfc3339(NOON), "leaseDurationSeconds": 40}
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}

    def pod(self, name: str, seconds: int | None = None, tolerant: bool = True) -> Object:
        limit = {} if seconds is None else {"tolerationSeconds": seconds}
        tolerations = [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", **limit}]
        pod = plain_pod(name, nodeName="n1", tolerations=tolerations if tolerant else [])
        pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        return pod

    def play(self, *objects: Object) -> Stage:
        return Stage(*objects, controllers=[NodeLifecycle()])

    def test_a_bound_pod_concerns_its_node_only_if_the_node_is_gone_or_has_taints(self) -> None:
        change = ObjectChange(plain_pod(), plain_pod(nodeName="n1"))
        keys_of = NodeLifecycle().watches[kinds.POD]
        taint = {"key": "broken", "effect": "NoExecute"}
        found = [list(keys_of(change, Memory(nodes))) for nodes in ([self.node()], [self.node(taints=[taint])], [])]
        assert found == [[], [Key("", "n1")], [Key("", "n1")]]

    def taints(self, stage: Stage) -> list[tuple[str, str]]:
        return [(taint["key"], taint["effect"]) for taint in stage.get(kinds.NODE, "n1")["spec"].get("taints", [])]

    def ending(self, stage: Stage) -> list[str]:
        return [name_of(pod) for pod in stage.lister.all(kinds.POD) if pod["metadata"].get("deletionTimestamp")]

    def test_a_node_that_falls_silent_loses_its_pods_as_they_tolerate_it(self) -> None:
        pods = [self.pod("now", tolerant=False), self.pod("soon", 300), self.pod("never")]
        stage = self.play(self.node(), self.lease(), *pods)
        stage.wait(39)
        assert self.taints(stage) == []
        stage.wait(1)
        unreachable = "node.kubernetes.io/unreachable"
        assert self.taints(stage) == [(unreachable, "NoSchedule"), (unreachable, "NoExecute")]
        assert stage.get(kinds.NODE, "n1")["status"]["conditions"][0]["status"] == "Unknown"
        assert self.ending(stage) == ["now"]
        assert stage.get(kinds.POD, "soon")["status"]["conditions"][0]["status"] == "False"
        stage.wait(299)
        assert self.ending(stage) == ["now"]
        stage.wait(1)
        assert self.ending(stage) == ["now", "soon"]
        stage.assert_settled()

    def test_a_node_that_comes_back_is_clean_again(self) -> None:
        stage = self.play(self.node(), self.lease(), self.pod("soon", 300))
        stage.wait(100)
        stage.change(kinds.LEASE, "n1", {"spec": {"renewTime": rfc3339(stage.now)}}, "kube-node-lease")
        stage.change(kinds.NODE, "n1", {"status": self.node()["status"]})
        assert self.taints(stage) == []
        stage.wait(1)
        assert self.ending(stage) == []

    def test_conditions_and_cordons_become_taints_and_other_taints_stay(self) -> None:
        mine = {"key": "gpu", "effect": "NoSchedule"}
        node = self.node("False", taints=[mine], unschedulable=True)
        node["status"]["conditions"].append({"type": "MemoryPressure", "status": "True"})
        names = [key.removeprefix("node.kubernetes.io/") + ":" + effect for key, effect in self.taints(self.play(node))]
        assert names == [
            "gpu:NoSchedule",
            "not-ready:NoSchedule",
            "not-ready:NoExecute",
            "memory-pressure:NoSchedule",
            "unschedulable:NoSchedule",
        ]

    def test_the_pods_of_a_node_that_is_gone_are_ended_at_once(self) -> None:
        stage = self.play(self.node(), self.pod("p"))
        stage.delete(kinds.NODE, "n1")
        assert stage.names(kinds.POD) == []

    def test_a_pod_that_names_a_node_which_was_never_there_fails_after_a_while(self) -> None:
        pod = self.pod("p")
        pod["metadata"] |= {"creationTimestamp": rfc3339(NOON), "finalizers": ["example.com/kept"]}
        pod["status"] = {"phase": "Pending"}
        stage = self.play(pod)
        stage.wait(39)
        assert (stage.get(kinds.POD, "p")["status"], self.ending(stage)) == ({"phase": "Pending"}, [])
        stage.wait(1)
        status = stage.get(kinds.POD, "p")["status"]
        assert (status["phase"], status["conditions"][0]["reason"], self.ending(stage)) == ("Failed", "DeletionByPodGC", ["p"])
        stage.assert_settled()


class TestBudgets:
    def play(self, ready: int, of: int, replicas: int = 4, **spec: Any) -> Object:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "namespace": "default", "uid": "u"}}
        owner["spec"] = {"replicas": replicas}
        pods = []
        for number in range(of):
            pod = plain_pod(f"p{number}", owner)
            pod["metadata"]["labels"] = {"app": "web"}
            pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(number < ready)}]}
            pods.append(pod)
        meta = {"name": "b", "namespace": "default"}
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": meta,
            "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
        }
        self.stage = Stage(owner, budget, *pods, controllers=[DisruptionBudgets()])
        self.stage.assert_settled()
        status: Object = self.stage.get(kinds.DISRUPTION_BUDGET, "b")["status"]
        return status

    @pytest.mark.parametrize(
        ("ready", "of", "spec", "allowed", "desired"),
        [
            (3, 3, {"minAvailable": 2}, 1, 2),
            (2, 3, {"minAvailable": 2}, 0, 2),
            (4, 4, {"maxUnavailable": 1}, 1, 3),
            (3, 3, {"maxUnavailable": 1}, 0, 3),
            (4, 4, {"minAvailable": "50%"}, 2, 2),
            (4, 4, {"maxUnavailable": "30%"}, 2, 2),
            (0, 0, {"minAvailable": 0}, 0, 0),
        ],
    )
    def test_how_many_pods_may_go(self, ready: int, of: int, spec: Object, allowed: int, desired: int) -> None:
        status = self.play(ready, of, **spec)
        assert (status["disruptionsAllowed"], status["desiredHealthy"], status["currentHealthy"]) == (allowed, desired, ready)

    def test_in_a_rollout_the_size_of_the_deployment_counts(self) -> None:
        self.play(4, 4, maxUnavailable=1)
        deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default", "uid": "d"}}
        owners = [{**deployment["metadata"], "apiVersion": "apps/v1", "kind": "Deployment", "controller": True}]
        newer = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": {"replicas": 1}}
        newer["metadata"] = {"name": "newer", "namespace": "default", "uid": "n", "ownerReferences": owners}
        pod = plain_pod("p4", newer)
        pod["metadata"]["labels"] = {"app": "web"}
        self.stage.add({**deployment, "spec": {"replicas": 4}}, newer)
        self.stage.change(kinds.REPLICA_SET, "web", {"metadata": {"ownerReferences": owners}})
        self.stage.add(pod)
        status = self.stage.get(kinds.DISRUPTION_BUDGET, "b")["status"]
        assert (status["expectedPods"], status["desiredHealthy"], status["disruptionsAllowed"]) == (4, 3, 1)

    def test_a_granted_eviction_counts_until_the_pod_goes_or_time_passes(self) -> None:
        self.play(4, 4, maxUnavailable=1)
        granted = {"status": {"disruptedPods": {"p0": rfc3339(NOON)}}}
        self.stage.change(kinds.DISRUPTION_BUDGET, "b", granted)
        assert self.stage.get(kinds.DISRUPTION_BUDGET, "b")["status"]["disruptionsAllowed"] == 0
        self.stage.wait(120)
        assert self.stage.get(kinds.DISRUPTION_BUDGET, "b")["status"]["disruptionsAllowed"] == 1


def quota(hard: Object, **spec: Any) -> Object:
    meta = {"name": "q", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": hard, **spec}}


def test_a_quota_tells_what_is_used_of_it() -> None:
    hard = {"pods": "10", "requests.cpu": "20", "configmaps": "5", "count/jobs.batch.volcano.sh": "3", "requests.storage": "1Ti"}
    done = plain_pod("done")
    done["status"] = {"phase": "Succeeded"}
    meta = {"name": "c", "namespace": "default"}
    storage = {"resources": {"requests": {"storage": "10Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": storage}
    stage = Stage(quota(hard), plain_pod("p"), done, config("c"), vcjob(), claim, controllers=[ResourceQuotas()])
    used = stage.get(kinds.RESOURCE_QUOTA, "q")["status"]["used"]
    assert used == {"pods": "1", "requests.cpu": "1", "configmaps": "1", "count/jobs.batch.volcano.sh": "1", "requests.storage": "10Gi"}
    stage.add(plain_pod("p2"))
    assert stage.get(kinds.RESOURCE_QUOTA, "q")["status"]["used"]["pods"] == "2"
    stage.assert_settled()


def test_a_quota_follows_claims_and_services_that_change() -> None:
    meta = {"name": "c", "namespace": "default"}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": meta,
        "spec": {"resources": {"requests": {"storage": "10Gi"}}},
    }
    service = {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"type": "ClusterIP", "ports": [{"port": 1}]}}
    hard = {"requests.storage": "1Ti", "services.nodeports": "5"}
    stage = Stage(quota(hard), claim, service, controllers=[ResourceQuotas()])
    stage.change(kinds.CLAIM, "c", {"spec": {"resources": {"requests": {"storage": "20Gi"}}}})
    stage.change(kinds.SERVICE, "c", {"spec": {"type": "NodePort"}})
    used = stage.get(kinds.RESOURCE_QUOTA, "q")["status"]["used"]
    assert used == {"requests.storage": "20Gi", "services.nodeports": "1"}


def test_a_quota_with_scopes_counts_only_the_pods_in_them() -> None:
    bare = plain_pod("bare", priorityClassName="low", **{**pod_spec(), "containers": [{"name": "a"}]})
    best_effort = Stage(quota({"pods": "10"}, scopes=["BestEffort"]), plain_pod("p"), bare, controllers=[ResourceQuotas()])
    assert best_effort.get(kinds.RESOURCE_QUOTA, "q")["status"]["used"] == {"pods": "1"}
    low = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}
    by_class = Stage(quota({"pods": "10"}, scopeSelector=low), plain_pod("p"), bare, controllers=[ResourceQuotas()])
    assert by_class.get(kinds.RESOURCE_QUOTA, "q")["status"]["used"] == {"pods": "0"}


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Terminated", "Running"])
def test_a_finished_job_is_deleted_when_its_time_is_up(phase: str) -> None:
    job = vcjob(ttlSecondsAfterFinished=60)
    job["status"] = {"state": {"phase": phase, "lastTransitionTime": rfc3339(NOON)}}
    stage = Stage(job, controllers=[JobTtl(), Collected()])
    stage.wait(59)
    assert stage.names(kinds.JOB) == ["train"]
    stage.wait(1)
    assert stage.names(kinds.JOB) == (["train"] if phase == "Running" else [])


def test_a_kubernetes_job_counts_from_its_end() -> None:
    meta = {"name": "j", "namespace": "default"}
    status = {"conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": rfc3339(NOON)}]}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"ttlSecondsAfterFinished": 0}, "status": status}
    assert Stage(job, controllers=[JobTtl(kinds.BATCH_JOB), Collected()]).names(kinds.BATCH_JOB) == []


def test_every_namespace_has_a_service_account() -> None:
    stage = Stage(
        *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in ("a", "b")), controllers=[ServiceAccounts()]
    )
    assert stage.names(kinds.SERVICE_ACCOUNT) == ["default", "default"]
    stage.delete(kinds.SERVICE_ACCOUNT, "default", namespace="a")
    assert stage.get(kinds.SERVICE_ACCOUNT, "default", "a")["metadata"]["namespace"] == "a"
    stage.assert_settled()


class TestAggregatedRoles:
    def role(self, name: str, *rules: str, part_of: str = "", gathers: str = "") -> Object:
        labels = {f"part-of-{part_of}": "true"} if part_of else {}
        made: Object = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name, "labels": labels}}
        made["rules"] = [self.rule(each) for each in rules]
        if gathers:
            made["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {f"part-of-{gathers}": "true"}}]}
        return made

    def rule(self, resource: str) -> Object:
        return {"apiGroups": [""], "resources": [resource], "verbs": ["get"]}

    def resources(self, stage: Stage, name: str) -> list[str]:
        return [rule["resources"][0] for rule in stage.get(ROLE, name)["rules"]]

    def test_a_role_has_the_rules_of_those_that_it_selects_and_of_their_parts(self) -> None:
        whole, inner = self.role("whole", "gone", gathers="whole"), self.role("inner", part_of="whole", gathers="inner")
        parts = [self.role("a", "pods", part_of="whole"), self.role("z", "pods", "nodes", part_of="inner")]
        stage = Stage(whole, inner, *parts, self.role("other", "secrets"), controllers=[RoleAggregation()])
        assert self.resources(stage, "inner") == ["pods", "nodes"]
        assert self.resources(stage, "whole") == ["pods", "nodes"]
        stage.change(ROLE, "z", {"rules": [self.rule("events")]}, "")
        assert self.resources(stage, "whole") == ["pods", "events"]
        stage.change(ROLE, "z", {"metadata": {"labels": None}}, "")
        assert (self.resources(stage, "inner"), self.resources(stage, "whole")) == ([], ["pods"])
