"""What a write costs grows with the size of its object, not faster: operations are counted at n and at 2n.

An operation is a line of Python, or a comparison of two texts, which `in` makes out of sight. A text of the object counts for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pumice.api.json_objects import Object, copied
from pumice.cluster.apiserver import StatusError, WriteOptions
from pumice.cluster.apiserver.patches.patch import PatchRequest
from pumice.controllers import admission
from pumice.controllers.in_memory import Memory
from pumice.controllers.in_memory_loop import InMemoryLoop
from pumice.controllers.registry import kubernetes_controllers, volcano_controllers
from pumice.controllers.volcano.hypernode import HyperNodeCounts
from pumice.controllers.volcano.jobflow_patch import laid_over
from tests.apiserver.made import store
from tests.controllers.playing import node, template, workload
from tests.controllers.stage import NOON, fixed_key_pair, queue, vcjob
from tests.hostile.test_cost import lines

SMALL, LARGE, MOST = 150, 300, 2.5
compared = 0


class Text(str):
    """A text that counts how often it is compared."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        global compared
        compared += 1
        return str.__eq__(self, other)


def counted(value: Any) -> Any:
    match value:
        case dict():
            return {key: counted(inner) for key, inner in value.items()}
        case list():
            return [counted(inner) for inner in value]
        case str():
            return Text(value)
    return value


def operations(work: Callable[[], Any]) -> int:
    global compared
    compared = 0
    return lines(work) + compared


def tasks(size: int, **more: Any) -> list[Object]:
    return [{"name": f"t{n}", "replicas": 1, "minAvailable": 1, "template": template(), **more} for n in range(size)]


def job_of_tasks(size: int) -> Object:
    return vcjob(tasks=tasks(size))


def job_in_a_chain(size: int) -> Object:
    found = tasks(size)
    for number, task in enumerate(found[1:]):
        task["dependsOn"] = {"name": [f"t{number}"]}
    return vcjob(tasks=found)


def job_that_waits_for_all(size: int) -> Object:
    found = tasks(size)
    found[-1]["dependsOn"] = {"name": [f"t{number}" for number in range(size - 1)]}
    return vcjob(tasks=found)


def job_that_waits_for_nobody(size: int) -> Object:
    found = tasks(size)
    found[-1]["dependsOn"] = {"name": [f"x{number}" for number in range(size)]}
    return vcjob(tasks=found)


def job_of_equal_names(size: int) -> Object:
    return vcjob(tasks=[task | {"name": "t"} for task in tasks(size)])


def job_without_names(size: int) -> Object:
    return vcjob(tasks=[task | {"name": ""} for task in tasks(size)])


def job_of_volumes(size: int) -> Object:
    volumes = [{"name": f"v{n}", "emptyDir": {}} for n in range(size)]
    made = vcjob(tasks=tasks(1), volumes=[{"mountPath": f"/{n}", "volumeClaimName": f"c{n}"} for n in range(size)])
    made["spec"]["tasks"][0]["template"]["spec"] |= {"volumes": volumes}
    made["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["volumeMounts"] = [
        {"name": f"v{n}", "mountPath": f"/m{n}"} for n in range(size)
    ]
    return made


def job_of_policies(size: int) -> Object:
    return vcjob(tasks=tasks(1), policies=[{"exitCode": n + 1, "action": "AbortJob"} for n in range(size)])


def flow(flows: list[Object]) -> Object:
    meta = {"name": "f", "namespace": "default", "uid": "uid-f"}
    return {"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "metadata": meta, "spec": {"flows": flows}}


def flow_in_a_chain(size: int) -> Object:
    return flow([{"name": f"s{n}", "dependsOn": {"targets": [f"s{n - 1}"] if n else []}} for n in range(size)])


def flow_that_waits_for_all(size: int) -> Object:
    last = {"name": "last", "dependsOn": {"targets": [f"s{n}" for n in range(size)]}}
    return flow([*({"name": f"s{n}"} for n in range(size)), last])


def flow_that_waits_for_nobody(size: int) -> Object:
    return flow([{"name": "s", "dependsOn": {"targets": [f"x{n}" for n in range(size)]}}])


def hyper_node(size: int) -> Object:
    members = [{"type": "Node", "selector": {"exactMatch": {"name": f"n{n}"}}} for n in range(size)]
    return {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": "h"}, "spec": {"members": members}}


def queue_of_resources(size: int) -> Object:
    amounts = {f"example.com/r{n}": "1" for n in range(size)}
    return queue("wide", capability=amounts, deserved=amounts, guarantee={"resource": amounts}, parent="default")


ADMITTED = [
    job_of_tasks,
    job_in_a_chain,
    job_that_waits_for_all,
    job_that_waits_for_nobody,
    job_of_equal_names,
    job_without_names,
    job_of_volumes,
    job_of_policies,
    flow_in_a_chain,
    flow_that_waits_for_all,
    flow_that_waits_for_nobody,
    hyper_node,
    queue_of_resources,
]


def named(make: Callable[[int], Object]) -> str:
    return make.__name__


def grows(work: Callable[[int], Callable[[], Any]]) -> float:
    """How many times more operations there are for an object twice as large."""
    work(2)()  # what is done once only
    return operations(work(LARGE)) / operations(work(SMALL))


@pytest.mark.parametrize("make", ADMITTED, ids=named)
def test_admission_costs_no_more_than_the_object(make: Callable[[int], Object]) -> None:
    cluster = Memory([queue(), queue("root")], NOON)

    def work(size: int) -> Callable[[], Any]:
        made = counted(make(size))

        def admit() -> None:
            changed = admission.mutate(admission.CREATE, made, cluster)
            admission.validate(admission.CREATE, changed, None, cluster)

        return admit

    assert grows(work) < MOST


RUN = [job_of_tasks, job_in_a_chain, job_that_waits_for_all, job_of_volumes, flow_in_a_chain, flow_that_waits_for_all, hyper_node]
TEMPLATE = {"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobTemplate", "spec": vcjob(tasks=tasks(1))["spec"]}


def claims(size: int) -> list[Object]:
    head = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return [head | {"metadata": {"name": f"c{n}", "namespace": "default"}, "spec": {}} for n in range(size)]


def first_step(size: int, subject: Object) -> Callable[[], Any]:
    """What the controllers do about a new object, until its PodGroup waits."""
    steps = [TEMPLATE | {"metadata": {"name": f"s{n}", "namespace": "default"}} for n in range(size)]
    others = [*(steps if subject["kind"] == "JobFlow" else ()), *(claims(size) if subject["kind"] == "Job" else ())]
    cluster = Memory([queue(), *others], NOON)
    loop = InMemoryLoop(cluster, volcano_controllers(fixed_key_pair))
    loop.settle(NOON)
    loop.observe(cluster.put(counted(subject)))

    def run() -> None:
        loop.settle(NOON)
        for group in list(cluster.all("PodGroup.scheduling.volcano.sh")):
            loop.observe(cluster.put({**group, "status": {"phase": "Inqueue"}}))
        loop.settle(NOON)

    return run


@pytest.mark.parametrize("make", RUN, ids=named)
def test_controllers_cost_no_more_than_the_object(make: Callable[[int], Object]) -> None:
    assert grows(lambda size: first_step(size, make(size))) < MOST


def ends(pod: Object) -> Object:
    return {**pod, "status": {"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 1}}}]}}


@pytest.mark.parametrize(
    "policy", [{"event": "*"}, {"event": "PodPending", "timeout": "60s"}, {"event": "PodFailed"}, {"exitCode": 1}], ids=str
)
def test_a_job_costs_no_more_than_its_pods(policy: Object) -> None:
    """When it is made, when its pods wait too long, and when they all fail together."""

    def work(size: int) -> Callable[[], Any]:
        member = {"name": "worker", "replicas": size, "minAvailable": size, "template": template()}
        job = vcjob(tasks=[member], plugins={"pytorch": [], "hcclrank": []}, policies=[{**policy, "action": "RestartJob"}])
        cluster = Memory([queue(), counted(job)], NOON)
        loop = InMemoryLoop(cluster, volcano_controllers(fixed_key_pair))
        loop.settle(NOON)

        def run() -> None:
            for group in list(cluster.all("PodGroup.scheduling.volcano.sh")):
                loop.observe(cluster.put({**group, "status": {"phase": "Inqueue"}}))
            loop.settle(NOON)
            pods = list(cluster.all("Pod"))
            assert len(pods) == size
            loop.settle(NOON + 30)
            loop.observe([change for pod in pods for change in cluster.put(ends(pod))])
            loop.settle(NOON + 60)

        return run

    assert grows(work) < MOST


@pytest.mark.parametrize("way", ["exactMatch", "labelMatch"])
def test_counting_nodes_costs_no_more_than_the_tree_of_hyper_nodes(way: str) -> None:
    """A row of racks with two nodes each, of which one gets another label."""

    def work(size: int) -> Callable[[], Any]:
        nodes = [node(f"n{n}", {"rack": f"r{n // 2}"}) for n in range(2 * size)]
        racks = [copied(hyper_node(2)) for _ in range(size)]
        for number, rack in enumerate(racks):
            rack["metadata"]["name"] = f"r{number}"
            names = [{"exactMatch": {"name": f"n{n}"}} for n in (2 * number, 2 * number + 1)]
            selectors = names if way == "exactMatch" else [{"labelMatch": {"matchLabels": {"rack": f"r{number}"}}}]
            rack["spec"]["members"] = [{"type": "Node", "selector": each} for each in selectors]
        row = copied(hyper_node(0))
        row["spec"]["members"] = [{"type": "HyperNode", "selector": {"exactMatch": {"name": f"r{n}"}}} for n in range(size)]
        cluster = Memory(counted([*nodes, *racks, row]), NOON)
        loop = InMemoryLoop(cluster, [HyperNodeCounts()])
        loop.settle(NOON)
        loop.observe(cluster.put(node("n0", {"rack": "r1"})))

        def run() -> None:
            loop.settle(NOON)
            row = cluster.get("HyperNode.topology.volcano.sh", "", "h")
            assert row is not None and row["status"]["nodeCount"] == 2 * size

        return run

    assert grows(work) < MOST


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"])
def test_controllers_cost_no_more_than_the_pods(kind: str) -> None:
    def work(size: int) -> Callable[[], Any]:
        numbers = {"parallelism": size, "completions": size} if kind == "Job" else {"replicas": size}
        subject = workload(kind, **numbers, **({"podManagementPolicy": "Parallel"} if kind == "StatefulSet" else {}))
        nodes = [node(f"n{n}") for n in range(size if kind == "DaemonSet" else 1)]
        cluster = Memory(counted([*nodes, subject]), NOON)
        loop = InMemoryLoop(cluster, kubernetes_controllers())
        return lambda: loop.settle(NOON)

    assert grows(work) < MOST


CONTAINERS = "spec.template.spec.containers"


def deployment(size: int) -> Object:
    made = workload("Deployment")
    del made["metadata"]["uid"]
    pod = made["spec"]["template"]["spec"]
    pod["containers"] = [{"name": f"c{n}", "image": "i", "env": [{"name": f"e{n}", "value": "v"}]} for n in range(size)]
    pod["volumes"] = [{"name": f"v{n}", "emptyDir": {}} for n in range(size)]
    return made


def definition(size: int) -> Object:
    schema = {"type": "object", "properties": {f"p{n}": {"type": "object", "properties": {"a": {"type": "string"}}} for n in range(size)}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "example.com", "scope": "Namespaced", "names": {"plural": "wides", "kind": "Wide"}, "versions": [version]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "wides.example.com"},
        "spec": spec,
    }


def role(size: int) -> Object:
    rules = [{"verbs": ["get"], "apiGroups": ["a"], "resources": [f"r{n}"]} for n in range(size)]
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}, "rules": rules}


def quota(size: int) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {"hard": {f"requests.x{size}/{n}": "1" for n in range(size)}},  # names of its own: they are remembered
    }


def service(size: int) -> Object:
    ports = [{"name": f"p{n}", "port": n + 1} for n in range(size)]
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": ports}}


def pod_of_node_terms(size: int) -> Object:
    terms = [{"matchExpressions": [{"key": f"k{n}", "operator": "In", "values": ["v"]}]} for n in range(size)]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    spec = {"containers": [{"name": "c", "image": "i"}], "affinity": {"nodeAffinity": required}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


STORED = {
    "deployments.apps": deployment,
    "customresourcedefinitions.apiextensions.k8s.io": definition,
    "roles.rbac.authorization.k8s.io": role,
    "resourcequotas": quota,
    "services": service,
    "pods": pod_of_node_terms,
}


def keep(made: Any, resource: str, obj: Object) -> None:
    try:
        made.create(resource, obj, "" if resource.startswith("custom") else "default")
    except StatusError as error:
        raise AssertionError(error) from None


@pytest.mark.parametrize("resource", STORED)
def test_validation_costs_no_more_than_the_object(resource: str) -> None:
    def work(size: int) -> Callable[[], Any]:
        made, obj = store(), STORED[resource](size)
        return lambda: keep(made, resource, obj)

    assert grows(work) < MOST


def merges(size: int) -> PatchRequest:
    containers = [{"name": f"c{n}", "image": "j"} for n in reversed(range(size))]
    order = [{"name": f"c{n}"} for n in range(size)]
    return PatchRequest("strategic", {"spec": {"template": {"spec": {"containers": containers, "$setElementOrder/containers": order}}}})


def replaces(size: int) -> PatchRequest:
    place = "/" + CONTAINERS.replace(".", "/")
    return PatchRequest("json", [{"op": "replace", "path": f"{place}/{n}/image", "value": "j"} for n in range(size)])


def applies(size: int) -> PatchRequest:
    return PatchRequest("apply", copied(deployment(size)))


@pytest.mark.parametrize("make", [merges, replaces, applies], ids=lambda make: make.__name__)
def test_a_patch_costs_no_more_than_the_object(make: Callable[[int], PatchRequest]) -> None:
    def work(size: int) -> Callable[[], Any]:
        made, patch = store(), make(size)
        keep(made, "deployments.apps", deployment(size))
        return lambda: made.patch("deployments.apps", "web", patch, "default", options=WriteOptions(manager="m", force=True))

    assert grows(work) < MOST


def test_the_patch_of_a_flow_costs_no_more_than_its_entries() -> None:
    def work(size: int) -> Callable[[], Any]:
        spec = counted({"tasks": [{"name": f"t{n}", "replicas": 1} for n in range(size)]})
        patch = counted({"tasks": [{"name": f"t{n}", "replicas": 2} for n in reversed(range(size))]})
        return lambda: laid_over(spec, patch)

    assert grows(work) < MOST
    assert laid_over({"env": [{"name": "a"}, {"name": "b"}]}, {"env": [{"name": "b", "value": "1"}]})["env"][1] == {
        "name": "b",
        "value": "1",
    }
