"""Deployments: a ReplicaSet per template, and a rollout from the old ReplicaSets to the new one.

The status says what `kubectl rollout status` waits for: the generation seen, the pods updated and available, and whether there
has been progress within the deadline. Old ReplicaSets are kept, empty, for a rollback.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from pumice.api import Key, Object, instant, kinds, name_of, namespace_of, rfc3339, spec_of, status_of
from pumice.api.annotations import DEPLOYMENT_REVISION, LAST_APPLIED, REVISION_HISTORY, TEMPLATE_HASH
from pumice.api.integers import integer
from pumice.api.json_objects import annotations_of, condition, controlled_by, controller_of, copied, created_at, terminating
from pumice.api.kinds import kind_of
from pumice.controllers import pod_bursts
from pumice.controllers.controller import NOTHING, Among, KeysOf, Lister, ObjectChange, Result, itself, result
from pumice.controllers.kubernetes.owned_pods import active, claim, its_claimants, pods_of, revision_of
from pumice.controllers.kubernetes.rolling_update import Size, grown, limits, shrunk
from pumice.controllers.writes import Create, Emit, Write, delete, patch, status_change

DEADLINE_S = 600
PARTS = {"replicas": "replicas", "readyReplicas": "readyReplicas", "availableReplicas": "availableReplicas"}


def deployment_status(deployment: Object, new: Object | None, old: Sequence[Object], now: float) -> tuple[Object, float | None]:
    """The status, and when the rollout will have taken too long; None if it is over, paused or too late already."""
    sets = [*old, *([new] if new is not None else [])]
    wanted = int(spec_of(deployment).get("replicas", 1))
    counts = {name: sum(int(status_of(each).get(part) or 0) for each in sets) for name, part in PARTS.items()}
    counts["updatedReplicas"] = int(status_of(new).get("replicas") or 0) if new is not None else 0
    counts["unavailableReplicas"] = max(0, sum(int(spec_of(each).get("replicas", 1)) for each in sets) - counts["availableReplicas"])
    stored = status_of(deployment)
    status = {**copied(stored), **{name: value for name, value in counts.items() if value or name in stored}}
    status["observedGeneration"] = deployment["metadata"].get("generation", 1)
    moved = any(counts[name] != (stored.get(name) or 0) for name in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"))
    complete = counts["updatedReplicas"] == counts["replicas"] == counts["availableReplicas"] == wanted
    progressing, deadline = _progressing(deployment, new, complete, moved, now)
    held_back = condition(new, pod_bursts.TYPE) if new is not None else None
    status["conditions"] = [_available(deployment, counts["availableReplicas"], now), progressing, *([held_back] if held_back else [])]
    return status, deadline


def _available(deployment: Object, count: int, now: float) -> Object:
    within = limits(int(spec_of(deployment).get("replicas", 1)), spec_of(deployment).get("strategy"))
    if count >= within.min_available:
        return _entry(deployment, "Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", now)
    message = "Deployment does not have minimum availability."
    return _entry(deployment, "Available", "False", "MinimumReplicasUnavailable", message, now)


def _progressing(deployment: Object, new: Object | None, complete: bool, moved: bool, now: float) -> tuple[Object, float | None]:
    before = condition(deployment, "Progressing")
    limit_s = float(spec_of(deployment).get("progressDeadlineSeconds") or DEADLINE_S)
    subject = f'ReplicaSet "{name_of(new)}"' if new is not None else f'Deployment "{name_of(deployment)}"'
    if spec_of(deployment).get("paused"):
        return _entry(deployment, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused", now), None
    if complete:
        text = f"{subject} has successfully progressed."
        return _entry(deployment, "Progressing", "True", "NewReplicaSetAvailable", text, now, moved), None
    went_on = moved or before is None or before.get("reason") in ("NewReplicaSetAvailable", "DeploymentPaused")
    since = now if went_on else instant((before or {}).get("lastUpdateTime") or rfc3339(now))
    if not went_on and (now - since >= limit_s or (before or {}).get("reason") == "ProgressDeadlineExceeded"):
        text = f"{subject} has timed out progressing."
        return _entry(deployment, "Progressing", "False", "ProgressDeadlineExceeded", text, now), None
    entry = _entry(deployment, "Progressing", "True", "ReplicaSetUpdated", f"{subject} is progressing.", now, went_on)
    return entry, since + limit_s


def _entry(deployment: Object, type_: str, status: str, reason: str, message: str, now: float, touched: bool = False) -> Object:
    """A condition of the Deployment. Its times change only if its content does; the update time also if `touched`."""
    before = condition(deployment, type_) or {}
    same = before.get("status") == status and before.get("reason") == reason and before.get("message") == message
    stamp = rfc3339(now)
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": before.get("lastTransitionTime", stamp) if before.get("status") == status else stamp,
        "lastUpdateTime": before.get("lastUpdateTime", stamp) if same and not touched else stamp,
    }


HISTORY_LIMIT = 10


class Deployments:
    """Rolls out the templates of Deployments."""

    name = "deployment"

    def __init__(self) -> None:
        watched: dict[str, KeysOf] = {kinds.DEPLOYMENT: itself, kinds.REPLICA_SET: its_claimants(kinds.DEPLOYMENT)}
        self.watches: dict[str, KeysOf] = {**watched, kinds.POD: Among(kinds.DEPLOYMENT, _pod_gone)}

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, Key)
        deployment = lister.get(kinds.DEPLOYMENT, *key)
        if deployment is None:
            return NOTHING
        sets, claims = claim(deployment, kinds.REPLICA_SET, lister, lambda each: not terminating(each))
        sets.sort(key=lambda each: (_revision(each), created_at(each), name_of(each)))
        hash_ = revision_of(spec_of(deployment).get("template") or {})
        new = next((each for each in sets if name_of(each) == f"{name_of(deployment)}-{hash_}"), None)
        old = [each for each in sets if each is not new]
        writes: list[Write] = []
        if not terminating(deployment):
            steps = _paused(deployment, sets) if spec_of(deployment).get("paused") else _roll(deployment, new, old, hash_, lister)
            writes = [*claims, *steps]
        status, deadline = deployment_status(deployment, new, old, now)
        later = [(deadline, key)] if deadline is not None else []
        return result([*writes, *status_change(deployment, status)], later)


def _pod_gone(change: ObjectChange, lister: Lister) -> Iterable[Key]:
    """The key of the Deployment of a pod that is gone: with the strategy Recreate, it waits until all old pods are gone."""
    owner = controller_of(change.object)
    if change.new is None and owner is not None and kind_of(owner) == kinds.REPLICA_SET:
        set_ = lister.get(kinds.REPLICA_SET, namespace_of(change.object), owner["name"])
        deployment = controller_of(set_) if set_ is not None else None
        if deployment is not None:
            yield Key(namespace_of(change.object), deployment["name"])


def _roll(deployment: Object, new: Object | None, old: list[Object], hash_: str, lister: Lister) -> list[Write]:
    replicas = int(spec_of(deployment).get("replicas", 1))
    strategy = spec_of(deployment).get("strategy") or {}
    within = limits(replicas, strategy)
    sizes = [_size(each) for each in old]
    writes: list[Write] = []
    if strategy.get("type") == "Recreate":
        writes = [write for each in old if _size(each).replicas for write in _resize(deployment, each, 0)]
        if writes or any(active(pod) or terminating(pod) for each in old for pod in pods_of(each, lister)):
            return writes
        target, shrunken = replicas, [0] * len(old)
    else:
        target = grown(_size(new) if new else Size(0, 0), sizes, within)
        shrunken = shrunk(_size(new), sizes, within) if new else [size.replicas for size in sizes]
    writes.extend(_keep_new(deployment, new, old, hash_, target))
    for each, size in zip(old, shrunken, strict=True):
        writes.extend(_resize(deployment, each, size))
    return [*writes, *_forget(deployment, new, old)]


def _paused(deployment: Object, sets: list[Object]) -> list[Write]:
    """The writes for a paused Deployment: no rollout; a change of its size goes to the newest ReplicaSet that is not empty."""
    within = limits(int(spec_of(deployment).get("replicas", 1)), spec_of(deployment).get("strategy"))
    total = sum(_size(each).replicas for each in sets)
    used = [each for each in sets if _size(each).replicas] or sets
    in_the_middle = len(used) > 1 and within.min_available <= total <= within.replicas + within.max_surge
    if not used or in_the_middle:
        return []
    latest = used[-1]
    size = max(0, _size(latest).replicas + within.replicas - total)
    return _resize(deployment, latest, size)


def _keep_new(deployment: Object, new: Object | None, old: list[Object], hash_: str, size: int) -> list[Write]:
    revision = str(max((_revision(each) for each in old), default=0) + 1)
    if new is None:
        made = _new_set(deployment, hash_, size, revision)
        return [Create(made, deployment), *_scaled(deployment, made, 0, size), *_note_revision(deployment, revision)]
    writes: list[Write] = []
    if old and _revision(new) < int(revision):
        writes.append(patch(new, {"metadata": {"annotations": _used_again(new, revision)}}))
    else:
        revision = str(_revision(new))
    writes.extend(_resize(deployment, new, size))
    inherited = {name: value for name, value in _inherited(deployment).items() if annotations_of(new).get(name) != value}
    if inherited:
        writes.append(patch(new, {"metadata": {"annotations": inherited}}))
    if spec_of(new).get("minReadySeconds") != spec_of(deployment).get("minReadySeconds"):
        writes.append(patch(new, {"spec": {"minReadySeconds": spec_of(deployment).get("minReadySeconds")}}))
    return [*writes, *_note_revision(deployment, revision)]


LONGEST_HISTORY = 2000  #: characters


def _used_again(each: Object, revision: str) -> dict[str, str]:
    """The annotations of a ReplicaSet that gets a new revision."""
    notes = annotations_of(each)
    past = ",".join(note for note in (notes.get(REVISION_HISTORY), notes.get(DEPLOYMENT_REVISION)) if note)
    while len(past) > LONGEST_HISTORY:
        past = past.partition(",")[2]
    return {DEPLOYMENT_REVISION: revision, REVISION_HISTORY: past}


def _note_revision(deployment: Object, revision: str) -> list[Write]:
    if annotations_of(deployment).get(DEPLOYMENT_REVISION) == revision:
        return []
    return [patch(deployment, {"metadata": {"annotations": {DEPLOYMENT_REVISION: revision}}})]


def _new_set(deployment: Object, hash_: str, size: int, revision: str) -> Object:
    spec: dict[str, Any] = copied(spec_of(deployment))
    template = spec.get("template") or {}
    template.setdefault("metadata", {})["labels"] = {**(template["metadata"].get("labels") or {}), TEMPLATE_HASH: hash_}
    selector = spec.get("selector") or {}
    selector = {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), TEMPLATE_HASH: hash_}}
    fields = {"replicas": size, "selector": selector, "template": template}
    if spec.get("minReadySeconds"):
        fields["minReadySeconds"] = spec["minReadySeconds"]
    made = kinds.new(kinds.REPLICA_SET, namespace_of(deployment), f"{name_of(deployment)}-{hash_}", spec=fields)
    made["metadata"]["labels"] = dict(template["metadata"]["labels"])
    made["metadata"]["annotations"] = {**_inherited(deployment), DEPLOYMENT_REVISION: revision}
    made["metadata"]["ownerReferences"] = [controlled_by(deployment)]
    return made


def _inherited(deployment: Object) -> dict[str, str]:
    """The annotations of the Deployment that its ReplicaSet inherits (and so the PodGroup that is made for it)."""
    left_out = (DEPLOYMENT_REVISION, REVISION_HISTORY, LAST_APPLIED)
    return {name: value for name, value in annotations_of(deployment).items() if name not in left_out}


def _forget(deployment: Object, new: Object | None, old: list[Object]) -> list[Write]:
    """The writes that delete the oldest empty ReplicaSets beyond the history limit."""
    limit = spec_of(deployment).get("revisionHistoryLimit", HISTORY_LIMIT)
    empty = [each for each in old if not _size(each).replicas and not status_of(each).get("replicas")]
    return [delete(each) for each in empty[: max(0, len(empty) - int(limit))]] if new is not None else []


def _resize(deployment: Object, each: Object, size: int) -> list[Write]:
    before = _size(each).replicas
    return [patch(each, {"spec": {"replicas": size}}), *_scaled(deployment, each, before, size)] if size != before else []


def _scaled(deployment: Object, each: Object, before: int, after: int) -> list[Emit]:
    """The event about another size; none about a new ReplicaSet that is to wait."""
    if before == after:
        return []
    text = f"Scaled {'up' if after > before else 'down'} replica set {name_of(each)} from {before} to {after}"
    return [Emit(deployment, "Normal", "ScalingReplicaSet", text)]


def _size(each: Object) -> Size:
    return Size(int(spec_of(each).get("replicas", 1)), int(status_of(each).get("availableReplicas") or 0))


def _revision(each: Object) -> int:
    return integer(annotations_of(each).get(DEPLOYMENT_REVISION, "0"))
