"""Kubernetes' own gangs in an embedded cluster: what Jobs make of themselves, what keeps groups, and the story of a gang over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api import kinds
from pumice.cluster.apiserver import DeleteOptions, PatchRequest
from pumice.scheduler.framework.feature_gates import release
from tests.embedded.cluster import PODS, Api, Object, Still, cluster, until

GROUPS, WORKLOADS, CLAIMS = "podgroups.scheduling.k8s.io", "workloads.scheduling.k8s.io", "resourceclaims.resource.k8s.io"
GATES = {"GenericWorkload", "WorkloadWithJob", "DRAWorkloadResourceClaims"}
BETA = "/apis/scheduling.k8s.io/v1beta1/namespaces/default"
GANG = {"schedulingPolicy": {"gang": {}}}


def job(name: str, parallelism: int = 3, scheduling: Object | None = None, **template: Any) -> Object:
    container = {"name": "main", "image": "train:1", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    pod = {"containers": [container], "restartPolicy": "Never"} | template
    spec: Object = {"parallelism": parallelism, "completions": parallelism, "template": {"spec": pod}}
    return {"metadata": {"name": name}, "spec": spec | ({"scheduling": scheduling} if scheduling is not None else {})}


def created(still: Still, body: Object) -> Object:
    made = still.store.create("jobs.batch", body, "default")
    still.plane.quiet()
    return made


def events(still: Still, subject: str) -> list[str]:
    return [f"{one['reason']}: {one['message']}" for one in still.store.all("events") if one["involvedObject"]["name"] == subject]


def pods(still: Still) -> list[Object]:
    return [pod for pod in still.store.all("pods") if "deletionTimestamp" not in pod["metadata"]]


def test_a_job_makes_a_workload_a_pod_group_and_pods_that_belong_to_it() -> None:
    still = Still(gates=GATES)
    still.store.create("priorityclasses.scheduling.k8s.io", {"metadata": {"name": "high"}, "value": 10})
    scheduling = GANG | {"disruptionMode": {"all": {}}}
    made = created(still, job("train", scheduling=scheduling, priorityClassName="high"))
    ((workload,), (group,)) = list(still.store.all(WORKLOADS)), list(still.store.all(GROUPS))
    policy = {"gang": {"minCount": 3}}
    assert workload["spec"] == {
        "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "train"},
        "podGroupTemplates": [
            {"name": "train-pgt-0", "schedulingPolicy": policy, "disruptionMode": {"all": {}}, "priorityClassName": "high"}
        ],
    }
    assert group["metadata"]["name"].startswith(f"{workload['metadata']['name']}-train-pgt-0-")
    assert [(owner["kind"], owner.get("controller")) for owner in group["metadata"]["ownerReferences"]] == [
        ("Job", True),
        ("Workload", None),
    ]
    reference = {"workloadName": workload["metadata"]["name"], "templateName": "train-pgt-0"}
    assert group["spec"]["workloadRef"] == reference and group["spec"]["schedulingPolicy"] == policy and group["spec"]["priority"] == 10
    members = pods(still)
    assert len(members) == 3
    for pod in members:
        assert pod["spec"]["schedulingGroup"] == {"podGroupName": group["metadata"]["name"]}
        owners = {owner["uid"]: owner.get("controller") for owner in pod["metadata"]["ownerReferences"]}
        assert owners == {made["metadata"]["uid"]: True, group["metadata"]["uid"]: None}
    assert events(still, "train")[:2] == [
        f"WorkloadCreated: Created Workload {workload['metadata']['name']} for Job train",
        f"PodGroupCreated: Created PodGroup {group['metadata']['name']} for Job train",
    ]


def test_a_larger_job_has_a_larger_gang() -> None:
    still = Still(gates=GATES)
    created(still, job("train", scheduling=GANG))
    still.store.patch("jobs.batch", "train", PatchRequest("merge", {"spec": {"parallelism": 2}}), "default")
    still.plane.quiet()
    (group,), (workload,) = still.store.all(GROUPS), still.store.all(WORKLOADS)
    assert group["spec"]["schedulingPolicy"] == workload["spec"]["podGroupTemplates"][0]["schedulingPolicy"] == {"gang": {"minCount": 2}}


def test_a_job_that_states_nothing_has_a_basic_group() -> None:
    still = Still(gates=GATES)
    created(still, job("plain"))
    assert [group["spec"]["schedulingPolicy"] for group in still.store.all(GROUPS)] == [{"basic": {}}]


@pytest.mark.parametrize("gates", [{"GenericWorkload"}, set()], ids=["no gate of jobs", "no gates"])
def test_without_its_gate_a_job_makes_no_group(gates: set[str]) -> None:
    still = Still(gates=gates)
    created(still, job("train", scheduling=GANG))
    assert not list(still.store.all(GROUPS)) and len(pods(still)) == 3
    assert all("schedulingGroup" not in pod["spec"] for pod in pods(still))


def test_a_job_that_was_there_before_or_whose_pods_name_a_group_makes_none() -> None:
    still = Still(gates=GATES)
    created(still, job("own", schedulingGroup={"podGroupName": "mine"}))
    assert not list(still.store.all(WORKLOADS)) and {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods(still)} == {"mine"}
    made = created(still, job("train", scheduling=GANG))
    for resource in (GROUPS, WORKLOADS):
        for one in list(still.store.all(resource)):
            still.store.patch(resource, one["metadata"]["name"], PatchRequest("merge", {"metadata": {"finalizers": None}}), "default")
            still.store.delete(resource, one["metadata"]["name"], "default")
    still.store.patch("jobs.batch", "train", PatchRequest("merge", {"metadata": {"labels": {"a": "b"}}}), "default")
    still.plane.quiet()
    assert made["spec"]["parallelism"] == 3 and not list(still.store.all(WORKLOADS))


def test_an_owned_job_makes_the_group_that_its_owners_workload_has_for_it() -> None:
    still = Still(gates=GATES)
    owner = still.store.create("configmaps", {"metadata": {"name": "set"}}, "default")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "set", "uid": owner["metadata"]["uid"], "controller": True}
    alone, told = job("alone"), job("told")
    for body in (alone, told):
        body["metadata"]["ownerReferences"] = [reference]
    told["metadata"]["annotations"] = {"scheduling.k8s.io/group-template-name": "workers"}
    templates = [{"name": "leader", "schedulingPolicy": {"basic": {}}}, {"name": "workers", "schedulingPolicy": {"gang": {"minCount": 2}}}]
    spec = {"controllerRef": {"kind": "ConfigMap", "name": "set"}, "podGroupTemplates": templates}
    still.store.create(WORKLOADS, {"metadata": {"name": "w"}, "spec": spec}, "default")
    created(still, alone)
    created(still, told)
    (group,) = still.store.all(GROUPS)
    assert group["spec"]["workloadRef"] == {"workloadName": "w", "templateName": "workers"}
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}} and len(group["metadata"]["ownerReferences"]) == 1
    assert sum("schedulingGroup" in pod["spec"] for pod in pods(still)) == 3 and len(pods(still)) == 6


WITH_GATES = Still(gates=GATES | {"CompositePodGroup"})


@pytest.mark.parametrize("kind", [kind for kind in vars(kinds).values() if isinstance(kind, kinds.Kind)], ids=lambda kind: kind.name)
def test_each_kind_that_programs_name_is_served_as_they_name_it(kind: kinds.Kind) -> None:
    found = WITH_GATES.store.kinds.at(kind.group, kind.version, kind.plural)
    assert found is not None and (found.kind, found.namespaced) == (kind.kind, kind.namespaced)


def test_the_pods_of_an_owned_job_go_alone_where_its_owners_workload_has_no_group_for_it() -> None:
    still = Still(gates=GATES)
    owner = still.store.create("configmaps", {"metadata": {"name": "set"}}, "default")
    told = job("told")
    told["metadata"] |= {
        "annotations": {"scheduling.k8s.io/group-template-name": "workers"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "set", "uid": owner["metadata"]["uid"], "controller": True}],
    }
    created(still, told)
    assert len(pods(still)) == 3 and not any("schedulingGroup" in pod["spec"] for pod in pods(still))
    assert not list(still.store.all(GROUPS))


def test_a_workload_that_is_refused_is_told_and_tried_again() -> None:
    """The name of its template is longer than a label may be."""
    still = Still(gates=GATES)
    created(still, job("a" * 63, scheduling=GANG))
    assert not pods(still)
    told = events(still, "a" * 63)
    assert told and told[0].startswith(f"FailedWorkloadCreate: Failed to create Workload for Job {'a' * 63}: ")
    assert "must be no more than 63 bytes" in told[0]


def test_with_the_job_goes_all_that_it_made() -> None:
    still = Still(gates=GATES)
    created(still, job("train", scheduling=GANG))
    for pod in pods(still):
        still.store.bind("default", pod["metadata"]["name"], "cpu4-0")
    still.after(5)
    still.store.delete("jobs.batch", "train", "default", DeleteOptions(propagation="Background"))
    still.after(60)
    assert not [*still.store.all("pods"), *still.store.all(GROUPS), *still.store.all(WORKLOADS)]


def test_a_group_stays_while_a_pod_of_it_runs() -> None:
    still = Still(gates=GATES)
    still.store.create(GROUPS, {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"basic": {}}}}, "default")
    for name in ("p", "q"):
        still.pod(name, "cpu4-0", schedulingGroup={"podGroupName": "g"}, notes={"pumice.io/run-seconds": "60"} if name == "q" else None)
    still.pod("stranger", "cpu4-0")
    still.after(5)
    still.store.delete(GROUPS, "g", "default")
    still.after(5)
    assert still.store.find(GROUPS, "default", "g") is not None
    still.store.delete("pods", "p", "default")
    still.after(10)
    assert still.find("p") is None and still.store.find(GROUPS, "default", "g") is not None
    still.after(60)  # q has ended, and is still there
    assert still.phase("q") == "Succeeded" and still.store.find(GROUPS, "default", "g") is None
    still.store.create(GROUPS, {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"basic": {}}}}, "default")
    still.store.delete(GROUPS, "g", "default")
    still.plane.quiet()
    assert still.store.find(GROUPS, "default", "g") is None


def test_a_group_has_claims_that_its_pods_share() -> None:
    still = Still(gates=GATES)
    requests = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
    shared = {"name": "dev", "resourceClaimTemplateName": "one"}
    group = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"basic": {}}, "resourceClaims": [shared]}}
    made = still.store.create(GROUPS, group, "default")
    still.pod("p", schedulingGroup={"podGroupName": "g"}, resourceClaims=[shared, shared | {"name": "own"}])
    assert events(still, "g")[0].startswith("FailedResourceClaimCreation: PodGroupResourceClaim dev: ")
    still.store.create("resourceclaimtemplates.resource.k8s.io", {"metadata": {"name": "one"}, "spec": {"spec": requests}}, "default")
    still.plane.quiet()
    ((stated,),) = [one["status"]["resourceClaimStatuses"] for one in still.store.all(GROUPS)]
    pod = still.find("p")
    assert pod is not None
    of_pod = {one["name"]: one["resourceClaimName"] for one in pod["status"]["resourceClaimStatuses"]}
    assert of_pod["dev"] == stated["resourceClaimName"] != of_pod["own"] and len(list(still.store.all(CLAIMS))) == 2
    user = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": made["metadata"]["uid"]}
    still.store.create(CLAIMS, {"metadata": {"name": "named"}, "spec": requests}, "default")
    device = {"request": "gpu", "driver": "d.example.com", "pool": "n", "device": "a"}
    body = {"status": {"allocation": {"devices": {"results": [device]}}, "reservedFor": [user]}}
    for name in ("named", of_pod["dev"]):
        still.store.patch(CLAIMS, name, PatchRequest("merge", body), "default", "status")
    still.plane.quiet()
    assert still.store.get(CLAIMS, "named", "default")["status"]["reservedFor"] == [user]
    still.store.delete("pods", "p", "default", DeleteOptions(grace_s=0))
    still.store.delete(GROUPS, "g", "default")
    still.plane.quiet()
    assert [one["metadata"]["name"] for one in still.store.all(CLAIMS)] == ["named"]


def member(name: str, group: str, cpu: str = "3") -> Object:
    container = {"name": "main", "image": "train:1", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "schedulingGroup": {"podGroupName": group}}}


def condition(subject: Object, type_: str) -> Object:
    return next((one for one in subject.get("status", {}).get("conditions", ()) if one["type"] == type_), {})


def row(api: Api, path: str) -> list[Any]:
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    return list(api.call("GET", path, accept=accept)["rows"][0]["cells"])


def test_a_gang_waits_for_members_then_for_room_and_is_bound_as_a_whole() -> None:
    gates = {"GenericWorkload": True, "WorkloadWithJob": True}
    with cluster("2x4cpu", speed=20, release=release(37, gates)) as api:
        assert api.get("/version")["gitVersion"] == "v1.37.2+pumice"
        kubelets = {node["status"]["nodeInfo"]["kubeletVersion"] for node in api.get("/api/v1/nodes")["items"]}
        assert kubelets == {"v1.37.2-pumice"}
        template = {"name": "t", "schedulingPolicy": {"gang": {"minCount": 3}}}
        api.create(f"{BETA}/workloads", {"metadata": {"name": "w"}, "spec": {"podGroupTemplates": [template]}})
        spec = {"schedulingPolicy": template["schedulingPolicy"], "workloadRef": {"workloadName": "w", "templateName": "t"}}
        api.create(f"{BETA}/podgroups", {"metadata": {"name": "g"}, "spec": spec})
        for name in ("p0", "p1"):
            api.create(PODS, member(name, "g"))
        api.create(PODS, {"metadata": {"name": "plain"}, "spec": {"containers": member("x", "g", "500m")["spec"]["containers"]}})
        until(lambda: api.get(f"{PODS}/plain")["spec"].get("nodeName"))
        assert row(api, f"{BETA}/podgroups")[:4] == ["g", "Gang", "w", "Pending"]
        assert not any("conditions" in pod["status"] for pod in api.items(PODS) if pod["metadata"]["name"] != "plain")
        api.create(PODS, member("p2", "g"))
        refused = until(lambda: condition(api.get(f"{BETA}/podgroups/g"), "PodGroupInitiallyScheduled"))
        assert (refused["status"], refused["reason"]) == ("False", "Unschedulable")
        no_victims = "pod group preemption: No preemption victims found for incoming preemptor"
        assert refused["message"] == f"minCount (3) cannot be satisfied: 2 scheduled, 0 remaining, {no_victims}"
        assert row(api, f"{BETA}/podgroups")[3] == "Unschedulable"

        def texts() -> Object:
            return {name: condition(api.get(f"{PODS}/{name}"), "PodScheduled").get("message") for name in ("p0", "p2")}

        until(lambda: all(texts().values()))
        assert texts() == {"p0": f"pod group is unschedulable, {refused['message']}", "p2": "0/2 nodes are available: 2 Insufficient cpu."}
        api.create("/api/v1/nodes", {"metadata": {"name": "more"}, "status": {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "10"}}})
        until(lambda: all(pod["spec"].get("nodeName") for pod in api.items(PODS)))
        scheduled = until(
            lambda: (found := condition(api.get(f"{BETA}/podgroups/g"), "PodGroupInitiallyScheduled"))["status"] == "True" and found
        )
        assert (scheduled["reason"], scheduled["message"]) == ("Scheduled", "") and "observedGeneration" not in scheduled
        assert row(api, f"{BETA}/podgroups")[3] == "Scheduled"

        def told() -> set[str]:
            listed = api.items("/api/v1/namespaces/default/events")
            return {one["involvedObject"]["name"] for one in listed if one["reason"] == "Scheduled" and one["type"] == "Normal"}

        until(lambda: told() >= {"p0", "p1", "p2"})


@pytest.mark.parametrize(
    ("mode", "in_group", "evicted"),
    [("all", True, 2), ("single", True, 1), ("single", False, 1)],
    ids=["a group evicts a whole group", "a group evicts a part of a group", "a pod evicts a part of a group"],
)
def test_what_upstreams_suite_expects_of_preemption(mode: str, in_group: bool, evicted: int) -> None:
    """test/e2e/scheduling/workload_aware_preemption.go: one of a scarce resource of the node is wanted, of two that a gang holds."""
    scarce = {"example.com/combined-resource": "2"}

    def pod(name: str, group: str, priority: str) -> Object:
        made = member(name, group)
        made["spec"] |= {"priorityClassName": priority, "nodeSelector": {"kubernetes.io/hostname": node}}
        made["spec"]["containers"][0]["resources"] = {key: dict.fromkeys(scarce, "1") for key in ("requests", "limits")}
        if not group:
            del made["spec"]["schedulingGroup"]
        return made

    def group(name: str, least: int, priority: str, mode: str) -> Object:
        policy = {"gang": {"minCount": least}}
        spec = {"priorityClassName": priority, "schedulingPolicy": policy, "disruptionMode": {mode: {}}}
        return {"metadata": {"name": name}, "spec": spec}

    with cluster("1x4cpu", speed=20, release=release(37, {"GenericWorkload": True})) as api:
        (node,) = (each["metadata"]["name"] for each in api.items("/api/v1/nodes"))
        api.patch(f"/api/v1/nodes/{node}/status", {"status": {"capacity": scarce, "allocatable": scarce}})
        for name, value in (("low", 100), ("high", 1000)):
            api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
        api.create(f"{BETA}/podgroups", group("victims", 2, "low", mode))
        for name in ("v1", "v2"):
            api.create(PODS, pod(name, "victims", "low"))
        until(lambda: [each["status"]["phase"] for each in api.items(PODS)] == ["Running"] * 2)
        if in_group:
            api.create(f"{BETA}/podgroups", group("preemptor", 1, "high", "single"))
        api.create(PODS, pod("hp1", "preemptor" if in_group else "", "high"))
        until(lambda: (found := api.get(f"{PODS}/hp1"))["status"]["phase"] == "Running" and found["spec"]["nodeName"] == node)
        stay = [each for each in api.items(PODS) if each["metadata"]["name"] != "hp1" and "deletionTimestamp" not in each["metadata"]]
        assert len(stay) == 2 - evicted
