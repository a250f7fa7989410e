"""A small cluster in which advice is followed: control plane and controllers are the embedded ones, the clock is moved by hand.

    cluster = SmallCluster(policy)
    cluster.create(objects)
    cluster.settle()                        # cycles until nothing changes
    told = why(*cluster.state, "job/train")
    cluster.follow(change)                  # as a user would, through admission

A change is carried out as a user would with kubectl: fields that may be patched are patched, workloads with other fields are deleted and
created anew.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from functools import singledispatchmethod

from pumice.answers.changes import (
    ClusterChange,
    Gone,
    LabelNodes,
    Later,
    MakeQueue,
    MoreNodes,
    MoreQuota,
    MoreRoom,
    MovePod,
    OpenQueue,
    RaiseQuota,
    Recover,
    Uncordon,
    Untaint,
)
from pumice.answers.pod_changes import AskScheduler, Drop, MakeClaim, MakeGroup, MorePods, Tolerate, Ungate
from pumice.answers.request_changes import FewerPods, OtherPriority, OtherQueue, SmallerPods, StateAmounts, WiderTopology
from pumice.api.annotations import GROUP_NAME, TASK_SPEC
from pumice.api.json_objects import Object, controller_of
from pumice.api.quantity import format_milli, quantity
from pumice.api.structs import STRUCTS, convert
from pumice.cluster.apiserver import DeleteOptions, PatchRequest, Server, WriteOptions
from pumice.cluster.clock import VirtualClock
from pumice.cluster.control_plane import ControlPlane
from pumice.cluster.nodes.containers import SimulatedContainers
from pumice.cluster.nodes.stage import read_stages
from pumice.inputs.known_objects import know_objects
from pumice.live.scheduler.watched_resources import EVERY
from pumice.scheduler.config import schedulers_of
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster

START = 1_767_268_800.0
MOST_CYCLES = 15
PLAIN_JOBS = "jobs.batch"
JOBS, GROUPS, QUEUES = "jobs.batch.volcano.sh", "podgroups.scheduling.volcano.sh", "queues.scheduling.volcano.sh"
AT_ONCE = DeleteOptions(grace_s=0, propagation="Background")  #: as kubectl deletes
USER = WriteOptions(manager="kubectl")
Mend = Callable[[Object], None]  #: changes the spec of a pod


class SmallCluster:
    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.clock = VirtualClock(START)
        numbers = iter(range(1, 1_000_000))
        server = Server(
            clock=self.clock.now,
            new_uid=lambda: f"00000000-0000-0000-0000-{next(numbers):012d}",
            containers=SimulatedContainers(self.clock.now),
            plain=True,
        )
        self._owned: dict[tuple[str, str], str] = {}  #: the Jobs of Kubernetes by their PodGroups
        self.plane = ControlPlane(self.clock, server, read_stages())
        self.store = self.plane.store
        self.plane.quiet()

    # -- objects

    def create(self, objects: Iterable[Object]) -> None:
        """Create objects through admission. Their status is written as well. Raises StatusError."""
        for obj in objects:
            kind = self.store.kinds.of_object(obj["apiVersion"], obj["kind"])
            assert kind is not None, obj
            namespace = obj["metadata"].get("namespace", "default") if kind.namespaced else ""
            if self.store.find(kind.storage, namespace, obj["metadata"]["name"]) is None:
                self.store.create(kind, copy.deepcopy(obj), namespace, USER)
            if "status" in obj and kind.resource != "nodes":
                self.update_status(obj)
        self.plane.quiet()

    def update_status(self, obj: Object) -> None:
        kind = self.store.kinds.of_object(obj["apiVersion"], obj["kind"])
        assert kind is not None, obj
        namespace = obj["metadata"].get("namespace", "default") if kind.namespaced else ""
        self._patch(kind.resource, obj["metadata"]["name"], {"status": obj["status"]}, namespace, "status")

    def _patch(self, resource: str, name: str, patch: Object, namespace: str = "", subresource: str = "") -> None:
        self.store.patch(resource, name, PatchRequest("merge", patch), namespace, subresource, USER)

    # -- the scheduler

    @property
    def state(self) -> tuple[Cluster, Policy, float]:
        """The cluster as a scheduler would read it now, the policy and the instant."""
        cluster = Cluster(schedulers_of(self.policy))
        cluster.shadow_groups = self.policy.shadow_groups
        for kind in EVERY:
            storage = self.store.kinds.at(kind.group, kind.version, kind.plural)
            objects = self.store.all(storage.storage) if storage is not None else iter(())
            for obj in sorted(objects, key=lambda each: each["metadata"]["uid"]):  # in the order in which they came
                cluster.put(kind.kind, convert(obj, STRUCTS[kind]))
        know_objects(cluster, self.store)
        cluster.refresh_sums()
        return cluster, self.policy, self.clock.now()

    def settle(self, patience_s: float = 1.0) -> None:
        """Let cycles run until a cycle changes nothing, and nothing happens for a while after it."""
        for _ in range(MOST_CYCLES):
            before = self.store.storage.version
            cluster, policy, now = self.state
            self._carry_out(cluster, cycle(cluster, policy, now))
            self._pass()
            if self.store.storage.version == before:
                self._pass(patience_s)
                if self.store.storage.version == before:
                    return

    def _pass(self, seconds: float = 1.0) -> None:
        until = self.clock.now() + seconds
        self.plane.quiet()
        while (when := self.clock.next_time()) is not None and when <= until:
            self.clock.move_to(when)
            self.plane.quiet()
        self.clock.move_to(until)
        self.plane.quiet()

    def _carry_out(self, cluster: Cluster, decisions: Decisions) -> None:
        for bind in decisions.binds:
            self.store.bind(bind.task.namespace, bind.task.name, bind.node, annotations=bind.annotations or None)
        for eviction in decisions.evictions:
            self.store.delete("pods", eviction.task.name, eviction.task.namespace, AT_ONCE)
        for task, node in decisions.nominations.items():
            if self.store.find("pods", task.namespace, task.name) is not None:
                self._patch("pods", task.name, {"status": {"nominatedNodeName": node or None}}, task.namespace, "status")
        for group in decisions.groups:
            known = self.store.find(GROUPS, group.job.namespace, group.job.name)
            if known is not None and (known.get("status") or {}).get("phase") != group.phase:
                self._patch(GROUPS, group.job.name, {"status": {"phase": group.phase}}, group.job.namespace, "status")

    def has_started(self, whose: str) -> bool:
        """Whether a pod of this job, PodGroup or pod has a node: `job/NAMESPACE/NAME`, and so on."""
        for pod in self.store.all("pods"):
            namespace, owner = pod["metadata"]["namespace"], controller_of(pod)
            group = (pod["metadata"].get("annotations") or {}).get(GROUP_NAME)
            mine = {f"pod/{namespace}/{pod['metadata']['name']}", f"podgroup/{namespace}/{group}"}
            mine |= {f"job/{namespace}/{owner['name']}"} if owner is not None else set()
            if pod["spec"].get("nodeName") and whose in mine:
                return True
        return False

    def waiting(self) -> list[str]:
        """The PodGroups and the pods without one that wait."""
        cluster, _, _ = self.state
        jobs = ({**cluster.waiting, **cluster.not_enqueued}).values()
        names = [f"podgroup/{job.uid}" for job in jobs if job.group is not None and not job.ready_count]
        alone = (task for task in cluster.tasks.values() if task.job is None or task.job.group is None)
        return [*names, *(f"pod/{task.key}" for task in alone if task.status == status.PENDING)]

    # -- a user who follows advice

    @singledispatchmethod
    def follow(self, change: ClusterChange) -> None:
        """Carry out a change as a user would. Raises StatusError."""
        raise NotImplementedError(change)

    @follow.register
    def _(self, change: MoreRoom) -> None:
        node = self.store.get("nodes", change.node)
        amounts = node["status"]["allocatable"]
        more = {name: _sum(amounts.get(name, "0"), amount) for name, amount in change.amounts.items()}
        self._patch("nodes", change.node, {"status": {"allocatable": more, "capacity": more}}, subresource="status")

    @follow.register
    def _(self, change: MoreNodes) -> None:
        for number in range(change.count):
            node = _fresh(self.store.get("nodes", change.like))
            name = f"{change.like}-new-{number}"
            labels = {key: name if value == change.like else value for key, value in (node["metadata"].get("labels") or {}).items()}
            node["metadata"] |= {"name": name, "labels": labels}
            node["spec"] = {key: value for key, value in node["spec"].items() if key != "unschedulable"}
            self.store.create("nodes", node, "", USER)

    @follow.register
    def _(self, change: Uncordon) -> None:
        self._patch("nodes", change.node, {"spec": {"unschedulable": None}})

    @follow.register
    def _(self, change: Recover) -> None:
        ready = [{"type": "Ready", "status": "True"}]
        self._patch("nodes", change.node, {"status": {"conditions": ready}}, subresource="status")
        left = [each for each in self._taints(change.node) if not each["key"].startswith("node.kubernetes.io/")]
        self._patch("nodes", change.node, {"spec": {"taints": left or None}})

    @follow.register
    def _(self, change: Untaint) -> None:
        for name in change.nodes:
            left = [each for each in self._taints(name) if f"{each['key']}={each.get('value', '')}:{each['effect']}" not in change.taints]
            self._patch("nodes", name, {"spec": {"taints": left or None}})

    def _taints(self, node: str) -> list[Object]:
        found: list[Object] = self.store.get("nodes", node)["spec"].get("taints") or []
        return found

    @follow.register
    def _(self, change: LabelNodes) -> None:
        for name in change.nodes:
            self._patch("nodes", name, {"metadata": {"labels": change.labels}})

    @follow.register
    def _(self, change: MoreQuota) -> None:
        spec: Object = {change.field: change.amounts}
        if change.field == "guarantee":
            deserved = self.store.get(QUEUES, change.queue)["spec"].get("deserved") or {}
            lower = {n: a for n, a in change.amounts.items() if n not in deserved or quantity(deserved[n]).milli < quantity(a).milli}
            spec = {"guarantee": {"resource": change.amounts}, "deserved": lower}
        self._patch(QUEUES, change.queue, {"spec": spec})

    @follow.register
    def _(self, change: RaiseQuota) -> None:
        namespace, _, name = change.quota.partition("/")
        self._patch("resourcequotas", name, {"spec": {"hard": change.amounts}}, namespace)

    @follow.register
    def _(self, change: OpenQueue) -> None:
        self._patch(QUEUES, change.queue, {"status": {"state": "Open"}}, subresource="status")

    @follow.register
    def _(self, change: MakeQueue) -> None:
        self.create([{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": change.queue}, "spec": {}}])

    @follow.register
    def _(self, change: MakeGroup) -> None:
        kind, namespace, name = change.whose.split("/")
        group = {"metadata": {"name": name, "namespace": namespace}, "spec": {"minMember": 1}}
        self.create([{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", **group}])
        if kind == "pod":
            self._patch("pods", name, {"metadata": {"annotations": {GROUP_NAME: name}}}, namespace)

    @follow.register
    def _(self, change: AskScheduler) -> None:
        self._renew(change.whose, lambda spec: spec.update(schedulerName=change.scheduler))

    @follow.register
    def _(self, change: MorePods) -> None:
        namespace, _, name = change.like.partition("/")
        for number in range(change.count):
            pod = _fresh(self.store.get("pods", name, namespace))
            pod["metadata"]["name"] = f"{name}-more-{change.role}{number}"
            if change.role:
                pod["metadata"].setdefault("annotations", {})[TASK_SPEC] = change.role
            pod["spec"].pop("nodeName", None)
            self.store.create("pods", pod, namespace, USER)

    @follow.register
    def _(self, change: Ungate) -> None:
        if not self._pods(change.whose):
            self.settle()  # a job that was submitted anew: its pods are made when it is admitted
        for pod in self._pods(change.whose):
            left = [each for each in pod["spec"].get("schedulingGates") or () if each["name"] not in change.gates]
            self._patch("pods", pod["metadata"]["name"], {"spec": {"schedulingGates": left or None}}, pod["metadata"]["namespace"])

    @follow.register
    def _(self, change: Tolerate) -> None:
        def tolerate(spec: Object) -> None:
            for taint in change.taints:
                pair, _, effect = taint.rpartition(":")
                key, _, value = pair.partition("=")
                more = {"key": key, "operator": "Equal", "value": value, "effect": effect}
                spec["tolerations"] = [*(spec.get("tolerations") or ()), more]

        self._renew(change.whose, tolerate)

    @follow.register
    def _(self, change: StateAmounts) -> None:
        def state(spec: Object) -> None:
            for container in (*spec["containers"], *(spec.get("initContainers") or ())):
                known = container.setdefault("resources", {})
                for side, amounts in change.containers.get(container["name"], {}).items():
                    known[side] = amounts | (known.get(side) or {})

        self._renew(change.whose, state)

    @follow.register
    def _(self, change: Drop) -> None:
        self._renew(change.whose, DROPS[change.field])

    @follow.register
    def _(self, change: MakeClaim) -> None:
        namespace, _, name = change.claim.partition("/")
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": namespace}, "spec": spec}
        volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}
        volume |= {"claimRef": {"namespace": namespace, "name": name}, "storageClassName": ""}
        claim["spec"] = spec | {"storageClassName": "", "volumeName": f"volume-{name}"}
        self.create([{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"volume-{name}"}, "spec": volume}, claim])

    @follow.register
    def _(self, change: Gone) -> None:
        for whose in change.whose:
            kind, namespace, name = whose.split("/")
            owner = self._owner(whose) if kind == "podgroup" else None
            if owner is not None:
                self.store.delete(JOBS, owner, namespace, AT_ONCE)
                self.plane.quiet()  # its pods are gone before whatever is done next
                continue
            for pod in self._pods(whose, every=True):
                self.store.delete("pods", pod["metadata"]["name"], namespace, AT_ONCE)
            if kind == "podgroup" and self.store.find(GROUPS, namespace, name) is not None:
                self.store.delete(GROUPS, name, namespace)

    @follow.register
    def _(self, change: FewerPods) -> None:
        namespace, _, name = change.group.partition("/")
        owner = self._owner(f"podgroup/{change.group}")
        if owner is not None:
            spec, left = self.store.get(JOBS, owner, namespace)["spec"], change.count
            tasks = []
            for task in spec["tasks"]:
                count = min(left, task["replicas"])
                left -= count
                tasks.append(task | {"replicas": count, "minAvailable": count})
            self._patch(JOBS, owner, {"spec": {"minAvailable": change.count, "tasks": tasks}}, namespace)
            return
        group = self.store.get(GROUPS, name, namespace)
        least = {
            each: format_milli(quantity(amount).milli * change.count // group["spec"]["minMember"])
            for each, amount in (group["spec"].get("minResources") or {}).items()
        }
        spec = {"minMember": change.count, "minTaskMember": None, "minResources": least or None}
        self._patch(GROUPS, name, {"spec": spec}, namespace)
        for pod in self._pods(f"podgroup/{change.group}")[change.count :]:
            self.store.delete("pods", pod["metadata"]["name"], namespace, AT_ONCE)

    @follow.register
    def _(self, change: SmallerPods) -> None:
        def shrink(spec: Object) -> None:
            resources = spec["containers"][0].setdefault("resources", {})
            known = (resources.get("limits") or {}) | (resources.get("requests") or {})
            unsaid = {n for n in change.amounts.keys() - known.keys() if "/" not in n}  # a LimitRange may ask for it
            less = {n: a for n, a in change.amounts.items() if n in unsaid or (n in known and _is_less(a, str(known[n])))}
            limits = {name: amount for name, amount in (resources.get("limits") or {}).items() if name not in less}
            resources["requests"] = (resources.get("requests") or {}) | less
            resources["limits"] = limits | {name: amount for name, amount in less.items() if "/" in name}

        kind, namespace, name = change.whose.split("/")
        if kind == "podgroup" and self._owner(change.whose) is None:
            self._ask_for_less(namespace, name, change)
        self._renew(change.whose, shrink)

    def _ask_for_less(self, namespace: str, name: str, change: SmallerPods) -> None:
        """Lower the minResources of a PodGroup by what its first pods ask for less."""
        spec = self.store.get(GROUPS, name, namespace)["spec"]
        least = dict(spec.get("minResources") or {})
        for pod in self._pods(change.whose)[: spec.get("minMember", 0)]:
            asked = pod["spec"]["containers"][0]["resources"]["requests"]
            for resource in least.keys() & change.amounts.keys():
                less = quantity(asked[resource]).milli - quantity(change.amounts[resource]).milli
                least[resource] = format_milli(quantity(least[resource]).milli - less)
        if least:
            self._patch(GROUPS, name, {"spec": {"minResources": least}}, namespace)

    @follow.register
    def _(self, change: OtherQueue) -> None:
        namespace, _, name = change.group.partition("/")
        owner = self._owner(f"podgroup/{change.group}")
        if owner is None:
            self._patch(GROUPS, name, {"spec": {"queue": change.queue}}, namespace)
        else:
            self._submit_anew(owner, namespace, lambda job: job["spec"].update(queue=change.queue))

    @follow.register
    def _(self, change: WiderTopology) -> None:
        wider: Object = {"mode": "soft"} if change.tier is None else {"mode": "hard", "highestTierAllowed": change.tier}
        namespace, _, name = change.group.partition("/")
        owner = self._owner(f"podgroup/{change.group}")
        if owner is None:
            none = {"highestTierAllowed": None, "highestTierName": None}
            self._patch(GROUPS, name, {"spec": {"networkTopology": none | wider}}, namespace)
        else:
            self._submit_anew(owner, namespace, lambda job: job["spec"].update(networkTopology=wider))

    @follow.register
    def _(self, change: OtherPriority) -> None:
        def rank(spec: Object) -> None:
            for field in ("priority", "preemptionPolicy"):
                spec.pop(field, None)
            spec["priorityClassName"] = change.priority_class

        kind, namespace, name = change.whose.split("/")
        if kind == "podgroup" and self._owner(change.whose) is None:
            self._patch(GROUPS, name, {"spec": {"priorityClassName": change.priority_class}}, namespace)
        self._renew(change.whose, rank, lambda job: job["spec"].update(priorityClassName=change.priority_class))

    @follow.register
    def _(self, change: MovePod) -> None:
        namespace, _, name = change.pod.partition("/")
        pod = self.store.get("pods", name, namespace)
        self._patch("nodes", pod["spec"]["nodeName"], {"spec": {"unschedulable": True}})
        self.store.delete("pods", name, namespace, AT_ONCE)
        if controller_of(pod) is None:
            anew = _fresh(pod)
            anew["spec"].pop("nodeName", None)
            self.store.create("pods", anew, namespace, USER)
        self.settle()
        self._patch("nodes", pod["spec"]["nodeName"], {"spec": {"unschedulable": None}})

    @follow.register
    def _(self, change: Later) -> None:
        self.clock.move_to(change.at)

    def _owner(self, whose: str) -> str | None:
        """The Volcano Job that owns a PodGroup."""
        _, namespace, name = whose.split("/")
        group = self.store.find(GROUPS, namespace, name)
        owner = controller_of(group) if group is not None else None
        if owner is None:  # the PodGroup of a job that was submitted anew since: its name ends with another uid
            return next(
                (job["metadata"]["name"] for job in self.store.all(JOBS, namespace) if name.startswith(job["metadata"]["name"] + "-")), None
            )
        return owner["name"] if owner["apiVersion"].startswith("batch.volcano.sh/") else None

    def _pods(self, whose: str, *, every: bool = False) -> list[Object]:
        """The pods of a PodGroup that wait, or the pod itself; `every`: all of them."""
        kind, namespace, name = whose.split("/")
        if kind == "pod":
            return [self.store.get("pods", name, namespace)]
        owner = self._owner(whose)
        own = [pod for pod in self.store.all("pods", namespace) if _is_of(pod, owner, name)]
        return [pod for pod in own if every or not pod["spec"].get("nodeName")]

    def _renew(self, whose: str, mend: Mend, also: Mend | None = None) -> None:
        """Submit a job, or pods without one, again with another pod template."""
        kind, namespace, name = whose.split("/")
        owner = self._owner(whose) if kind == "podgroup" else None
        plain = self._plain_job(namespace, name) if kind == "podgroup" else None
        if plain is not None:
            anew = _fresh(plain)
            anew["spec"] = {key: value for key, value in anew["spec"].items() if key != "selector"}
            anew["spec"]["template"]["metadata"].pop("labels", None)
            mend(anew["spec"]["template"]["spec"])
            self.store.delete(PLAIN_JOBS, anew["metadata"]["name"], namespace, AT_ONCE)
            self._pass()
            self.store.create(PLAIN_JOBS, anew, namespace, USER)
            self.plane.quiet()
        elif (workload := self._scaled(kind, namespace, name)) is not None:
            self._patch(workload[0], workload[1]["metadata"]["name"], {"spec": {"template": _mended(workload[1], mend)}}, namespace)
            self.plane.quiet()
        elif owner is None:
            for pod in self._pods(whose):
                self.store.delete("pods", pod["metadata"]["name"], namespace, AT_ONCE)
                anew = _fresh(pod)
                mend(anew["spec"])
                self.store.create("pods", anew, namespace, USER)
        else:
            self._submit_anew(owner, namespace, lambda job: _mend_all(job, mend, also))

    def _scaled(self, kind: str, namespace: str, name: str) -> tuple[str, Object] | None:
        """The Deployment or StatefulSet of this name, with its kind, or that whose pods or PodGroup have this name and were never made."""
        if kind in ("deployment", "statefulset"):
            return f"{kind}s.apps", self.store.get(f"{kind}s.apps", name, namespace)
        found = ((kind, each) for kind in ("deployments.apps", "statefulsets.apps") for each in self.store.all(kind, namespace))
        own = (pair for pair in found if name.startswith((f"{pair[1]['metadata']['name']}-", f"podgroup-{pair[1]['metadata']['uid']}")))
        return next(own, None) if self.store.find("pods", namespace, name) is None else None

    def _plain_job(self, namespace: str, group: str) -> Object | None:
        """The Job of Kubernetes that owns a PodGroup, or that owned it before it was submitted anew."""
        owner = controller_of(self.store.find(GROUPS, namespace, group) or {"metadata": {}})
        if owner and owner["apiVersion"] == "batch/v1":
            self._owned[namespace, group] = owner["name"]
        if (made := self.store.find(PLAIN_JOBS, namespace, self._owned.get((namespace, group), ""))) is not None:
            return made
        return next((job for job in self.store.all(PLAIN_JOBS, namespace) if group == f"podgroup-{job['metadata']['uid']}"), None)

    def _submit_anew(self, name: str, namespace: str, mend: Mend) -> None:
        job = _fresh(self.store.get(JOBS, name, namespace))
        job.pop("status", None)
        mend(job)
        self.store.delete(JOBS, name, namespace, AT_ONCE)
        self._pass()
        self.store.create(JOBS, job, namespace, USER)
        self.plane.quiet()


def _mend_all(job: Object, mend: Mend, also: Mend | None) -> None:
    for task in job["spec"]["tasks"]:
        mend(task["template"].setdefault("spec", {}))
    if also is not None:
        also(job)


def _mended(workload: Object, mend: Mend) -> Object:
    """The pod template of a workload, mended."""
    template: Object = copy.deepcopy(workload["spec"]["template"])
    mend(template["spec"])
    return template


def _is_of(pod: Object, job: str | None, group: str) -> bool:
    owner = controller_of(pod)
    return owner["name"] == job if job and owner else (pod["metadata"].get("annotations") or {}).get(GROUP_NAME) == group


def _is_less(one: str, other: str) -> bool:
    return quantity(one).milli < quantity(other).milli


def _sum(one: str, other: str) -> str:
    return format_milli(quantity(one).milli + quantity(other).milli)


def _fresh(obj: Object) -> Object:
    """The object as a user would create it."""
    made: Object = copy.deepcopy(obj)
    kept = ("name", "namespace", "labels", "annotations")
    made["metadata"] = {key: value for key, value in made["metadata"].items() if key in kept}
    return made


def _without_node_terms(spec: Object) -> None:
    spec.pop("nodeSelector", None)
    (spec.get("affinity") or {}).pop("nodeAffinity", None)


def _without_pod_terms(spec: Object) -> None:
    for name in ("podAffinity", "podAntiAffinity"):
        (spec.get("affinity") or {}).pop(name, None)


def _without_ports(spec: Object) -> None:
    for container in (*spec["containers"], *(spec.get("initContainers") or ())):
        container.pop("ports", None)


def _without(*fields: str) -> Mend:
    def mend(spec: Object) -> None:
        for field in fields:
            spec.pop(field, None)
        for container in spec["containers"] if "volumes" in fields else ():
            container.pop("volumeMounts", None)

    return mend


def _without_runtime_class(spec: Object) -> None:
    _without_node_terms(spec)
    for field in ("runtimeClassName", "overhead"):
        spec.pop(field, None)


DROPS: dict[str, Mend] = {
    "node affinity": _without_node_terms,
    "pod affinity": _without_pod_terms,
    "host port": _without_ports,
    "volume": _without("volumes"),
    "topology spread constraint": _without("topologySpreadConstraints"),
    "device claim": _without("resourceClaims"),
    "RuntimeClass": _without_runtime_class,
}
