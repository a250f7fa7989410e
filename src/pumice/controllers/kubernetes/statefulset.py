"""StatefulSets: pods with an ordinal and, if wanted, a volume each that stays.

They work in order, unless the podManagementPolicy is Parallel: a pod is made when its predecessors are available, and ended when its
successors are gone. An update replaces pods from the last one down to the partition, as many at a time as may be unavailable; older
revisions are kept as ControllerRevisions, so that a lost pod below the partition is made again as it was. Claims stay, unless a policy
says that they go with the set, or with the pods that are scaled away: then they are owned by these.
"""

from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import NamedTuple

from pumice.api import Key, Object, kinds, name_of, namespace_of, spec_of, status_of, uid_of
from pumice.api.annotations import CONTROLLER_REVISION_HASH, POD_INDEX, STATEFUL_POD_NAME
from pumice.api.integers import integer
from pumice.api.json_objects import controlled_by, copied, labels_of, owners_of, terminating
from pumice.controllers.controller import NOTHING, Among, KeysOf, Lister, ObjectChange, Result, itself, result
from pumice.controllers.kubernetes.controller_revisions import keep_revision
from pumice.controllers.kubernetes.owned_pods import (
    ENDED,
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
from pumice.controllers.kubernetes.pod_writes import of_set
from pumice.controllers.pod_bursts import MOST_WAITING, burst, note, room
from pumice.controllers.writes import Create, Write, delete, patch, status_change


class Revisions(NamedTuple):
    """The names of the present revision of the template and of the revision that the pods are updated to."""

    current: str
    update: str


class StatefulSets:
    """Keeps the ordered pods of StatefulSets."""

    name = "statefulset"

    def __init__(self, most_waiting: int = MOST_WAITING) -> None:
        self._most_waiting = most_waiting
        self.watches: Mapping[str, KeysOf] = {
            kinds.STATEFUL_SET: itself,
            kinds.POD: its_claimants(kinds.STATEFUL_SET),
            kinds.CLAIM: Among(kinds.STATEFUL_SET, _sets_without),
        }

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
            steps = _next_step(owner, pods, revisions, min(burst(len(pods)), free), lister, now)
            writes = [*claims, *keep_revision(owner, update, update, in_use, lister), *_hand_over(owner, pods, lister), *steps]
        status, next_ready = _status(owner, pods, revisions, now)
        held_back = free == 0 and int(spec_of(owner).get("replicas", 1)) > len(pods)
        note(status, held_back, self._most_waiting, now)
        return result([*writes, *status_change(owner, status)], [(next_ready, key)] if next_ready is not None else [])


def _ordinal(pod: Object, owner: Object) -> int:
    """The ordinal in the pod's name; negative if this is not a name of one of the set's pods."""
    of, _, number = name_of(pod).rpartition("-")
    return integer(number, -1) if of == name_of(owner) else -1


def _wanted(owner: Object) -> range:
    """The ordinals of the pods that the set shall have."""
    first = int((spec_of(owner).get("ordinals") or {}).get("start") or 0)
    return range(first, first + int(spec_of(owner).get("replicas", 1)))


def _next_step(owner: Object, pods: dict[int, Object], revisions: Revisions, most: int, lister: Lister, now: float) -> list[Write]:
    """The next writes: replace ended pods, make at most so many missing ones, end surplus pods, then update; each only when the step before
    is done."""
    wanted = _wanted(owner)
    together = spec_of(owner).get("podManagementPolicy") == "Parallel"
    serving = {ordinal for ordinal, pod in pods.items() if serves(pod, owner, now)}
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
        elif ordinal in serving:
            continue
        if not together:
            return writes
    surplus = [pods[ordinal] for ordinal in sorted(pods, reverse=True) if ordinal not in wanted]
    if surplus:
        ending = [pod for pod in surplus if terminating(pod)]
        now_too = [pod for pod in surplus if not terminating(pod)]
        return [*writes, *_end(owner, now_too if together else now_too[: 0 if ending else 1])]
    return writes or _update(owner, pods, revisions, serving)


def _update(owner: Object, pods: dict[int, Object], revisions: Revisions, serving: Collection[int]) -> list[Write]:
    """The writes that end the last pods of an older revision, as many as may be unavailable with all others that are."""
    strategy = spec_of(owner).get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return []
    old = [ordinal for ordinal in sorted(pods, reverse=True) if ordinal >= _partition(owner) and not terminating(pods[ordinal])]
    old = [ordinal for ordinal in old if _revision(pods[ordinal]) != revisions.update]
    most = share((strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1), len(_wanted(owner)), True)
    unavailable = pods.keys() - set(serving) - set(old)
    return _end(owner, [pods[ordinal] for ordinal in old[: max(0, max(1, most) - len(unavailable))]])


def _partition(owner: Object) -> int:
    """The ordinal from which on pods are updated."""
    rolling = (spec_of(owner).get("updateStrategy") or {}).get("rollingUpdate") or {}
    return _wanted(owner).start + int(rolling.get("partition") or 0)


def _hand_over(owner: Object, pods: dict[int, Object], lister: Lister) -> Iterator[Write]:
    """The writes by which the claims of pods get the owner with whom they are to go: the pod if it is scaled away, or the set."""
    policy = spec_of(owner).get("persistentVolumeClaimRetentionPolicy") or {}
    for ordinal, pod in pods.items():
        goes = ordinal not in _wanted(owner) and policy.get("whenScaled") == "Delete"
        holder = pod if goes else owner if policy.get("whenDeleted") == "Delete" else None
        for template in spec_of(owner).get("volumeClaimTemplates") or ():
            found = lister.get(kinds.CLAIM, namespace_of(owner), _claim_name(template, pod))
            if found is None or terminating(found):
                continue
            others = [each for each in owners_of(found) if each["uid"] not in (uid_of(owner), uid_of(pod))]
            named = [] if holder is None else [{**controlled_by(holder), "blockOwnerDeletion": False}]
            if [each["uid"] for each in owners_of(found)] != [each["uid"] for each in (*others, *named)]:
                yield patch(found, {"metadata": {"ownerReferences": [*others, *named] or None}})


def _claim_name(template: Object, pod: Object) -> str:
    return f"{template['metadata']['name']}-{name_of(pod)}"


def _end(owner: Object, pods: list[Object]) -> list[Write]:
    return [write for pod in pods for write in (delete(pod), of_set("delete", pod, owner))]


def _revision(pod: Object) -> str:
    return labels_of(pod).get(CONTROLLER_REVISION_HASH, "")


def _revision_for(owner: Object, ordinal: int, revisions: Revisions) -> str:
    return revisions.current if ordinal < _partition(owner) else revisions.update


def _sets_without(change: ObjectChange, lister: Lister) -> Iterator[Key]:
    """The sets to one of whose pods a claim belonged that is gone now."""
    claim = change.object
    for owner in lister.all(kinds.STATEFUL_SET, namespace_of(claim)) if change.new is None else ():
        names = [f"{template['metadata']['name']}-{name_of(owner)}-" for template in spec_of(owner).get("volumeClaimTemplates") or ()]
        if name_of(claim).startswith(tuple(names)):
            yield Key(namespace_of(owner), name_of(owner))


def _make(owner: Object, ordinal: int, revision: str, lister: Lister) -> list[Write]:
    """The writes that make a pod and the claims that it lacks. None while a claim of it is on its way out: the pod would wait for it."""
    kept = lister.get(kinds.CONTROLLER_REVISION, namespace_of(owner), revision)
    template = kept["data"]["spec"]["template"] if kept else spec_of(owner).get("template") or {}
    name = f"{name_of(owner)}-{ordinal}"
    pod = from_template(owner, template, name, **{CONTROLLER_REVISION_HASH: revision, STATEFUL_POD_NAME: name, POD_INDEX: str(ordinal)})
    pod["spec"]["hostname"] = name
    pod["spec"]["subdomain"] = spec_of(owner).get("serviceName") or ""
    claims: list[Write] = []
    for claim_template in spec_of(owner).get("volumeClaimTemplates") or ():
        claim = _claim_name(claim_template, pod)
        volume = {"name": claim_template["metadata"]["name"], "persistentVolumeClaim": {"claimName": claim}}
        others = [each for each in pod["spec"].get("volumes") or () if each["name"] != volume["name"]]
        pod["spec"]["volumes"] = [*others, volume]
        found = lister.get(kinds.CLAIM, namespace_of(owner), claim)
        if found is not None and terminating(found):
            return []
        if found is None:
            made = kinds.new(kinds.CLAIM, namespace_of(owner), claim, spec=copied(claim_template.get("spec") or {}))
            stated = {name: claim_template["metadata"].get(name) or {} for name in ("labels", "annotations")}
            stated["labels"] = {**stated["labels"], **((spec_of(owner).get("selector") or {}).get("matchLabels") or {})}
            made["metadata"] |= copied({name: value for name, value in stated.items() if value})
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
