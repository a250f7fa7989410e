"""DaemonSets: one pod on every node that fits its template's selectors and whose taints it tolerates.

A node affinity ties the pod to its node, and the scheduler places it like any other pod. It tolerates the taints for the usual
troubles of nodes, such as not being ready. An update ends old pods, a few at a time.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence

from pumice.api import Key, Object, kinds, name_of, spec_of, status_of, uid_of
from pumice.api.annotations import CONTROLLER_REVISION_HASH
from pumice.api.json_objects import created_at, labels_of, suffix, terminating
from pumice.api.selectors import matches, requirements
from pumice.controllers.controller import NOTHING, KeysOf, Lister, ObjectChange, Result, all_of, itself, result
from pumice.controllers.kubernetes.pod_writes import created, ended
from pumice.controllers.kubernetes.pods import (
    ENDED,
    active,
    available,
    claim,
    from_template,
    its_claimants,
    phase,
    ready,
    revision_of,
    share,
)
from pumice.controllers.kubernetes.revisions import keep_revision
from pumice.controllers.writes import Write, delete, status_change


def fits(pod_spec: Object, node: Object) -> bool:
    """Whether a node matches the node selector and the required node affinity of a pod."""
    selector = pod_spec.get("nodeSelector") or {}
    if not selector.items() <= labels_of(node).items():
        return False
    affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_term_holds(term, node) for term in required.get("nodeSelectorTerms") or ())


def _term_holds(term: Object, node: Object) -> bool:
    labels, fields = requirements(term.get("matchExpressions")), requirements(term.get("matchFields"))
    return bool(labels or fields) and matches(labels, labels_of(node)) and matches(fields, {"metadata.name": name_of(node)})


def tolerates(tolerations: Iterable[Mapping[str, object]], taints: Iterable[Object]) -> bool:
    stated = list(tolerations)
    return all(any(covers(each, taint) for each in stated) for taint in taints)


def covers(toleration: Mapping[str, object], taint: Object) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("key") not in (None, "", taint.get("key")):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


NODE_TAINTS = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
TOLERATIONS = [{"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect} for name, effect in NODE_TAINTS]


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
        nodes = [name_of(node) for node in lister.all(kinds.NODE) if _belongs(template, node)]
        by_node: dict[str, list[Object]] = {}
        pods, claims = claim(owner, kinds.POD, lister, lambda pod: bool(node_of(pod)))
        for pod in pods:
            by_node.setdefault(node_of(pod), []).append(pod)
        writes = [] if terminating(owner) else [*claims, *_remember(owner, by_node, lister), *_keep(owner, nodes, by_node)]
        status, next_ready = _status(owner, nodes, by_node, now)
        return result([*writes, *status_change(owner, status)], [(next_ready, key)] if next_ready is not None else [])


def _remember(owner: Object, by_node: dict[str, list[Object]], lister: Lister) -> list[Write]:
    revision = revision_of(spec_of(owner).get("template") or {})
    in_use = {labels_of(pod).get(CONTROLLER_REVISION_HASH, "") for pods in by_node.values() for pod in pods}
    return keep_revision(owner, f"{name_of(owner)}-{revision}", revision, in_use, lister)


def _all_if_it_matters(change: ObjectChange, lister: Lister) -> Iterable[Hashable]:
    """The keys of all DaemonSets if a node's labels or spec changed: its frequent status reports do not decide which pods run there."""
    old, new = change
    if old and new and labels_of(old) == labels_of(new) and spec_of(old) == spec_of(new):
        return ()
    return all_of(kinds.DAEMON_SET)(change, lister)


def _belongs(template: Object, node: Object) -> bool:
    spec = spec_of(template)
    taints = [taint for taint in spec_of(node).get("taints") or () if taint.get("effect") in ("NoSchedule", "NoExecute")]
    return fits(spec, node) and tolerates([*(spec.get("tolerations") or ()), *TOLERATIONS], taints)


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


def _keep(owner: Object, nodes: Sequence[str], by_node: dict[str, list[Object]]) -> list[Write]:
    writes: list[Write] = []
    for node in nodes:
        pods = by_node.get(node, [])
        writes.extend(delete(pod) for pod in pods if phase(pod) in ENDED and not terminating(pod))
        alive = sorted((pod for pod in pods if active(pod)), key=created_at)
        writes.extend(ended(owner, alive[1:]))
        if not pods:
            writes.extend(created(owner, [_make(owner, node)], 1))
    for node, pods in sorted(by_node.items()):
        if node not in nodes:
            writes.extend(ended(owner, (pod for pod in pods if not terminating(pod))))
    return writes or _update(owner, nodes, by_node)


def _make(owner: Object, node: str) -> Object:
    template = spec_of(owner).get("template") or {}
    revision = revision_of(template)
    name = f"{name_of(owner)}-{suffix(uid_of(owner), node, owner['metadata'].get('resourceVersion'))}"
    pod = from_template(owner, template, name, **{CONTROLLER_REVISION_HASH: revision})
    field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = pod["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [field]}
    pod["spec"]["tolerations"] = [*(pod["spec"].get("tolerations") or ()), *map(dict, TOLERATIONS)]
    return pod


def _update(owner: Object, nodes: Sequence[str], by_node: dict[str, list[Object]]) -> list[Write]:
    """The writes that end pods of an older template, as long as few enough nodes are without a ready pod."""
    strategy = spec_of(owner).get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return []
    allowed = max(1, share((strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1), len(nodes), True))
    revision = revision_of(spec_of(owner).get("template") or {})
    here = (pod for node in nodes for pod in by_node.get(node, ()))
    old = [pod for pod in here if labels_of(pod).get(CONTROLLER_REVISION_HASH) != revision and not terminating(pod)]
    serving = sum(any(ready(pod) and not terminating(pod) for pod in by_node.get(node, ())) for node in nodes)
    idle = [pod for pod in old if not ready(pod)]
    room = max(0, allowed - (len(nodes) - serving))
    return ended(owner, (*idle, *[pod for pod in old if ready(pod)][:room]))


def _status(owner: Object, nodes: Sequence[str], by_node: dict[str, list[Object]], now: float) -> tuple[Object, float | None]:
    revision = revision_of(spec_of(owner).get("template") or {})
    here = [pod for node in nodes for pod in by_node.get(node, ())[:1] if phase(pod) not in ENDED]
    count, next_ready = available(here, float(spec_of(owner).get("minReadySeconds") or 0), now)
    updated = sum(labels_of(pod).get(CONTROLLER_REVISION_HASH) == revision for pod in here)
    status = {
        **status_of(owner),
        "desiredNumberScheduled": len(nodes),
        "currentNumberScheduled": len(here),
        "numberMisscheduled": sum(len(pods) for node, pods in by_node.items() if node not in nodes),
        "numberReady": sum(ready(pod) and not terminating(pod) for pod in here),
        "updatedNumberScheduled": updated,
        "numberAvailable": count,
        "numberUnavailable": len(nodes) - count,
        "observedGeneration": owner["metadata"].get("generation", 1),
    }
    return status, next_ready
