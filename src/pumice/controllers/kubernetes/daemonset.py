"""DaemonSets: one pod on every node that fits its template's selectors and whose taints it tolerates.

A node affinity ties the pod to its node, and the scheduler places it like any other pod. It tolerates the taints for the usual
troubles of nodes, such as not being ready. A running pod stays if its node gets a taint that only keeps new pods away. An update ends old
pods, a few at a time, or makes new ones beside a few of them first (maxSurge).
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple

from pumice.api import Key, Object, kinds, name_of, spec_of, status_of, uid_of
from pumice.api.annotations import CONTROLLER_REVISION_HASH
from pumice.api.json_objects import created_at, labels_of, suffix, terminating
from pumice.controllers.controller import NOTHING, KeysOf, Lister, ObjectChange, Result, all_of, itself, result
from pumice.controllers.kubernetes.controller_revisions import keep_revision
from pumice.controllers.kubernetes.node_fit import fits, tolerates
from pumice.controllers.kubernetes.owned_pods import (
    ENDED,
    active,
    available,
    claim,
    from_template,
    its_claimants,
    phase,
    ready,
    revision_of,
    serves,
    share,
)
from pumice.controllers.kubernetes.pod_writes import created, ended
from pumice.controllers.writes import Write, delete, status_change

NODE_TAINTS = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
ON_THE_HOSTS_NETWORK = ("network-unavailable", "NoSchedule")


class DaemonSets:
    name = "daemonset"

    def __init__(self) -> None:
        watched: dict[str, KeysOf] = {kinds.DAEMON_SET: itself, kinds.POD: its_claimants(kinds.DAEMON_SET)}
        self.watches = {**watched, kinds.NODE: _all_if_it_matters}

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, Key)
        owner = lister.get(kinds.DAEMON_SET, *key)
        if owner is None:
            return NOTHING
        template = spec_of(owner).get("template") or {}
        revision = revision_of(template)
        nodes = {name_of(node): _belongs(template, node) for node in lister.all(kinds.NODE) if _may_stay(template, node)}
        by_node: dict[str, list[Object]] = {}
        pods, claims = claim(owner, kinds.POD, lister, lambda pod: bool(node_of(pod)))
        for pod in pods:
            by_node.setdefault(node_of(pod), []).append(pod)
        at = _Situation(owner, revision, nodes, by_node, now)
        writes = [] if terminating(owner) else [*claims, *_remember(at, lister), *_keep(at)]
        status, next_ready = _status(at)
        return result([*writes, *status_change(owner, status)], [(next_ready, key)] if next_ready is not None else [])


class _Situation(NamedTuple):
    owner: Object
    revision: str  #: of its template
    nodes: Mapping[str, bool]  #: the names of nodes on which a pod may stay, and whether one is to come there
    by_node: Mapping[str, list[Object]]  #: the pods
    now: float

    @property
    def wanted(self) -> list[str]:
        """The nodes that are to have a pod."""
        return [node for node, belongs in self.nodes.items() if belongs]

    def is_old(self, pod: Object) -> bool:
        return labels_of(pod).get(CONTROLLER_REVISION_HASH) != self.revision

    def serves(self, pod: Object) -> bool:
        return serves(pod, self.owner, self.now)

    def most(self, field: str, default: int) -> int:
        """The number or share of the nodes that a field of the rolling update states."""
        rolling = (spec_of(self.owner).get("updateStrategy") or {}).get("rollingUpdate") or {}
        return share(rolling.get(field, default), len(self.wanted), True)


def _remember(at: _Situation, lister: Lister) -> list[Write]:
    in_use = {labels_of(pod).get(CONTROLLER_REVISION_HASH, "") for pods in at.by_node.values() for pod in pods}
    return keep_revision(at.owner, f"{name_of(at.owner)}-{at.revision}", at.revision, in_use, lister)


def _all_if_it_matters(change: ObjectChange, lister: Lister) -> Iterable[Hashable]:
    """The keys of all DaemonSets if a node's labels or spec changed: its frequent status reports do not decide which pods run there."""
    old, new = change
    if old and new and labels_of(old) == labels_of(new) and spec_of(old) == spec_of(new):
        return ()
    return all_of(kinds.DAEMON_SET)(change, lister)


def _may_stay(template: Object, node: Object) -> bool:
    """Whether a pod that is on the node may stay there."""
    return fits(spec_of(template), node) and _tolerates(template, node, "NoExecute")


def _belongs(template: Object, node: Object) -> bool:
    """Whether a pod is to come to a node on which one may stay."""
    return _tolerates(template, node, "NoExecute", "NoSchedule")


def _tolerates(template: Object, node: Object, *effects: str) -> bool:
    return tolerates(
        _tolerations(spec_of(template)), (taint for taint in spec_of(node).get("taints") or () if taint.get("effect") in effects)
    )


def _tolerations(spec: Object) -> list[Object]:
    taints = (*NODE_TAINTS, ON_THE_HOSTS_NETWORK) if spec.get("hostNetwork") else NODE_TAINTS
    usual = [{"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect} for name, effect in taints]
    return [*(spec.get("tolerations") or ()), *usual]


def node_of(pod: Object) -> str:
    """The name of the node that a pod is on or is meant for; empty if there is none."""
    if spec_of(pod).get("nodeName"):
        return str(spec_of(pod)["nodeName"])
    required = ((spec_of(pod).get("affinity") or {}).get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for each in term.get("matchFields") or ():
            if each.get("key") == "metadata.name" and each.get("values"):
                return str(each["values"][0])
    return ""


def _keep(at: _Situation) -> list[Write]:
    owner, surges = at.owner, at.most("maxSurge", 0) > 0
    writes: list[Write] = []
    for node, belongs in at.nodes.items():
        pods = at.by_node.get(node, [])
        writes.extend(delete(pod) for pod in pods if phase(pod) in ENDED and not terminating(pod))
        alive = sorted((pod for pod in pods if active(pod)), key=created_at)
        kept = {at.is_old(pod) if surges else True: name_of(pod) for pod in reversed(alive)}  # the eldest, of each kind
        writes.extend(ended(owner, (pod for pod in alive if name_of(pod) not in kept.values())))
        if belongs and not (alive if surges else pods):
            writes.extend(created(owner, [_make(at, node)], 1))
    for node, pods in sorted(at.by_node.items()):
        if node not in at.nodes:
            writes.extend(ended(owner, (pod for pod in pods if not terminating(pod))))
    if writes or (spec_of(owner).get("updateStrategy") or {}).get("type") == "OnDelete":
        return writes
    return _surge(at) if surges else _update(at)


def _make(at: _Situation, node: str) -> Object:
    owner = at.owner
    name = f"{name_of(owner)}-{suffix(uid_of(owner), node, owner['metadata'].get('resourceVersion'))}"
    pod = from_template(owner, spec_of(owner).get("template") or {}, name, **{CONTROLLER_REVISION_HASH: at.revision})
    field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = pod["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [field]}
    pod["spec"]["tolerations"] = _tolerations(pod["spec"])
    return pod


def _update(at: _Situation) -> list[Write]:
    """The writes that end pods of an older template, as long as few enough nodes are without an available pod."""
    here = [pod for node in at.wanted for pod in at.by_node.get(node, ()) if not terminating(pod)]
    room = at.most("maxUnavailable", 1) - (len(at.wanted) - len({node_of(pod) for pod in here if at.serves(pod)}))
    old = [pod for pod in here if at.is_old(pod)]
    serving = [pod for pod in old if at.serves(pod)]
    return ended(at.owner, (*(pod for pod in old if not at.serves(pod)), *serving[: max(0, room)]))


def _surge(at: _Situation) -> list[Write]:
    """The writes that make new pods beside old ones that are available, on few enough nodes at a time. An old pod goes when it is not
    available, or its successor is."""
    going: list[Object] = []
    replaced: list[str] = []
    beside: list[str] = []
    under_way = 0
    for node in at.wanted:
        alive = {at.is_old(pod): pod for pod in at.by_node.get(node, ()) if active(pod)}
        old, new = alive.get(True), alive.get(False)
        if old is None:
            continue
        if new is None:
            (beside if at.serves(old) else replaced).append(node)
        elif at.serves(new) or not at.serves(old):
            going.append(old)
        else:
            under_way += 1
    coming = [*replaced, *beside[: max(0, at.most("maxSurge", 0) - under_way)]]
    return [*ended(at.owner, going), *created(at.owner, (_make(at, node) for node in coming), len(coming))]


def _status(at: _Situation) -> tuple[Object, float | None]:
    wanted = at.wanted
    here = [pod for node in wanted for pod in at.by_node.get(node, ())[:1] if phase(pod) not in ENDED]
    min_ready_s = float(spec_of(at.owner).get("minReadySeconds") or 0)
    count, _ = available(here, min_ready_s, at.now)
    _, next_ready = available((pod for pods in at.by_node.values() for pod in pods), min_ready_s, at.now)
    status = {
        **status_of(at.owner),
        "desiredNumberScheduled": len(wanted),
        "currentNumberScheduled": len(here),
        "numberMisscheduled": sum(len(pods) for node, pods in at.by_node.items() if not at.nodes.get(node)),
        "numberReady": sum(ready(pod) and not terminating(pod) for pod in here),
        "updatedNumberScheduled": sum(not at.is_old(pod) for pod in here),
        "numberAvailable": count,
        "numberUnavailable": len(wanted) - count,
        "observedGeneration": at.owner["metadata"].get("generation", 1),
    }
    return status, next_ready
