"""Waiting jobs, one for each cause that answers name, in every form in which a user meets it.

A `Cause` is what stands in the way, in words that no form depends on: nodes, queues, what runs already, and what the waiting pods ask for.
`situations` crosses the causes with the forms (a Volcano Job whose pods are not made yet, a PodGroup with pods, plain pods, a Job of
Kubernetes), with sizes, and with configurations.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import yaml

from bench.small_cluster import SmallCluster
from pumice.api.annotations import GROUP_NAME
from pumice.api.errors import InputError
from pumice.api.json_objects import Object
from pumice.cluster.apiserver import StatusError
from pumice.scheduler.config import config_text, read_configurations
from pumice.scheduler.config.volcano_conf import DEFAULT
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.registry import PLUGINS

GPU = "nvidia.com/gpu"
ZONE = "topology.kubernetes.io/zone"
CONF = "volcano-scheduler.conf"
RUN_CONF = (Path(__file__).parents[1] / "examples/run.conf").read_text()
STRICT = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
  - name: resourcequota
- plugins:
  - name: overcommit
    arguments: {overcommit-factor: 1.0}
  - name: predicates
  - name: capacity
    enableHierarchy: true
  - name: nodeorder
  - name: binpack
  - name: network-topology-aware
"""
KUBE = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
CONFIGURATIONS = {"capacity": RUN_CONF, "built-in": DEFAULT, "hierarchy": STRICT}


class Cause(NamedTuple):
    name: str
    objects: list[Object]  #: nodes, queues and all else that is there first
    running: list[Object] = []  #: jobs that run before the other one comes
    after: list[Object] = []  #: objects that come when these run
    requests: dict[str, Any] = {"cpu": "2"}
    pod: Object = {}  #: further fields of the pods
    queue: str = "default"
    spec: Object = {}  #: further fields of the job
    forms: str = "jgpb"  #: a Job of Volcano, a PodGroup with its pods, plain pods, a Job of Kubernetes (batch/v1)
    rivals: list[Object] = []  #: jobs that come together with it
    missing: int = 0  #: how many pods of a PodGroup are not there
    least: int = 1  #: the smallest gang that waits
    most: int = 3


class Situation(NamedTuple):
    """A cause in one form, under one configuration; or a recorded case, in which whatever waits is asked about."""

    name: str
    policy: Policy
    cause: Cause
    objects: list[Object]  #: what waits
    subject: str = ""  #: as a user names it
    whose: str = ""  #: with its namespace

    def prepared(self) -> SmallCluster | None:
        """A cluster in which the job has been submitted and cycles have run; None if admission refuses the job."""
        made = SmallCluster(self.policy)
        made.create(self.cause.objects)
        for job in self.cause.running:
            made.create([job])
            made.settle()
        try:
            made.create([*self.cause.rivals, *self.objects])
        except StatusError:
            return None
        for obj in self.cause.after:
            made.update_status(obj)
        made.settle()
        return made


def node(name: str, labels: Object | None = None, taints: list[Object] | None = None, *, cordoned: bool = False, **amounts: Any) -> Object:
    given = {"cpu": "8", "memory": "64Gi", "pods": "110"}
    given |= {GPU if resource == "gpu" else resource: str(amount) for resource, amount in amounts.items()}
    spec: Object = ({"taints": taints} if taints else {}) | ({"unschedulable": True} if cordoned else {})
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name} | (labels or {})}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": {"capacity": given, "allocatable": given}}


def queue(name: str, state: str = "", **spec: Any) -> Object:
    made = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1, **spec}}
    return made | ({"status": {"state": state}} if state else {})


def container(requests: Object) -> Object:
    limits = {name: amount for name, amount in requests.items() if "/" in name}
    return {"name": "main", "image": "train:1", "resources": {"requests": requests} | ({"limits": limits} if limits else {})}


def job(name: str, count: int, requests: Object, queue_name: str = "default", pod: Object | None = None, **spec: Any) -> Object:
    template = {"spec": {"restartPolicy": "Never", "containers": [container(requests)]} | (pod or {})}
    task = {"name": "w", "replicas": count, "template": template}
    body = {"schedulerName": "volcano", "queue": queue_name, "minAvailable": count, "tasks": [task], **spec}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": body}


def group(name: str, count: int, requests: Object, queue_name: str, pod: Object, missing: int = 0, **spec: Any) -> list[Object]:
    kept = {key: value for key, value in spec.items() if key in ("networkTopology", "priorityClassName")}
    body = {"minMember": count, "queue": queue_name, **kept}
    made = [{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": name}, "spec": body}]
    ranked = {"priorityClassName": spec["priorityClassName"]} if "priorityClassName" in spec else {}
    return made + [_pod(f"{name}-{n}", requests, pod | ranked, "volcano", {GROUP_NAME: name}) for n in range(count - missing)]


def _pod(name: str, requests: Object, pod: Object, scheduler: str, notes: Object) -> Object:
    spec = {"schedulerName": scheduler, "restartPolicy": "Never", "containers": [container(requests)]} | pod
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": notes}, "spec": spec}


def batch_job(name: str, count: int, requests: Object, queue_name: str, pod: Object) -> Object:
    template = {
        "metadata": {"annotations": {"scheduling.volcano.sh/queue-name": queue_name}},
        "spec": {"schedulerName": "volcano", "restartPolicy": "Never", "containers": [container(requests)]} | pod,
    }
    spec = {"completions": count, "parallelism": count, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def claim_in_zone(zone: str) -> list[Object]:
    """A claim that is bound to a volume of one zone."""
    at = [{"key": ZONE, "operator": "In", "values": [zone]}]
    kept: Object = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    volume = kept | {"hostPath": {"path": "/data"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": at}]}}}
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": "data"}
    return [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "data"}, "spec": volume},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"},
            "spec": claim | {"resources": {"requests": {"storage": "1Gi"}}},
        },
    ]


def failed(name: str) -> Object:
    """A node whose kubelet says nothing any more."""
    made = node(name)
    made["metadata"]["annotations"] = {"pumice.io/kubelet": "stopped"}
    made["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    return made


def rack(name: str, *nodes: str) -> Object:
    members = [{"type": "Node", "selector": {"exactMatch": {"name": each}}} for each in nodes]
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": 1, "members": members},
    }


def resource_quota(**hard: Any) -> Object:
    named = {name.replace("__", ".").replace("_gpu", f".{GPU}"): str(amount) for name, amount in hard.items()}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "compute"}, "spec": {"hard": named}}


def priority_class(name: str, value: int) -> Object:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def affinity(kind: str, labels: Object) -> Object:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def only_on(name: str) -> Object:
    return {"nodeSelector": {"kubernetes.io/hostname": name}}


def runtime_class(**fields: Any) -> Object:
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "sandbox"}, "handler": "runsc", **fields}


SANDBOX = runtime_class(scheduling={"nodeSelector": {"sandbox": "yes"}})
SANDBOX_OVERHEAD = runtime_class(overhead={"podFixed": {"cpu": "3"}})
DEFAULTS = {"type": "Container", "default": {"cpu": "4"}, "defaultRequest": {"cpu": "2"}}
LIMITS = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "defaults"}, "spec": {"limits": [DEFAULTS]}}
TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
SSD = {"nodeSelector": {"disk": "ssd"}}
HARD = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
TWO, FOUR = [node("n1"), node("n2")], [node(f"n{n}", cpu=4) for n in range(1, 5)]
PORT = {"containers": [container({"cpu": "1"}) | {"ports": [{"containerPort": 80, "hostPort": 8080}]}]}
CLAIM = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
RACKS = [*FOUR, rack("r1", "n1", "n2"), rack("r2", "n3", "n4")]
GPUS = [node("cpu4-0", cpu=4), node("gpu8-0", cpu=64, memory="512Gi", gpu=8), node("gpu8-1", cpu=64, memory="512Gi", gpu=8)]
CAUSES = [
    Cause("room", [node("n1")], [job("old", 1, {"cpu": "6"})], requests={"cpu": "4"}),
    Cause("memory", TWO, [job("old", 2, {"cpu": "1", "memory": "40Gi"})], requests={"cpu": "1", "memory": "30Gi"}),
    Cause("fragmented", TWO, [job("old", 2, {"cpu": "5"})], requests={"cpu": "4"}),
    Cause("too large", TWO, requests={"cpu": "12"}),
    Cause("no such device", TWO, requests={"cpu": "1", GPU: "1"}),
    Cause("gang short", TWO, [job("old", 1, {"cpu": "4"})], requests={"cpu": "4"}, least=4, most=4),
    Cause("gang too large", TWO, requests={"cpu": "6"}, least=3),
    Cause("devices held", GPUS, [job("old", 2, {"cpu": "8", GPU: "8"})], requests={"cpu": "8", GPU: "8"}),
    Cause("devices beyond", GPUS, requests={"cpu": "8", GPU: "8"}, least=3),
    Cause("capability", [*TWO, queue("small", capability={"cpu": "4"})], [job("old", 1, {"cpu": "3"}, "small")], queue="small"),
    Cause("capability below", [*TWO, queue("small", capability={"cpu": "1"})], queue="small"),
    Cause("closed queue", [*TWO, queue("shut")], after=[queue("shut", "Closed")], queue="shut", forms="jg"),
    Cause("taint", [node("n1", cpu=1), node("n2", taints=[TAINT])]),
    Cause("selector", TWO, pod=SSD),
    Cause("cordoned", [node("n1", cpu=1), node("n2", cordoned=True)]),
    Cause("pod affinity", TWO, pod=affinity("podAffinity", {"app": "web"})),
    Cause("anti-affinity", [node("n1")], [job("old", 1, {"cpu": "1"}, pod=affinity("podAntiAffinity", {"volcano.sh/job-name": "waits"}))]),
    Cause("host port", [node("n1")], [job("old", 1, {"cpu": "1"}, pod=PORT)], pod=PORT, most=1),
    Cause("claim", TWO, pod=CLAIM),
    Cause("gate", TWO, pod={"schedulingGates": [{"name": "example.com/quota"}]}),
    Cause("other scheduler", TWO, pod={"schedulerName": "another"}, forms="jgp"),
    Cause("pod quota", [*TWO, resource_quota(requests__cpu=1)], forms="jgp"),
    Cause("pod count", [*TWO, resource_quota(pods=2)], [job("old", 2, {"cpu": "1"})], forms="j"),
    Cause("gpu quota", [*GPUS, resource_quota(requests_gpu=4)], requests={"cpu": "8", GPU: "8"}, forms="j", most=2),
    Cause("all held", TWO, [job("old", 2, {"cpu": "8"})], requests={"cpu": "8"}),
    Cause(
        "outranked",
        [priority_class("high", 10), node("n1")],
        rivals=[job("first", 1, {"cpu": "7"}, priorityClassName="high")],
        requests={"cpu": "4"},
        most=2,
    ),
    Cause("rack", RACKS, requests={"cpu": "3"}, least=3, spec=HARD, forms="jg"),
    Cause(
        "rack held",
        RACKS,
        [
            job("old", 2, {"cpu": "3"}, pod=only_on("n1")),
            job("odd", 1, {"cpu": "3"}, pod=only_on("n3")),
        ],
        requests={"cpu": "3"},
        least=2,
        most=2,
        spec=HARD,
        forms="jg",
    ),
    Cause(
        "share", [*TWO, queue("a"), queue("b", deserved={"cpu": "8"})], [job("old", 2, {"cpu": "8"}, "a")], queue="b", requests={"cpu": "4"}
    ),
    Cause("guarantees", [*TWO, queue("kept", guarantee={"resource": {"cpu": "12"}}, deserved={"cpu": "12"})], requests={"cpu": "6"}),
    Cause("pods missing", TWO, missing=1, least=3, forms="g"),
    Cause(
        "important",
        [priority_class("high", 10), node("n1")],
        [job("old", 1, {"cpu": "6"})],
        requests={"cpu": "4"},
        spec={"priorityClassName": "high"},
    ),
    Cause(
        "capability and taint",
        [node("n2", taints=[TAINT]), queue("small", capability={"cpu": "1"})],
        queue="small",
    ),
    Cause(
        "selector and room",
        [node("n1"), node("s1", {"disk": "ssd"}, cpu=2)],
        [job("old", 1, {"cpu": "1"}, pod=SSD)],
        pod=SSD,
    ),
    Cause("no node", []),
    Cause("claim in use", TWO, requests={"cpu": "9"}, pod=CLAIM),
    Cause(
        "parent queue",
        [*TWO, queue("dept", capability={"cpu": "4"}), queue("team", parent="dept")],
        [job("old", 1, {"cpu": "3"}, "team")],
        queue="team",
    ),
    Cause(
        "nested queues",
        [
            *TWO,
            queue("dept", capability={"cpu": "8"}),
            queue("team", parent="dept", capability={"cpu": "6"}),
            queue("one", parent="team", capability={"cpu": "4"}),
        ],
        [job("old", 1, {"cpu": "3"}, "one")],
        queue="one",
        requests={"cpu": "4"},
    ),
    Cause("gate and taint", [node("n1", taints=[TAINT])], pod={"schedulingGates": [{"name": "example.com/quota"}]}, forms="jgp"),
    Cause("selector and taint", [node("n1"), node("s1", {"disk": "ssd"}, [TAINT])], pod=SSD),
    Cause("unhealthy", [node("n1", cpu=1), failed("n2")]),
    Cause(
        "no such tier",
        RACKS,
        requests={"cpu": "3"},
        least=2,
        most=2,
        spec={"networkTopology": {"mode": "hard", "highestTierAllowed": 0}},
        forms="jg",
    ),
    Cause("topology and capability", [*RACKS, queue("small", capability={"cpu": "4"})], least=3, queue="small", spec=HARD, forms="jg"),
    Cause("other zone", [node("n1", {ZONE: "a"}, cpu=2), node("n2", {ZONE: "b"}), *claim_in_zone("a")], requests={"cpu": "4"}, pod=CLAIM),
    Cause("limits unsaid", [*TWO, resource_quota(limits__cpu=20)], forms="j"),
    Cause("limits unsaid, too low", [*TWO, resource_quota(limits__cpu=1)], forms="j"),
    Cause("limits by default", [*TWO, LIMITS, resource_quota(limits__cpu=3)], forms="j"),
    Cause("requests by default", [node("n1", cpu=1), LIMITS], requests={}, forms="jgp"),
    Cause("runtime class", [*TWO, SANDBOX], pod={"runtimeClassName": "sandbox"}),
    Cause("runtime overhead", [node("n1", cpu=4), SANDBOX_OVERHEAD], pod={"runtimeClassName": "sandbox"}),
    Cause("inner queue", [*TWO, queue("dept"), queue("team", parent="dept")], queue="dept", forms="g"),
    Cause(
        "quota, closed queue",
        [*TWO, queue("shut"), resource_quota(requests__cpu=1)],
        after=[queue("shut", "Closed")],
        queue="shut",
        forms="j",
    ),
]


def situations() -> Iterator[Situation]:
    for cause in CAUSES:
        for number, (configuration, text) in enumerate(CONFIGURATIONS.items()):
            policy = policy_of(configuration, text, KUBE)
            for form in cause.forms if number == 0 else cause.forms.rstrip("pb"):  # the others would be placed alike in each
                for count in sorted({cause.least, 3 if cause.most >= 3 >= cause.least else cause.most}):
                    yield _situation(cause, configuration, policy, form, count)


# Crowds: clusters made at random, in which several jobs wait for different reasons and are in each other's way.


def crowds(count: int, first: int = 0) -> Iterator[Situation]:
    """One job that waits in each of so many clusters. The same number makes the same cluster."""
    for seed in range(first, first + count):
        chance = Random(seed)
        configuration, text = chance.choice(list(CONFIGURATIONS.items()))
        cause = Cause(f"crowd {seed}", _surroundings(chance), [_some_job(chance, f"old-{n}") for n in range(chance.randint(0, 3))])
        waits = [_some_job(chance, f"waits-{n}") for n in range(chance.randint(2, 5))]
        whose = chance.choice(waits)["metadata"]["name"]
        about = f"{cause.name}, {configuration}, job/{whose}"
        yield Situation(about, policy_of(configuration, text, KUBE), cause, waits, f"job/{whose}", f"job/default/{whose}")


def _surroundings(chance: Random) -> list[Object]:
    nodes = [
        node(
            f"n{n}",
            {"disk": "ssd"} if chance.random() < 0.3 else None,
            [TAINT] if chance.random() < 0.2 else None,
            cpu=chance.choice([4, 8, 16]),
        )
        for n in range(chance.randint(1, 4))
    ]
    capability = {"capability": {"cpu": str(chance.choice([2, 4, 8]))}} if chance.random() < 0.6 else {}
    quota = [resource_quota(requests__cpu=chance.choice([8, 12, 16]))] if chance.random() < 0.25 else []
    return [*nodes, queue("team", **capability), priority_class("high", 10), *quota]


def _some_job(chance: Random, name: str) -> Object:
    pod = chance.choice([{}, {}, {}, SSD, {"tolerations": [{"operator": "Exists"}]}])
    spec = {"priorityClassName": "high"} if chance.random() < 0.2 else {}
    return job(name, chance.randint(1, 4), {"cpu": str(chance.choice([1, 2, 3, 4, 6]))}, chance.choice(["default", "team"]), pod, **spec)


def policy_of(where: str, *texts: str) -> Policy:
    return read_configurations([config_text(text, where) for text in texts if text], PLUGINS)[0]


def _situation(cause: Cause, configuration: str, policy: Policy, form: str, count: int) -> Situation:
    about = f"{cause.name}, {configuration}, {form}{count}"
    if form == "j":
        made = [job("waits", count, cause.requests, cause.queue, cause.pod, **cause.spec)]
        return Situation(about, policy, cause, made, "job/waits", "job/default/waits")
    if form == "g":
        made = group("waits", count, cause.requests, cause.queue, cause.pod, cause.missing, **cause.spec)
        return Situation(about, policy, cause, made, "podgroup/waits", "podgroup/default/waits")
    pod = cause.pod | {name: value for name, value in cause.spec.items() if name == "priorityClassName"}
    if form == "b":
        made = [batch_job("waits", count, cause.requests, cause.queue, pod)]
        return Situation(about, policy, cause, made, "job/waits", "job/default/waits")
    made = [_pod(f"waits-{n}", cause.requests, pod, "default-scheduler", {"app": "waits"}) for n in range(count)]
    return Situation(about, policy, cause, made, f"pod/waits-{count - 1}", f"pod/default/waits-{count - 1}")


# The recorded cases of tests/cases: each with the configuration that it was recorded with, and whatever waits in it.

CASES = Path(__file__).parents[1] / "tests/cases"
SETTINGS = ("ConfigMap", "KubeSchedulerConfiguration", "Policy")
MOST_SUBJECTS = 2  #: of one case


def recorded(folder: str, step: int = 1) -> Iterator[Situation]:
    """What waits in each `step`-th case of a folder, as far as a server would take the case's objects."""
    for path in sorted(each for each in (CASES / folder).glob("*.yaml") if not each.stem.endswith(".expect"))[::step]:
        found = [each for each in yaml.safe_load_all(path.read_text()) if each and "kind" in each]
        conf = next((each["data"][CONF] for each in found if CONF in (each.get("data") or {})), "")
        kube = next((yaml.safe_dump(each) for each in found if each["kind"] == "KubeSchedulerConfiguration"), "")
        given = [_as_submitted(each) for each in found if each["kind"] not in SETTINGS]
        if "extender.test" in kube or not found:
            continue
        try:
            policy = policy_of(path.stem, kube, conf or (DEFAULT if folder == "volcano" else "" if kube else KUBE))
        except InputError:
            continue
        yield from _waiting_in(path.stem, policy, given)


def _as_submitted(obj: Object) -> Object:
    """The object as admission takes it: extended resources have limits, and priorities come from classes."""
    spec = obj.get("spec") or {}
    if obj["kind"] == "Pod":
        spec.pop("priority", None)
        for each in spec.get("containers") or ():
            resources = each.get("resources") or {}
            extended = {name: amount for name, amount in (resources.get("requests") or {}).items() if "/" in name}
            if extended:
                resources["limits"] = extended | (resources.get("limits") or {})
    return obj


def _waiting_in(name: str, policy: Policy, given: list[Object]) -> Iterator[Situation]:
    shut = [each for each in given if each["kind"] == "Queue" and (each.get("status") or {}).get("state") not in (None, "Open")]
    opened = [{**each, "status": {"state": "Open"}} if each in shut else each for each in given]
    spaces = {each["metadata"].get("namespace", "default") for each in given} - {"default"}
    named = {each["metadata"]["name"] for each in given if each["kind"] == "Namespace"}
    made = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": each}} for each in sorted(spaces - named)]
    cause = Cause(name, [*made, *opened], after=shut)
    try:
        cluster = Situation(name, policy, cause, []).prepared()
    except StatusError:
        return
    for whose in cluster.waiting()[:MOST_SUBJECTS] if cluster is not None else ():
        yield Situation(f"{name}, {whose}", policy, cause, [], whose, whose)
