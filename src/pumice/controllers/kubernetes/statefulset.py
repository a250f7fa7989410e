"""StatefulSets: pods with an ordinal and, if wanted, a volume each that stays.

They work in order, unless the podManagementPolicy is Parallel: a pod is made when its predecessors are ready, and ended when its
successors are gone. An update replaces pods from the last one down to the partition; older revisions are kept as
ControllerRevisions, so that a lost pod below the partition is made again as it was.
"""

from collections.abc import Hashable
from typing import NamedTuple

from pumice.api import Key, Object, kinds, name_of, namespace_of, spec_of, status_of
from pumice.api.annotations import CONTROLLER_REVISION_HASH, POD_INDEX, STATEFUL_POD_NAME
from pumice.api.integers import integer
from pumice.api.json_objects import copied, labels_of, terminating
from pumice.controllers.controller import NOTHING, Lister, Result, itself, result
from pumice.controllers.kubernetes.pod_writes import of_set
from pumice.controllers.kubernetes.pods import ENDED, available, claim, from_template, its_claimants, phase, ready, revision_of
from pumice.controllers.kubernetes.revisions import keep_revision
from pumice.controllers.waiting_pods import MOST_WAITING, burst, note, room
from pumice.controllers.writes import Create, Write, delete, status_change


class Revisions(NamedTuple):
    """The names of the present revision of the template and of the revision that the pods are updated to."""

    current: str
    update: str


class StatefulSets:
    """Keeps the ordered pods of StatefulSets."""

    name = "statefulset"

    def __init__(self, most_waiting: int = MOST_WAITING) -> None:
        self._most_waiting = most_waiting
        self.watches = {kinds.STATEFUL_SET: itself, kinds.POD: its_claimants(kinds.STATEFUL_SET)}

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, Key)
        owner = lister.get(kinds.STATEFUL_SET, *key)
        if owner is None:
            return NOTHING
        mine, claims = claim(owner, kinds.POD, lister, lambda pod: _ordinal(pod, owner) >= 0)
        pods = {_ordinal(pod, owner): pod for pod in mine}
        update = f"{name_of(owner)}-{revision_of(spec_of(owner).get('template') or {})}"
        revisions = Revisions(status_of(owner).get("currentRevision") or update, update)
        writes: list[Write] = []
        free = room(owner, mine, self._most_waiting)
        if not terminating(owner):
            in_use = {*revisions, *map(_revision, pods.values())}
            steps = _next_step(owner, pods, revisions, min(burst(len(pods)), free), lister)
            writes = [*claims, *keep_revision(owner, update, update, in_use, lister), *steps]
        status, next_ready = _status(owner, pods, revisions, now)
        held_back = free == 0 and int(spec_of(owner).get("replicas", 1)) > len(pods)
        note(status, held_back, self._most_waiting, now)
        return result([*writes, *status_change(owner, status)], [(next_ready, key)] if next_ready is not None else [])


def _ordinal(pod: Object, owner: Object) -> int:
    """The ordinal in the pod's name; negative if this is not a name of one of the set's pods."""
    of, _, number = name_of(pod).rpartition("-")
    return integer(number, -1) if of == name_of(owner) else -1


def _next_step(owner: Object, pods: dict[int, Object], revisions: Revisions, most: int, lister: Lister) -> list[Write]:
    """The next writes: replace ended pods, make at most so many missing ones, end surplus pods, then update; each only when the step before
    is done."""
    spec = spec_of(owner)
    first = int((spec.get("ordinals") or {}).get("start") or 0)
    wanted = range(first, first + int(spec.get("replicas", 1)))
    together = spec.get("podManagementPolicy") == "Parallel"
    writes: list[Write] = []
    made = 0
    for ordinal in wanted:
        pod = pods.get(ordinal)
        if pod is None and made >= most:
            return writes
        if pod is None:
            writes.extend(_make(owner, ordinal, _revision_for(owner, ordinal, revisions), lister))
            made += 1
        elif phase(pod) in ENDED and not terminating(pod):
            writes.append(delete(pod))
        elif ready(pod) and not terminating(pod):
            continue
        if not together:
            return writes
    surplus = [pods[ordinal] for ordinal in sorted(pods, reverse=True) if ordinal not in wanted]
    if surplus:
        ending = [pod for pod in surplus if terminating(pod)]
        now_too = [pod for pod in surplus if not terminating(pod)]
        return [*writes, *_end(owner, now_too if together else now_too[: 0 if ending else 1])]
    return writes or _update(owner, pods, revisions)


def _update(owner: Object, pods: dict[int, Object], revisions: Revisions) -> list[Write]:
    """The writes that end the last pod of an older revision, if all pods after it are ready."""
    strategy = spec_of(owner).get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return []
    partition = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
    for ordinal in sorted(pods, reverse=True):
        if ordinal < partition:
            return []
        if terminating(pods[ordinal]) or (_revision(pods[ordinal]) == revisions.update and not ready(pods[ordinal])):
            return []
        if _revision(pods[ordinal]) != revisions.update:
            return _end(owner, [pods[ordinal]])
    return []


def _end(owner: Object, pods: list[Object]) -> list[Write]:
    return [write for pod in pods for write in (delete(pod), of_set("delete", pod, owner))]


def _revision(pod: Object) -> str:
    return labels_of(pod).get(CONTROLLER_REVISION_HASH, "")


def _revision_for(owner: Object, ordinal: int, revisions: Revisions) -> str:
    strategy = spec_of(owner).get("updateStrategy") or {}
    partition = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
    return revisions.current if ordinal < partition else revisions.update


def _make(owner: Object, ordinal: int, revision: str, lister: Lister) -> list[Write]:
    kept = lister.get(kinds.CONTROLLER_REVISION, namespace_of(owner), revision)
    template = kept["data"]["spec"]["template"] if kept else spec_of(owner).get("template") or {}
    name = f"{name_of(owner)}-{ordinal}"
    pod = from_template(owner, template, name, **{CONTROLLER_REVISION_HASH: revision, STATEFUL_POD_NAME: name, POD_INDEX: str(ordinal)})
    pod["spec"]["hostname"] = name
    pod["spec"]["subdomain"] = spec_of(owner).get("serviceName") or ""
    claims: list[Write] = []
    for claim_template in spec_of(owner).get("volumeClaimTemplates") or ():
        claim = f"{claim_template['metadata']['name']}-{name}"
        volume = {"name": claim_template["metadata"]["name"], "persistentVolumeClaim": {"claimName": claim}}
        others = [each for each in pod["spec"].get("volumes") or () if each["name"] != volume["name"]]
        pod["spec"]["volumes"] = [*others, volume]
        if lister.get(kinds.CLAIM, namespace_of(owner), claim) is None:
            made = kinds.new(kinds.CLAIM, namespace_of(owner), claim, spec=copied(claim_template.get("spec") or {}))
            made["metadata"]["labels"] = dict((spec_of(owner).get("selector") or {}).get("matchLabels") or {})
            claims += [Create(made, owner), of_set("create", made, owner)]
    return [*claims, Create(pod, owner), of_set("create", pod, owner)]


def _status(owner: Object, pods: dict[int, Object], revisions: Revisions, now: float) -> tuple[Object, float | None]:
    there = [pod for pod in pods.values() if phase(pod) not in ENDED]
    count, next_ready = available(there, float(spec_of(owner).get("minReadySeconds") or 0), now)
    updated = sum(_revision(pod) == revisions.update and not terminating(pod) for pod in there)
    wanted = int(spec_of(owner).get("replicas", 1))
    counts = {
        "replicas": len(there),
        "readyReplicas": sum(ready(pod) and not terminating(pod) for pod in there),
        "availableReplicas": count,
        "updatedReplicas": updated,
    }
    done = updated == counts["readyReplicas"] == wanted
    current = revisions.update if done else revisions.current
    counts["currentReplicas"] = sum(_revision(pod) == current and not terminating(pod) for pod in there)
    stored = status_of(owner)
    stated = {name: value for name, value in counts.items() if value or name in stored or name == "replicas"}
    seen = {"observedGeneration": owner["metadata"].get("generation", 1), "currentRevision": current, "updateRevision": revisions.update}
    return {**stored, **stated, **seen}, next_ready
