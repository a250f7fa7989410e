"""Workloads whose pods are not made: controllers' events say what refused them, and an owner itself that it is suspended or wants none."""

from __future__ import annotations

import copy

import pytest
from msgspec.structs import replace

from bench.causes import KUBE, LIMITS, SANDBOX, TWO, batch_job, job, node, policy_of, queue, resource_quota
from bench.small_cluster import USER, SmallCluster
from pumice.answers import whatif, why
from pumice.answers.changes import RaiseQuota
from pumice.answers.pod_quota import promise_rest
from pumice.answers.pods_not_made import take_in_refusals
from pumice.answers.pods_to_come import is_promised
from pumice.answers.request_changes import StateAmounts
from pumice.answers.subject import called
from pumice.answers.trial_cluster import TrialCluster
from pumice.api.core import Event
from pumice.api.errors import InputError
from pumice.api.json_objects import Object
from pumice.api.manifests import WorkloadManifest
from pumice.api.structs import convert
from pumice.cluster.apiserver import PatchRequest
from pumice.inputs.known_objects import FromManifests, know_objects
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model.cluster import Cluster
from tests.answers.test_pods_to_come import made

LIMIT = {"type": "Container", "max": {"cpu": "1"}}
SMALL = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}, "spec": {"limits": [LIMIT]}}


def web(cpu: str, replicas: int = 2) -> Object:
    pod = {"containers": [{"name": "main", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}]}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def asked(cluster: SmallCluster) -> tuple[Cluster, Policy, float]:
    """The state as the commands read it: with the events of controllers."""
    cluster.settle()
    state = cluster.state
    take_in_refusals(state[0], [("Event", convert(each, Event)) for each in cluster.store.all("events")])
    return state


@pytest.mark.parametrize(
    ("subject", "refused"),
    [("job/default/waits", job("waits", 2, {"cpu": "2"})), ("deployment/web", web("2")), ("default/web", web("2"))],
)
def test_what_a_limit_range_refuses_is_told(subject: str, refused: Object) -> None:
    state = asked(made(*TWO, SMALL, refused))
    answer = why(*state, subject, advise=True)
    assert answer.state == "waits"
    assert answer.line.startswith("its controller cannot create its pods: ")
    assert answer.line.endswith("must be less than or equal to cpu limit of 1")
    assert whatif(*state, subject).line == answer.line


def stateful_set() -> Object:
    made = web("2")
    return made | {"kind": "StatefulSet", "spec": made["spec"] | {"serviceName": "web"}}


def gang_of_volcano(workload: Object) -> Object:
    workload["spec"]["template"]["spec"]["schedulerName"] = "volcano"
    return workload


WORKLOADS = {
    "job/waits": batch_job("waits", 2, {"cpu": "2"}, "default", {}),
    "deployment/web": web("2"),
    "statefulset/web": stateful_set(),
    "deploy/web": gang_of_volcano(web("2")),
}  #: by subject; the first and the last are for Volcano's scheduler


@pytest.mark.parametrize("subject", WORKLOADS)
def test_a_quota_that_refuses_all_pods_of_a_workload_is_named_with_its_amounts_and_what_is_enough(subject: str) -> None:
    state = asked(made(*TWO, resource_quota(requests__cpu=1), WORKLOADS[subject]))
    answer = why(*state, subject, advise=True)
    of = 1 if subject == "statefulset/web" else 2  # which makes one pod after another
    pods = "its only pod" if of == 1 else "2 of its 2 pods"
    assert answer.line == f"ResourceQuota default/compute refuses {pods}: 0 of 1 requests.cpu are used, and it asks for 2 (1 short)"
    assert answer.advice == (RaiseQuota("default/compute", {"requests.cpu": "2"}),)
    assert answer.advice in [option.changes for option in whatif(*state, subject).options]
    state[0].check()


@pytest.mark.parametrize("subject", WORKLOADS)
def test_what_a_quota_demands_of_containers_is_named_with_the_container_and_tried(subject: str) -> None:
    workload = copy.deepcopy(WORKLOADS[subject])
    workload["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "side:1"})
    cluster = made(*TWO, resource_quota(limits__cpu=20, limits__memory="20Gi"), workload)
    state = asked(cluster)
    answer = why(*state, subject, advise=True)
    assert answer.line.endswith(": containers main, side lack limits.cpu and limits.memory, which it demands of each container")
    (change,) = answer.advice
    assert isinstance(change, StateAmounts)
    assert change.containers == {
        "main": {"limits": {"cpu": "2", "memory": "128Mi"}},
        "side": {"limits": {"cpu": "100m", "memory": "128Mi"}},
    }
    assert answer.advice in [option.changes for option in whatif(*state, subject).options]
    cluster.follow(change)
    cluster.settle()
    assert any(pod["spec"].get("nodeName") for pod in cluster.store.all("pods"))


def test_one_container_that_states_nothing_is_enough_for_a_quota_to_refuse_a_pod_as_kubernetes_says() -> None:
    workload = copy.deepcopy(WORKLOADS["deployment/web"])
    workload["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "side:1"})
    cluster = made(*TWO, resource_quota(requests__cpu=20, requests__memory="20Gi"), workload)
    asked(cluster)
    told = [event["message"] for event in cluster.store.all("events") if event["reason"] == "FailedCreate"]
    assert told and told[0].endswith("failed quota: compute: must specify requests.cpu for: side; requests.memory for: main,side")


def test_where_nothing_was_refused_nothing_is_told_of_it() -> None:
    state = asked(made(*TWO, web("2")))
    assert why(*state, "deployment/web").subject == "deployment/web"
    with pytest.raises(InputError, match="there is no job default/nobody"):
        why(*state, "deployment/nobody")


@pytest.mark.parametrize(
    ("phase", "told"),
    [
        ("Aborted", "is suspended: `pumice job resume waits` lets it go on"),
        ("Completed", "has ended: it is Completed"),
        ("Pending", "waits: its controller has made no PodGroup for it yet; it is Pending"),
    ],
)
def test_a_job_without_a_podgroup_says_in_which_phase_it_is(phase: str, told: str) -> None:
    cluster = made(*TWO)
    cluster.store.create(cluster.store.kinds.of_object("batch.volcano.sh/v1alpha1", "Job"), job("waits", 1, {"cpu": "2"}), "default")
    cluster.update_status(job("waits", 1, {"cpu": "2"}) | {"status": {"state": {"phase": phase}}})
    answer = why(*cluster.state, "job/waits")
    assert f"{answer.state}: {answer.line}" == told


def batch(**spec: object) -> Object:
    found = batch_job("waits", 1, {"cpu": "2"}, "default", {})
    return found | {"spec": found["spec"] | spec}


@pytest.mark.parametrize(
    ("subject", "workload", "told"),
    [
        (
            "job/waits",
            batch(suspend=True),
            """is suspended: `kubectl patch jobs.batch waits --type=merge -p '{"spec":{"suspend":false}}'` lets it go on""",
        ),
        (
            "job/waits",
            batch(parallelism=0),
            """wants no pods: `kubectl patch jobs.batch waits --type=merge -p '{"spec":{"parallelism":1}}'` lets it have one""",
        ),
        ("deployment/web", web("2", replicas=0), "wants no pods: `kubectl scale deployment web --replicas=1` lets it have one"),
    ],
    ids=["suspended", "parallelism 0", "replicas 0"],
)
def test_a_workload_that_wants_no_pods_says_so_with_the_command_that_starts_it(subject: str, workload: Object, told: str) -> None:
    state = asked(made(*TWO, workload))
    answer = why(*state, subject, advise=True)
    assert f"{answer.state}: {answer.line}" == told
    assert whatif(*state, subject).line == answer.line


def test_a_job_that_was_suspended_after_its_pods_had_waited_is_told_so() -> None:
    cluster = made(node("n1", cpu=1), batch())
    cluster.settle()
    cluster.store.patch("jobs.batch", "waits", PatchRequest("merge", {"spec": {"suspend": True}}), "default", "", USER)
    assert why(*asked(cluster), "job/waits").state == "is suspended"


def test_of_a_suspended_owner_the_command_names_the_owner() -> None:
    above = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "set", "uid": "1"}, "spec": {"suspend": True}}
    owner = {"apiVersion": above["apiVersion"], "kind": "JobSet", "name": "set", "uid": "1", "controller": True}
    below = batch(suspend=False)
    below["metadata"] |= {"uid": "2", "namespace": "team", "ownerReferences": [owner]}
    above["metadata"] |= {"namespace": "team"}
    cluster, policy, now = made(*TWO).state
    know_objects(cluster, FromManifests([WorkloadManifest(above, ""), WorkloadManifest(below, "")]))
    line = why(cluster, policy, now, "job/team/waits").line
    command = """kubectl patch jobsets.jobset.x-k8s.io set -n team --type=merge -p '{"spec":{"suspend":false}}'"""
    assert line == f"its JobSet set is: `{command}` lets it go on"
    assert why(cluster, policy, now, "job/team/set").line == f"`{command}` lets it go on"


def test_a_deployment_of_which_a_quota_refuses_some_pods_says_how_many_and_by_what() -> None:
    state = asked(made(*TWO, resource_quota(requests__cpu=3), web("2")))
    answer = why(*state, "deployment/web")
    assert answer.state == "runs"
    assert answer.line.startswith("1 of its 2 pods are not made: ")
    assert "exceeded quota: compute, requested: requests.cpu=2, used: requests.cpu=2, limited: requests.cpu=3" in answer.line
    assert "; the others run: on n" in answer.line


@pytest.mark.parametrize(("phase", "missing"), [("Pending", []), ("Inqueue", ["default/old-w-1"]), ("Completed", [])])
def test_pods_that_a_quota_kept_from_being_made_are_promised_while_their_job_goes_on(phase: str, missing: list[str]) -> None:
    cluster, _, _ = made(*TWO, resource_quota(requests__cpu=3), job("old", 2, {"cpu": "2"})).state
    with TrialCluster(cluster) as trial:
        (group,) = (each.group for each in cluster.jobs.values() if each.group is not None)
        trial.put("PodGroup", replace(group, status=replace(group.status, phase=phase)))
        promise_rest(trial)
        assert [task.key for task in cluster.tasks.values() if is_promised(task)] == missing
    assert not any(map(is_promised, cluster.tasks.values()))


@pytest.mark.parametrize("waits", [batch(), web("2")], ids=["job", "deployment"])
def test_pods_that_name_a_node_which_does_not_exist_say_so(waits: Object) -> None:
    waits["spec"]["template"]["spec"]["nodeName"] = "n9"
    state = asked(made(*TWO, waits))
    answer = why(*state, f"{waits['kind'].lower()}/{waits['metadata']['name']}")
    assert (answer.state, answer.line) == (
        "waits",
        "node n9, which its spec.nodeName asks for, does not exist, and no scheduler looks for another one: "
        "add the node, or submit it without nodeName",
    )


def test_defaults_of_a_limit_range_count_before_the_pods_exist() -> None:
    state = made(*TWO, LIMITS, resource_quota(limits__cpu=3), job("waits", 1, {"cpu": "2"})).state
    line = why(*state, "job/waits").line
    assert line == "ResourceQuota default/compute refuses its only pod: 0 of 3 limits.cpu are used, and it asks for 4 (1 short)"


def test_what_a_runtime_class_asks_for_counts_before_the_pods_exist() -> None:
    shut = queue("shut")
    cluster = made(*TWO, shut, SANDBOX, job("waits", 1, {"cpu": "2"}, "shut", {"runtimeClassName": "sandbox"}))
    cluster.update_status(queue("shut", "Closed"))
    answer = why(*cluster.state, "job/waits", advise=True)
    assert [type(change).__name__ for change in answer.advice] == ["OpenQueue", "Drop"]
    assert "no node that it may use matches its node selector sandbox=yes, which is that of its RuntimeClass sandbox" in str(answer.chain)


def test_advice_for_a_deployment_without_podgroups_is_to_change_its_template_and_holds_for_all_pods_that_wait() -> None:
    cluster = SmallCluster(policy_of("kube-scheduler", KUBE, KUBE))
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    cluster.create([node("n1", taints=[taint]), web("2", 3)])
    cluster.settle()
    helps = "a toleration of gpu=yes:NoSchedule for deployment/web"
    state = cluster.state
    (change,) = why(*state, "deployment/web", advise=True).advice
    assert called(state[0], str(change)) == helps
    option = next(each for each in whatif(*state, "deployment/web").options if each.changes == (change,))
    assert len(option.places) == 3 and not option.others.starts
    assert why(*state, f"pod/{next(iter(option.places))}", advise=True).advice == (change,)
    cluster.follow(change)
    cluster.settle(30.0)
    pods = list(cluster.store.all("pods", "default"))
    assert [pod["spec"].get("nodeName") for pod in pods] == ["n1"] * 3
