"""What a random state may have besides: each feature changes its documents in one respect, and is told by its name."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterable
from typing import Any

import yaml

Document = dict[str, Any]
GPU, DRIVER = "nvidia.com/gpu", "example.com/disks"
ACTIONS = ("enqueue", "allocate", "backfill", "preempt", "reclaim", "gangpreempt", "gangreclaim")
SWITCHES = {
    "gang": ("JobOrder", "JobReady", "JobPipelined", "Preemptable", "Reclaimable", "JobStarving"),
    "priority": ("JobOrder", "TaskOrder", "Preemptable", "JobStarving"),
    "conformance": ("Preemptable", "Reclaimable"),
    "drf": ("JobOrder", "Preemptable", "QueueOrder"),
    "nodeorder": ("NodeOrder",),
    "binpack": ("NodeOrder",),
    "overcommit": ("JobEnqueued",),
    "proportion": ("QueueOrder", "Reclaimable", "JobEnqueued", "dOverused", "dAllocatable", "Preemptive"),
    "capacity": ("QueueOrder", "Reclaimable", "JobEnqueued", "dAllocatable", "Preemptive"),
}


class Draft:
    """The documents of a state while features change them."""

    def __init__(self, documents: list[Document], draw: random.Random) -> None:
        self.draw = draw
        self.often = lambda share: draw.random() < share
        self._documents = documents
        self.conf = yaml.safe_load(self.of("ConfigMap")[0]["data"]["volcano-scheduler.conf"])
        self.nodes, self.pods, self.groups = self.of("Node"), self.of("Pod"), self.of("PodGroup")
        self.queues = [item for item in self.of("Queue") if item["metadata"]["name"] != "root"]

    def of(self, kind: str) -> list[Document]:
        return [item for item in self._documents if item["kind"] == kind]

    def one_of(self, *options: Any) -> Any:
        return self.draw.choice(options)

    def some(self, items: list[Document], share: float = 0.4) -> Iterable[Document]:
        return [item for item in items if self.often(share)]

    @property
    def waiting(self) -> list[Document]:
        return [pod for pod in self.pods if "nodeName" not in pod["spec"]]

    @property
    def placed(self) -> list[Document]:
        return [pod for pod in self.pods if "nodeName" in pod["spec"]]

    def add(self, *documents: Document) -> None:
        self._documents.extend(documents)

    def plugin(self, name: str) -> Document | None:
        return next((each for tier in self.conf["tiers"] for each in tier["plugins"] if each["name"] == name), None)

    def with_plugin(self, name: str, tier: int = -1, **more: Any) -> Document:
        """The plugin, added if it is not there."""
        if (found := self.plugin(name)) is None:
            self.conf["tiers"][tier]["plugins"].append(found := {"name": name})
        found.update(more)
        return found

    def documents(self) -> list[Document]:
        self._name_no_role_of_unlike_pods()
        self.of("ConfigMap")[0]["data"]["volcano-scheduler.conf"] = yaml.safe_dump(self.conf, sort_keys=False)
        return self._documents

    def _name_no_role_of_unlike_pods(self) -> None:
        """Pods of a role must be alike: if one finds no node, the others are not tried."""
        like: dict[tuple[str, str], set[str]] = {}
        for pod in self.pods:
            spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
            said = [notes(pod), pod["metadata"].get("labels"), pod["status"].get("nominatedNodeName")]
            like.setdefault(_role(pod), set()).add(json.dumps([spec, said], sort_keys=True))
        for pod in [pod for pod in self.pods if len(like[_role(pod)]) > 1]:
            notes(pod).pop("volcano.sh/task-spec", None)
            pod["metadata"].get("labels", {}).pop("volcano.sh/task-spec", None)


Feature = Callable[[Draft], None]
FEATURES: dict[str, Feature] = {}


def feature(make: Feature) -> Feature:
    FEATURES[make.__name__] = make
    return make


def notes(item: Document) -> Document:
    found: Document = item["metadata"].setdefault("annotations", {})
    return found


def _role(pod: Document) -> tuple[str, str]:
    named = [place["volcano.sh/task-spec"] for place in (notes(pod), pod["metadata"].get("labels", {})) if "volcano.sh/task-spec" in place]
    return notes(pod)["scheduling.k8s.io/group-name"], named[0] if named else ""


def labels(item: Document) -> Document:
    found: Document = item["metadata"].setdefault("labels", {})
    return found


def made(kind: str, version: str, name: str, namespace: str = "", **parts: Any) -> Document:
    metadata = {"name": name, "creationTimestamp": "2026-01-01T09:00:00Z"} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata} | parts


def requests(pod: Document) -> Document:
    found: Document = pod["spec"]["containers"][0].setdefault("resources", {}).setdefault("requests", {})
    return found


# nodes


@feature
def cordoned_and_tainted(draft: Draft) -> None:
    for node in draft.some(draft.nodes, 0.3):
        node["spec"]["unschedulable"] = True
    for node in draft.some(draft.nodes):
        effect = draft.one_of("NoSchedule", "NoExecute", "PreferNoSchedule")
        node["spec"].setdefault("taints", []).append({"key": "t", "value": draft.one_of("a", "b"), "effect": effect})
    for pod in draft.some(draft.pods):
        rules = [{"key": "t", "operator": "Exists"}, {"key": "t", "operator": "Equal", "value": "a"}, {"operator": "Exists"}]
        pod["spec"]["tolerations"] = [draft.one_of(*rules)]


@feature
def not_ready(draft: Draft) -> None:
    for node in draft.some(draft.nodes, 0.3):
        node["status"]["conditions"] = [{"type": "Ready", "status": draft.one_of("False", "Unknown")}]


@feature
def shrunk_nodes(draft: Draft) -> None:
    """More is used than there is."""
    for node in draft.some(draft.nodes):
        node["status"]["allocatable"] |= draft.one_of({"cpu": "1"}, {"memory": "1Gi"}, {"pods": "1"}, {"cpu": "0"})


@feature
def more_resources(draft: Draft) -> None:
    amounts = {"ephemeral-storage": ["1Gi", "2Gi", "10Gi"], "hugepages-2Mi": ["64Mi", "128Mi"], "example.com/foo": ["1", "2", "3"]}
    for node in draft.some(draft.nodes, 0.7):
        for name, choice in amounts.items():
            node["status"]["allocatable"][name] = node["status"]["capacity"][name] = draft.one_of(*choice)
    for pod in draft.some(draft.pods):
        name = draft.one_of(*sorted(amounts))
        requests(pod)[name] = amounts[name][0]


@feature
def oversubscription(draft: Draft) -> None:
    for node in draft.some(draft.nodes):
        labels(node)["volcano.sh/oversubscription"] = draft.one_of("true", "false")
        notes(node)["volcano.sh/oversubscription-cpu"] = draft.one_of("1000", "500")
        notes(node)["volcano.sh/oversubscription-memory"] = "1073741824"


# queues


@feature
def queue_states(draft: Draft) -> None:
    for queue in draft.some(draft.queues):
        queue["status"] = {"state": draft.one_of("Closed", "Unknown", "Open")}


@feature
def queue_priorities(draft: Draft) -> None:
    for queue in draft.queues:
        queue["spec"]["priority"] = draft.one_of(0, 0, 1, 5)


@feature
def queues_missing(draft: Draft) -> None:
    for group in draft.some(draft.groups, 0.3):
        group["spec"]["queue"] = draft.one_of("gone", "default")


@feature
def guarantees(draft: Draft) -> None:
    for queue in draft.some(draft.queues, 0.7):
        amount = draft.one_of({"cpu": "2"}, {"cpu": "3", "memory": "4Gi"}, {"memory": "2Gi"}, {GPU: "1"})
        queue["spec"]["guarantee"] = {"resource": amount}


@feature
def capabilities(draft: Draft) -> None:
    for queue in draft.some(draft.queues, 0.7):
        one, two = {"cpu": "2", "pods": "3"}, {"cpu": "4", "memory": "8Gi"}
        queue["spec"]["capability"] = draft.one_of({"cpu": "0"}, {"memory": "3Gi"}, {GPU: "1"}, {GPU: "0"}, one, two)


@feature
def deserved_mixes(draft: Draft) -> None:
    for queue in draft.some(draft.queues, 0.8):
        one, two = {"cpu": "1", GPU: "1"}, {"cpu": "0", "memory": "4Gi"}
        queue["spec"]["deserved"] = draft.one_of({"memory": "2Gi"}, {GPU: "2"}, {"cpu": "3"}, {"cpu": "2", "pods": "2"}, one, two)


@feature
def deep_tree(draft: Draft) -> None:
    """Capacity with queues below queues."""
    level = {"arguments": {"ancestorReclaimLevel": draft.one_of(1, 2, 3)}} if draft.often(0.6) else {}
    _replace_shares(draft, "capacity", enableHierarchy=True, **level)
    parents = ["root"]
    for name in draft.one_of("a", "ab", "abc"):
        spec: Document = {"weight": 1, "parent": draft.one_of(*parents)}
        for kind in ("capability", "deserved"):
            if draft.often(0.5):
                spec[kind] = draft.one_of({"cpu": "4"}, {"cpu": "6", "memory": "8Gi"}, {"memory": "6Gi"}, {GPU: "2"})
        if draft.often(0.3):
            spec["priority"] = draft.one_of(1, 5)
        parents.append(name)
        draft.add(_queue(name, spec))
    for queue in draft.queues:
        queue["spec"]["parent"] = draft.one_of(*parents)
    if not any(item["metadata"]["name"] == "root" for item in draft.of("Queue")):
        draft.add(_queue("root", {"weight": 1}))


@feature
def drf_tree(draft: Draft) -> None:
    _replace_shares(draft, "drf", enableHierarchy=True, enableReclaimable=draft.often(0.7))
    for queue in draft.some(draft.queues, 0.9):
        path = draft.one_of("root/a", "root/b", "root/a/x", "root/a/y", "root/b/z")
        notes(queue)["volcano.sh/hierarchy"] = path
        notes(queue)["volcano.sh/hierarchy-weights"] = "/".join(draft.one_of("1", "2", "4", "8") for _ in path.split("/"))


def _replace_shares(draft: Draft, name: str, **more: Any) -> None:
    """One plugin that divides the cluster among queues, and no other."""
    for tier in draft.conf["tiers"]:
        tier["plugins"] = [each for each in tier["plugins"] if each["name"] not in ("proportion", "capacity", "drf")]
    draft.with_plugin(name, **more)


def _queue(name: str, spec: Document) -> Document:
    return made("Queue", "scheduling.volcano.sh/v1beta1", name, spec=spec, status={"state": "Open"})


# jobs


@feature
def phases(draft: Draft) -> None:
    for group in draft.some(draft.groups):
        group["status"]["phase"] = draft.one_of("Pending", "Inqueue", "Running", "Unknown", "Completed")


@feature
def minima(draft: Draft) -> None:
    for group in draft.some(draft.groups):
        group["spec"]["minMember"] = draft.one_of(1, 2, 5)


@feature
def minimum_resources(draft: Draft) -> None:
    for group in draft.some(draft.groups, 0.7):
        one, two = {"cpu": "2", GPU: "1"}, {"cpu": "1", "pods": "2", "count/pods": "2"}
        group["spec"]["minResources"] = draft.one_of({}, {"cpu": "1"}, {"memory": "6Gi"}, {"cpu": "8"}, one, two)


@feature
def role_minima(draft: Draft) -> None:
    _two_roles(draft)
    for group in draft.some(draft.groups, 0.6):
        group["spec"]["minTaskMember"] = {role: draft.draw.randint(0, 2) for role in draft.one_of(("m",), ("m", "w"), ("w", "x"))}


def _two_roles(draft: Draft) -> None:
    first: dict[tuple[str, str], Document] = {}
    for pod in draft.pods:
        notes(pod)["volcano.sh/task-spec"] = draft.one_of("m", "w", "w")
        pod["spec"]["containers"] = copy.deepcopy(first.setdefault(_role(pod), pod)["spec"]["containers"])


@feature
def roles_by_label(draft: Draft) -> None:
    for pod in draft.some(draft.pods, 0.7):
        role = notes(pod).pop("volcano.sh/task-spec", "w")
        if draft.often(0.5):
            labels(pod)["volcano.sh/task-spec"] = role


@feature
def preemptable_groups(draft: Draft) -> None:
    for group in draft.some(draft.groups, 0.5):
        where = draft.one_of(notes(group), labels(group))
        where["volcano.sh/preemptable"] = draft.one_of("true", "false")


@feature
def preemptable_pods(draft: Draft) -> None:
    for pod in draft.some(draft.pods, 0.5):
        where = draft.one_of(notes(pod), labels(pod))
        where["volcano.sh/preemptable"] = draft.one_of("true", "false", "maybe")


@feature
def priorities_of_pods(draft: Draft) -> None:
    values = {"low": 10, "mid": 100, "high": 1000}
    for pod in draft.some(draft.pods):
        name = draft.one_of(*sorted(values))
        pod["spec"] |= {"priorityClassName": name, "priority": values[name]}
    for pod in draft.some(draft.pods, 0.2):
        notes(pod)["volcano.sh/task-priority"] = draft.one_of("5", "5000", "x")


@feature
def default_priority_class(draft: Draft) -> None:
    draft.of("PriorityClass")[0]["globalDefault"] = True
    for group in draft.some(draft.groups, 0.2):
        group["spec"]["priorityClassName"] = "gone"


@feature
def never_preempting(draft: Draft) -> None:
    for pod in draft.some(draft.pods):
        pod["spec"]["preemptionPolicy"] = draft.one_of("Never", "PreemptLowerPriority")


@feature
def system_pods(draft: Draft) -> None:
    for pod in draft.some(draft.placed):
        name = draft.one_of("system-cluster-critical", "system-node-critical")
        pod["spec"] |= {"priorityClassName": name, "priority": 2000000000}
    draft.with_plugin("conformance", 0)


@feature
def foreign_pods(draft: Draft) -> None:
    """Pods that are nobody's or another scheduler's take room."""
    for number, node in enumerate(draft.some(draft.nodes, 0.7)):
        amounts = {"cpu": draft.one_of("500m", "1"), "memory": "1Gi"}
        container = {"name": "main", "image": "busybox", "resources": {"requests": amounts}}
        whose = draft.one_of("volcano", "default-scheduler")
        spec = {"nodeName": node["metadata"]["name"], "containers": [container], "schedulerName": whose}
        status = {"phase": draft.one_of("Running", "Running", "Succeeded", "Pending")}
        draft.add(made("Pod", "v1", f"foreign-{number}", draft.one_of("default", "kube-system"), spec=spec, status=status))


# pods


@feature
def pod_phases(draft: Draft) -> None:
    for pod in draft.some(draft.placed, 0.5):
        pod["status"]["phase"] = draft.one_of("Pending", "Succeeded", "Failed", "Unknown", "Running")


@feature
def leaving_pods(draft: Draft) -> None:
    for pod in (*draft.some(draft.placed), *draft.some(draft.waiting, 0.15)):
        times = {"deletionTimestamp": "2026-01-01T11:59:00Z", "deletionGracePeriodSeconds": 30}
        pod["metadata"] |= times | {"finalizers": ["example.com/wait"]}


@feature
def gated_pods(draft: Draft) -> None:
    for pod in draft.some(draft.waiting):
        pod["spec"]["schedulingGates"] = [{"name": draft.one_of("example.com/gate", "scheduling.volcano.sh/queue-allocation-gate")}]


@feature
def nominated_pods(draft: Draft) -> None:
    for pod in draft.some(draft.waiting):
        pod["status"]["nominatedNodeName"] = draft.one_of(*(node["metadata"]["name"] for node in draft.nodes), "gone")


@feature
def empty_pods(draft: Draft) -> None:
    for pod in draft.some(draft.pods):
        pod["spec"]["containers"][0]["resources"] = {}


@feature
def init_containers(draft: Draft) -> None:
    for pod in draft.some(draft.pods):
        amounts = {"requests": {"cpu": draft.one_of("500m", "2", "3"), "memory": draft.one_of("1Gi", "4Gi")}}
        always = {"restartPolicy": "Always"} if draft.often(0.5) else {}
        pod["spec"]["initContainers"] = [{"name": "first", "image": "busybox", "resources": amounts} | always]
    for pod in draft.some(draft.pods, 0.2):
        pod["spec"]["overhead"] = {"cpu": "250m", "memory": "64Mi"}


@feature
def pod_level_resources(draft: Draft) -> None:
    for pod in draft.some(draft.pods, 0.3):
        pod["spec"]["resources"] = {"requests": {"cpu": draft.one_of("2", "3500m"), "memory": draft.one_of("4Gi", "5Gi")}}


@feature
def cooling_pods(draft: Draft) -> None:
    draft.with_plugin("cdp", 0)
    for pod in draft.some(draft.placed, 0.6):
        where = draft.one_of(notes(pod), labels(pod))
        where["volcano.sh/cooldown-time"] = draft.one_of("1s", "1000000h", "soon")
        if draft.often(0.8):
            moment = {"lastTransitionTime": "2026-01-01T11:50:00Z", "type": "PodScheduled", "status": "True"}
            pod["status"]["conditions"] = [moment]


@feature
def disruption_budgets(draft: Draft) -> None:
    draft.with_plugin("pdb", draft.one_of(0, -1))
    for pod in draft.pods:
        labels(pod)["kept"] = draft.one_of("a", "b")
    for name in draft.one_of("a", "ab"):
        status = {"disruptionsAllowed": draft.one_of(0, 1, 2), "expectedPods": 1, "currentHealthy": 1, "desiredHealthy": 1}
        spec = {"selector": {"matchLabels": {"kept": name}}}
        draft.add(made("PodDisruptionBudget", "policy/v1", name, "default", spec=spec, status=status))


@feature
def waiting_times(draft: Draft) -> None:
    """Deadlines of long ago and far away, whatever the time of day."""
    arguments = {"sla-waiting-time": draft.one_of("1s", "1000000h")} if draft.often(0.4) else {}
    draft.with_plugin("sla", draft.one_of(0, -1), arguments=arguments)
    for group in draft.some(draft.groups):
        notes(group)[draft.one_of("sla-waiting-time", "volcano.sh/sla-waiting-time")] = draft.one_of("1s", "2s", "1000000h", "x")


@feature
def quotas(draft: Draft) -> None:
    draft.with_plugin("resourcequota")
    hard = draft.one_of({"cpu": "4"}, {"cpu": "6", "memory": "8Gi"}, {"requests.cpu": "2"}, {"pods": "3", "cpu": "9"})
    status = {"hard": hard, "used": dict.fromkeys(hard, "1")}
    draft.add(made("ResourceQuota", "v1", "quota", "default", spec={"hard": hard}, status=status))


@feature
def revocable_zones(draft: Draft) -> None:
    """Zones that are open all day, and zones that no one configured."""
    draft.with_plugin("tdm", draft.one_of(0, -1), arguments={"tdm.revocable-zone.rz1": "00:00-00:00"})
    for node in draft.some(draft.nodes, 0.5):
        labels(node)["volcano.sh/revocable-zone"] = draft.one_of("rz1", "rz1", "rz2")
    for item in draft.some([*draft.groups, *draft.pods], 0.5):
        notes(item)["volcano.sh/revocable-zone"] = draft.one_of("*", "*", "rz1")
    for item in draft.some([*draft.groups, *draft.pods], 0.3):
        notes(item)["volcano.sh/preemptable"] = draft.one_of("true", "false")
    for group in draft.some(draft.groups):
        notes(group)[draft.one_of("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable")] = draft.one_of("1", "50%", "2")


@feature
def load(draft: Draft) -> None:
    """Plugins that have nothing to go by: no load of nodes is known."""
    draft.with_plugin("usage", arguments={"usage.weight": draft.one_of(1, 5), "thresholds": {"cpu": draft.one_of(0, 80), "mem": 80}})
    draft.with_plugin("rescheduling", arguments={"interval": "1s"})
    if draft.often(0.5):
        draft.conf["actions"] += ", shuffle"


@feature
def shared_cards(draft: Draft) -> None:
    draft.with_plugin("deviceshare", arguments={"deviceshare.GPUSharingEnable": True, "deviceshare.ScheduleWeight": draft.one_of(0, 10)})
    for node in draft.some(draft.nodes, 0.7):
        cards = {"volcano.sh/gpu-memory": draft.one_of("8", "16"), "volcano.sh/gpu-number": draft.one_of("1", "2")}
        node["status"]["allocatable"] |= cards
        node["status"]["capacity"] |= cards
    for pod in draft.some(draft.waiting):
        amount = {"volcano.sh/gpu-memory": draft.one_of("2", "4", "8", "12")}
        requests(pod).update(amount)
        pod["spec"]["containers"][0]["resources"]["limits"] = amount


@feature
def machines(draft: Draft) -> None:
    """NUMA nodes of machines, and pods that ask for a policy."""
    draft.with_plugin("numa-aware", arguments={"weight": draft.one_of(1, 10)})
    for node in draft.some(draft.nodes, 0.7):
        count = int(node["status"]["allocatable"]["cpu"])
        places = {str(cpu): {"numa": cpu % 2, "socket": cpu % 2, "core": cpu} for cpu in range(count)}
        free = {"cpu": {"allocatable": f"0-{count - 1}" if count > 1 else "0", "capacity": count}} if count else {}
        policies = {"CPUManagerPolicy": "static", "TopologyManagerPolicy": draft.one_of("single-numa-node", "best-effort", "none")}
        spec = {"policies": policies, "numares": free, "cpuDetail": places, "resReserved": {}}
        draft.add(made("Numatopology", "nodeinfo.volcano.sh/v1alpha1", node["metadata"]["name"], spec=spec))
    for pod in draft.some(draft.pods, 0.6):
        notes(pod)["volcano.sh/numa-topology-policy"] = draft.one_of("single-numa-node", "best-effort", "restricted", "none")
        if amounts := requests(pod):
            pod["spec"]["containers"][0]["resources"]["limits"] = dict(amounts)


# where pods may go


@feature
def node_affinities(draft: Draft) -> None:
    for node in draft.nodes:
        labels(node).update({"disk": draft.one_of("ssd", "hdd"), "size": draft.one_of("1", "2", "3")})
    for pod in draft.some(draft.waiting, 0.5):
        operator = draft.one_of("In", "NotIn", "Exists", "Gt")
        term: Document = {"key": "size", "operator": "Gt", "values": ["1"]} if operator == "Gt" else {"key": "disk", "operator": operator}
        if operator in ("In", "NotIn"):
            term["values"] = ["ssd"]
        expression = {"matchExpressions": [term]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [expression]}}
        preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": draft.one_of(1, 50), "preference": expression}]}
        pod["spec"].setdefault("affinity", {})["nodeAffinity"] = draft.one_of(required, preferred, required | preferred)


@feature
def pod_affinities_among_jobs(draft: Draft) -> None:
    """No waiting pod has a required anti-affinity: docs/differences.md, "Anti-affinity of pods placed just now"."""
    _zones(draft)
    for pod in draft.pods:
        labels(pod)["team"] = draft.one_of("a", "b")
    for pod in draft.some(draft.pods, 0.35):
        selector = {"labelSelector": {"matchLabels": {"team": draft.one_of("a", "b")}}}
        term = selector | {"topologyKey": draft.one_of("kubernetes.io/hostname", "zone")}
        weighted = {"weight": draft.one_of(1, 20, 100), "podAffinityTerm": term}
        kind, terms = draft.one_of(("required", term), ("preferred", weighted))
        sides = ["podAffinity", "podAntiAffinity"] if kind == "preferred" or pod in draft.placed else ["podAffinity"]
        pod["spec"].setdefault("affinity", {})[draft.one_of(*sides)] = {f"{kind}DuringSchedulingIgnoredDuringExecution": [terms]}


@feature
def spreading(draft: Draft) -> None:
    _zones(draft)
    for pod in draft.pods:
        labels(pod)["team"] = draft.one_of("a", "b")
    for pod in draft.some(draft.waiting, 0.6):
        rule: Document = {"maxSkew": draft.one_of(1, 2), "topologyKey": draft.one_of("kubernetes.io/hostname", "zone")}
        rule["whenUnsatisfiable"] = draft.one_of("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")
        rule["labelSelector"] = {"matchLabels": {"team": draft.one_of("a", "b")}}
        if rule["whenUnsatisfiable"] == "DoNotSchedule" and draft.often(0.3):
            rule["minDomains"] = draft.one_of(1, 3)
        if draft.often(0.3):
            rule["nodeTaintsPolicy"] = draft.one_of("Honor", "Ignore")
        pod["spec"]["topologySpreadConstraints"] = [rule]


def _zones(draft: Draft) -> None:
    for node in draft.nodes:
        labels(node).setdefault("kubernetes.io/hostname", node["metadata"]["name"])
        if draft.often(0.9):
            labels(node).setdefault("zone", draft.one_of("a", "b"))


@feature
def host_ports(draft: Draft) -> None:
    for pod in draft.some(draft.pods, 0.5):
        port = {"containerPort": 80, "hostPort": draft.one_of(80, 81), "protocol": draft.one_of("TCP", "TCP", "UDP")}
        where = {"hostIP": draft.one_of("127.0.0.1", "10.0.0.1")} if draft.often(0.3) else {}
        pod["spec"]["containers"][0]["ports"] = [port | where]


@feature
def volumes(draft: Draft) -> None:
    """Claims that are bound to volumes of one node, wait for their first consumer, or are missing; every node has the driver."""
    more = {"provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer"}
    draft.add(made("StorageClass", "storage.k8s.io/v1", "late", **more))
    for node in draft.nodes:
        name = node["metadata"]["name"]
        labels(node)["kubernetes.io/hostname"] = name
        driver: Document = {"name": DRIVER, "nodeID": name, "topologyKeys": []}
        limit = {"allocatable": {"count": draft.one_of(1, 2, 5)}} if draft.often(0.5) else {}
        draft.add(made("CSINode", "storage.k8s.io/v1", name, spec={"drivers": [driver | limit]}))
    for pod in draft.some(draft.waiting, 0.4):
        claim = f"claim-{pod['metadata']['name']}"
        pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
        if draft.often(0.85):
            draft.add(*_claim(claim, draft.one_of(*draft.nodes)["metadata"]["name"] if draft.often(0.6) else ""))


def _claim(name: str, node: str) -> list[Document]:
    """A claim, and if a node is given the claim's volume, which is on that node."""
    kept = {"accessModes": ["ReadWriteOnce"], "storageClassName": "late"}
    spec = kept | {"resources": {"requests": {"storage": "1Gi"}}}
    claim = made("PersistentVolumeClaim", "v1", name, "default", spec=spec, status={"phase": "Bound" if node else "Pending"})
    if not node:
        return [claim]
    claim["metadata"] |= {"uid": f"default-{name}", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    spec["volumeName"] = f"volume-{name}"
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    volume = kept | {"capacity": {"storage": "1Gi"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}
    volume["claimRef"] = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name, "uid": f"default-{name}"}
    volume["csi"] = {"driver": DRIVER, "volumeHandle": name}
    return [claim, made("PersistentVolume", "v1", f"volume-{name}", spec=volume, status={"phase": "Bound"})]


@feature
def images(draft: Draft) -> None:
    for node in draft.some(draft.nodes, 0.6):
        names = ["busybox", "docker.io/library/busybox:latest"]
        node["status"]["images"] = [{"names": names, "sizeBytes": draft.one_of(50, 300, 900) * 1024 * 1024}]


# plugins


@feature
def node_groups(draft: Draft) -> None:
    arguments: Document = {"strict": draft.often(0.5), "enablePreferredOrder": draft.often(0.5)}
    draft.with_plugin("nodegroup", arguments=arguments, enableHierarchy=draft.often(0.4))
    for node in draft.some(draft.nodes, 0.7):
        labels(node)["volcano.sh/nodegroup-name"] = draft.one_of("g1", "g2")
    rules = ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution")
    for queue in draft.some(draft.of("Queue"), 0.6):
        if queue["metadata"]["name"] != "root" or draft.often(0.3):
            side = draft.one_of("nodeGroupAffinity", "nodeGroupAntiAffinity")
            queue["spec"]["affinity"] = {side: {draft.one_of(*rules): draft.one_of(["g1"], ["g2"], ["g1", "g2"], ["g2", "g1"])}}
        if draft.often(0.3):
            notes(queue)["volcano.sh/nodegroup-resource-limits"] = json.dumps({"g1": draft.one_of({"cpu": "2"}, {"memory": "2Gi"})})


@feature
def strategies(draft: Draft) -> None:
    types = ("LeastAllocated", "MostAllocated")
    kinds = {name: {"type": draft.one_of(*types), "weight": draft.one_of(1, 3)} for name in ("cpu", "memory", "nvidia.com/*")}
    arguments: Document = {"resourceStrategyFitWeight": draft.one_of(1, 10), "resources": kinds}
    if draft.often(0.4):
        arguments["sra"] = {"enable": True, "resources": GPU, "weight": 10, "resourceWeight": {GPU: 2}}
    if draft.often(0.4):
        arguments["proportional"] = {"enable": True, "resources": GPU, "resourceProportion": {f"{GPU}.cpu": 1, f"{GPU}.memory": 2}}
    draft.with_plugin("resource-strategy-fit", arguments=arguments)
    for pod in draft.some(draft.waiting, 0.2):
        notes(pod)["volcano.sh/resource-strategy-scoring-type"] = draft.one_of(*types)
        notes(pod)["volcano.sh/resource-strategy-weight"] = draft.one_of('{"cpu": 1}', '{"memory": 2, "cpu": 1}', "x")


@feature
def weights(draft: Draft) -> None:
    names = "leastrequested mostrequested nodeaffinity podaffinity balancedresource tainttoleration imagelocality podtopologyspread"
    draft.with_plugin("nodeorder", arguments={f"{name}.weight": draft.one_of(0, 1, 5) for name in names.split() if draft.often(0.6)})
    if draft.often(0.6):
        own = {"weight": draft.one_of(0, 3), "cpu": draft.one_of(0, 1, 5), "memory": draft.one_of(-1, 0, 2)}
        others = {"resources": f"{GPU}, example.com/foo", f"resources.{GPU}": 4}
        draft.with_plugin("binpack", arguments={f"binpack.{key}": value for key, value in (own | others).items()})


@feature
def filters_off(draft: Draft) -> None:
    names = "NodeAffinity NodePorts TaintToleration PodAffinity PodTopologySpread VolumeZone NodeVolumeLimits VolumeBinding"
    draft.with_plugin("predicates", arguments={f"predicate.{name}Enable": False for name in names.split() if draft.often(0.4)})


@feature
def overcommitted(draft: Draft) -> None:
    draft.with_plugin("overcommit", draft.one_of(0, -1), arguments={"overcommit-factor": draft.one_of(0.5, 1, 1.0, 1.1, 3)})


@feature
def task_topologies(draft: Draft) -> None:
    draft.with_plugin("task-topology", arguments={"task-topology.weight": draft.one_of(1, 10)})
    _two_roles(draft)
    for group in draft.some(draft.groups, 0.7):
        for side in ("affinity", "anti-affinity", "task-order"):
            if draft.often(0.5):
                notes(group)[f"volcano.sh/task-topology-{side}"] = draft.one_of("m,w", "w", "m", "w;m", "w,m")


# topology


@feature
def three_tiers(draft: Draft) -> None:
    """HyperNodes of several tiers, some named by patterns, and gangs that are limited to them."""
    if draft.of("HyperNode"):
        return
    names = [node["metadata"]["name"] for node in draft.nodes]
    parts = [names[:1], names[1:2], names[2:]]
    leaves = [_hypernode(f"l{number}", 1, "Node", part) for number, part in enumerate(parts) if part]
    listed = [item["metadata"]["name"] for item in leaves]
    middle = [_hypernode("m1", 2, "HyperNode", listed[:2])]
    top = [_hypernode("t1", draft.one_of(3, 5), "HyperNode", ["m1", *listed[2:]])] if draft.often(0.7) else []
    draft.add(*leaves, *middle, *top)
    if draft.often(0.8):
        arguments: Document = {"weight": draft.one_of(1, 5), "hypernode.binpack.normal-pod.enable": draft.often(0.6)}
        draft.with_plugin("network-topology-aware", arguments=arguments | {"hypernode.binpack.cpu": draft.one_of(1, 3)})
    for group in draft.some(draft.groups, 0.6):
        tier = draft.one_of(1, 2, 3)
        rule: Document = {"mode": "hard", "highestTierAllowed": tier}
        group["spec"]["networkTopology"] = draft.one_of(rule, rule, {"mode": "soft"}, {"mode": "hard"})


@feature
def names_of_tiers(draft: Draft) -> None:
    names = {1: "rack", 2: "spine"}
    for item in draft.of("HyperNode"):
        if item["spec"]["tier"] in names and draft.often(0.9):
            item["spec"]["tierName"] = names[item["spec"]["tier"]]
    for group in draft.some(draft.groups) if draft.of("HyperNode") else ():
        group["spec"]["networkTopology"] = {"mode": "hard", "highestTierName": draft.one_of("rack", "rack", "spine", "none")}


@feature
def recorded_places(draft: Draft) -> None:
    """Jobs of which it is recorded where they stand, right or wrong."""
    names = [item["metadata"]["name"] for item in draft.of("HyperNode")]
    for group in draft.some(draft.groups):
        notes(group)["volcano.sh/job-allocated-hypernode"] = draft.one_of("gone", *names)


@feature
def parts_of_jobs(draft: Draft) -> None:
    for group in draft.some(draft.groups, 0.6):
        size = draft.one_of(1, 2)
        policy: Document = {"name": "part", "labelSelector": {"matchLabels": {"app": "part"}}, "matchLabelKeys": ["part"]}
        policy |= {"subGroupSize": size, "minSubGroups": draft.one_of(0, 1, 2)}
        if draft.of("HyperNode") and draft.often(0.5):
            policy["networkTopology"] = {"mode": draft.one_of("hard", "soft"), "highestTierAllowed": draft.one_of(1, 2)}
        group["spec"]["subGroupPolicy"] = [policy]
        its = [pod for pod in draft.pods if notes(pod)["scheduling.k8s.io/group-name"] == group["metadata"]["name"]]
        for number, pod in enumerate(its):
            if draft.often(0.9):
                labels(pod).update({"app": "part", "part": str(number // size)})


def _hypernode(name: str, tier: int, kind: str, members: list[str]) -> Document:
    listed: list[Document] = [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members]
    if kind == "Node" and len(members) > 1:
        listed = [{"type": kind, "selector": {"regexMatch": {"pattern": f"^({'|'.join(members)})$"}}}]
    return made("HyperNode", "topology.volcano.sh/v1alpha1", name, spec={"tier": tier, "members": listed})


# configurations


@feature
def action_arguments(draft: Draft) -> None:
    given: Document = {"enableTopologyAwarePreemption": True, "minCandidateNodesAbsolute": draft.one_of(1, 100)}
    gang: Document = {"maxDomains": draft.one_of(1, 2, 8), "allowWholeBundle": draft.often(0.5)}
    for each in draft.conf["configurations"]:
        each["arguments"] |= given if each["name"] == "preempt" else gang if each["name"].startswith("gang") else {}


@feature
def orders_of_actions(draft: Draft) -> None:
    """Any order of any actions, but allocate comes before those that evict: docs/differences.md, "Evicting before allocate"."""
    chosen = draft.draw.sample(ACTIONS, draft.draw.randint(1, len(ACTIONS)))
    evicting = [name for name in chosen if name.endswith(("preempt", "reclaim"))]
    if "allocate" in chosen:
        chosen.sort(key=evicting.__contains__)
    draft.conf["actions"] = ", ".join(chosen)


@feature
def no_such_plugin(draft: Draft) -> None:
    """One of the plugins is left out, but not predicates: docs/differences.md, "Scores without predicates"."""
    gone = draft.one_of(*(name for name in SWITCHES if draft.plugin(name)))
    for tier in draft.conf["tiers"]:
        tier["plugins"] = [plugin for plugin in tier["plugins"] if plugin["name"] != gone]


@feature
def tiers(draft: Draft) -> None:
    plugins = [plugin for tier in draft.conf["tiers"] for plugin in tier["plugins"]]
    draft.draw.shuffle(plugins)
    cuts = sorted(draft.draw.sample(range(len(plugins) + 1), draft.one_of(0, 1, 2)))
    parts = [plugins[first:last] for first, last in zip([0, *cuts], [*cuts, len(plugins)], strict=True)]
    draft.conf["tiers"] = [{"plugins": part} for part in parts if part]


@feature
def switches(draft: Draft) -> None:
    for tier in draft.conf["tiers"]:
        for plugin in draft.some(tier["plugins"]):
            if plugin["name"] in SWITCHES:
                plugin[f"enable{draft.one_of(*SWITCHES[plugin['name']])}"] = False
