"""Volumes for claims: a claim is bound to the smallest volume that fits, or to a new volume of its storage class.

If the class waits for the first consumer, this happens once the scheduler has named a node, or has chosen a volume itself. No provisioner
is called: in a cluster where nothing really runs, every class with a provisioner makes volumes. A volume whose claim is gone is deleted or
kept, as its reclaim policy says.
"""

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

from pumice.api import Key, Object, key_of, kinds, name_of, namespace_of, spec_of, status_of, uid_of
from pumice.api.annotations import BIND_COMPLETED, DEFAULT_STORAGE_CLASS, PROVISIONED_BY, SELECTED_NODE
from pumice.api.json_objects import annotations_of, copied, created_at, labels_of, terminating
from pumice.api.quantity import quantity
from pumice.api.selectors import label_selector, matches
from pumice.controllers.controller import NOTHING, Lister, ObjectChange, Result, itself, result
from pumice.controllers.writes import Create, Emit, Write, change, delete, patch, status_change

NO_PROVISIONER = "kubernetes.io/no-provisioner"


class OfVolume(NamedTuple):
    """The key of a volume; the keys of claims are plain `Key` objects."""

    name: str


class Volumes:
    """Binds claims and volumes."""

    name = "persistentvolume"

    def __init__(self) -> None:
        self.watches = {kinds.CLAIM: _claim_and_its_volume, kinds.VOLUME: _volume_and_who_may_want_it, kinds.STORAGE_CLASS: _unbound}

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        if isinstance(key, OfVolume):
            volume = lister.get(kinds.VOLUME, "", key.name)
            return NOTHING if volume is None else result(_look_after(volume, lister))
        assert isinstance(key, Key)
        claim = lister.get(kinds.CLAIM, *key)
        return NOTHING if claim is None or terminating(claim) else result(_serve(claim, lister))


def _claim_and_its_volume(change: ObjectChange, lister: Lister) -> Iterable[Hashable]:
    yield from itself(change, lister)
    for state in change.states:
        if spec_of(state).get("volumeName"):
            yield OfVolume(spec_of(state)["volumeName"])


def _volume_and_who_may_want_it(change: ObjectChange, lister: Lister) -> Iterable[Hashable]:
    yield OfVolume(name_of(change.object))
    reference = spec_of(change.object).get("claimRef")
    if reference:
        yield Key(reference.get("namespace", ""), reference.get("name", ""))
    else:
        yield from _unbound(change, lister)


def _unbound(change: ObjectChange, lister: Lister) -> Iterable[Key]:
    return [key_of(claim) for claim in lister.all(kinds.CLAIM) if not spec_of(claim).get("volumeName")]


def _look_after(volume: Object, lister: Lister) -> list[Write]:
    reference = spec_of(volume).get("claimRef")
    if not reference or not reference.get("uid"):
        return _phase(volume, "Available")
    claim = lister.get(kinds.CLAIM, reference.get("namespace", ""), reference.get("name", ""))
    if claim is not None and uid_of(claim) == reference["uid"]:
        return _phase(volume, "Bound" if spec_of(claim).get("volumeName") == name_of(volume) else "Available")
    kept = spec_of(volume).get("persistentVolumeReclaimPolicy") != "Delete" or terminating(volume)
    return [*_phase(volume, "Released"), *([] if kept else [delete(volume)])]


def _phase(volume: Object, phase: str) -> list[Write]:
    return status_change(volume, {**status_of(volume), "phase": phase})


def _serve(claim: Object, lister: Lister) -> list[Write]:
    chosen = spec_of(claim).get("volumeName")
    if chosen:
        volume = lister.get(kinds.VOLUME, "", chosen)
        if volume is not None:
            return _bind(claim, volume) if _is_for(volume, claim) else []
        return status_change(claim, {**status_of(claim), "phase": "Lost"}) if BIND_COMPLETED in annotations_of(claim) else []
    class_ = _class_of(claim, lister)
    if class_ is not None and spec_of(claim).get("storageClassName") is None:
        return [patch(claim, {"spec": {"storageClassName": name_of(class_)}})]
    waits = (class_ or {}).get("volumeBindingMode") == "WaitForFirstConsumer"
    fitting = [volume for volume in lister.all(kinds.VOLUME) if _fits(volume, claim, must_be_meant=waits)]
    if fitting:
        return _bind(claim, min(fitting, key=_suits_best))
    if class_ is None or class_.get("provisioner") == NO_PROVISIONER or (waits and SELECTED_NODE not in annotations_of(claim)):
        return []
    return _provide(claim, class_)


def _class_of(claim: Object, lister: Lister) -> Object | None:
    """The storage class that the claim names; the newest default class if it names none; None if there is no such class."""
    named = spec_of(claim).get("storageClassName")
    if named is not None:
        return lister.get(kinds.STORAGE_CLASS, "", named) if named else None
    defaults = [each for each in lister.all(kinds.STORAGE_CLASS) if annotations_of(each).get(DEFAULT_STORAGE_CLASS) == "true"]
    return max(defaults, key=created_at, default=None)


def _is_for(volume: Object, claim: Object) -> bool:
    reference = spec_of(volume).get("claimRef")
    if not reference:
        return True
    same = reference.get("namespace") == namespace_of(claim) and reference.get("name") == name_of(claim)
    return same and reference.get("uid") in (None, "", uid_of(claim))


def _fits(volume: Object, claim: Object, must_be_meant: bool) -> bool:
    given, asked = spec_of(volume), spec_of(claim)
    if not _is_for(volume, claim) or terminating(volume) or (must_be_meant and not given.get("claimRef")):
        return False
    if status_of(volume).get("phase") == "Released" or (given.get("storageClassName") or "") != (asked.get("storageClassName") or ""):
        return False
    chosen = matches(label_selector(asked.get("selector")) or (), labels_of(volume))
    alike = chosen and given.get("volumeMode", "Filesystem") == asked.get("volumeMode", "Filesystem")
    modes = set(asked.get("accessModes") or ()) <= set(given.get("accessModes") or ())
    return modes and alike and _size(volume, "capacity") >= _size(claim, "resources", "requests")


def _suits_best(volume: Object) -> tuple[Any, ...]:
    """The sort key of a fitting volume: a volume that is reserved for the claim comes first, then the smallest."""
    return not spec_of(volume).get("claimRef"), _size(volume, "capacity"), name_of(volume)


def _size(subject: Object, *path: str) -> int:
    found: Any = spec_of(subject)
    for part in path:
        found = (found or {}).get(part)
    return quantity((found or {}).get("storage", 0)).whole


def _bind(claim: Object, volume: Object) -> list[Write]:
    wanted_volume, wanted_claim = copied(volume), copied(claim)
    wanted_volume["spec"]["claimRef"] = {**(spec_of(volume).get("claimRef") or {}), **_reference(claim)}
    wanted_claim["spec"]["volumeName"] = name_of(volume)
    wanted_claim["metadata"].setdefault("annotations", {})[BIND_COMPLETED] = "yes"
    given = {"phase": "Bound", "accessModes": spec_of(volume).get("accessModes"), "capacity": spec_of(volume).get("capacity")}
    return [*change(volume, wanted_volume), *change(claim, wanted_claim), *status_change(claim, {**status_of(claim), **given})]


def _reference(claim: Object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": namespace_of(claim),
        "name": name_of(claim),
        "uid": uid_of(claim),
    }


def _provide(claim: Object, class_: Object) -> list[Write]:
    name = f"pvc-{uid_of(claim)}"
    spec = {
        "capacity": {"storage": ((spec_of(claim).get("resources") or {}).get("requests") or {}).get("storage", "1Gi")},
        "accessModes": copied(spec_of(claim).get("accessModes") or ["ReadWriteOnce"]),
        "volumeMode": spec_of(claim).get("volumeMode", "Filesystem"),
        "persistentVolumeReclaimPolicy": class_.get("reclaimPolicy", "Delete"),
        "storageClassName": name_of(class_),
        "csi": {"driver": class_.get("provisioner", ""), "volumeHandle": name},
        "claimRef": _reference(claim),
    }
    made = kinds.new(kinds.VOLUME, "", name, spec=spec)
    made["metadata"]["annotations"] = {PROVISIONED_BY: class_.get("provisioner", "")}
    return [Create(made, claim), Emit(claim, "Normal", "ProvisioningSucceeded", f"Successfully provisioned volume {name}")]
