"""Pods that no Job counts any more: their Job is gone, or is no longer their controller."""

from collections.abc import Iterable
from typing import NamedTuple

from pumice.api import Key, Object, key_of, kinds, namespace_of, uid_of
from pumice.api.json_objects import controller_of
from pumice.controllers.controller import Lister, ObjectChange
from pumice.controllers.kubernetes.job.pod_tally import is_tracked, let_go
from pumice.controllers.writes import Write


class StrayPod(NamedTuple):
    """The key of a pod whose finalizer may have to be removed."""

    pod: Key


def strays(change: ObjectChange, lister: Lister) -> Iterable[StrayPod]:
    """The keys for a changed object: a changed pod itself if it is stray; the pods of a Job that is gone."""
    if change.object["kind"] == "Pod":
        return (
            (StrayPod(key_of(change.new)),) if change.new is not None and is_tracked(change.new) and _is_stray(change.new, lister) else ()
        )
    gone = change.old if change.new is None else None
    return [StrayPod(key_of(pod)) for pod in lister.dependents(uid_of(gone), kinds.POD)] if gone is not None else ()


def let_stray_go(key: StrayPod, lister: Lister) -> list[Write]:
    pod = lister.get(kinds.POD, *key.pod)
    return let_go([pod]) if pod is not None and _is_stray(pod, lister) else []


def _is_stray(pod: Object, lister: Lister) -> bool:
    owner = controller_of(pod) or {}
    job = lister.get(kinds.BATCH_JOB, namespace_of(pod), owner["name"]) if owner.get("kind") == "Job" else None
    return job is None or uid_of(job) != owner["uid"]
