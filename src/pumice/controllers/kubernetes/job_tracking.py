"""Each pod of a Job is counted once, though it may be gone before anybody looks.

A pod keeps a finalizer until its Job's status lists it among `uncountedTerminatedPods`. Once the finalizer is gone, the status has it in
its number and no longer in the list. The success of an indexed pod needs no list: its index stands in the status.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pumice.api import kinds
from pumice.api.annotations import JOB_TRACKING
from pumice.api.json_objects import (
    Key,
    Object,
    controller_of,
    finalizers_of,
    key_of,
    namespace_of,
    spec_of,
    status_of,
    terminating,
    uid_of,
)
from pumice.controllers.controller import ObjectChange, Write, patch
from pumice.controllers.kubernetes.pods import ENDED, phase
from pumice.controllers.lister import Lister


class Count(NamedTuple):
    """How many pods have ended in one way."""

    settled: int  #: whose finalizers are gone
    listed: list[str]  #: uids of the others

    @property
    def total(self) -> int:
        return self.settled + len(self.listed)


def count(job: Object, pods: Iterable[Object], way: str, ended: Iterable[Object]) -> Count:
    """Those that the status knows already, and those of `ended` that are news. `way`: succeeded or failed."""
    tracked = set(map(uid_of, filter(is_tracked, pods)))
    known = uncounted(job)
    listed = known.get(way) or []
    left = [uid for uid in listed if uid in tracked]
    heard = {uid for uids in known.values() for uid in uids}
    news = [uid_of(pod) for pod in ended if uid_of(pod) in tracked and uid_of(pod) not in heard]
    return Count(int(status_of(job).get(way) or 0) + len(listed) - len(left), [*left, *news])


def uncounted(job: Object) -> dict[str, list[str]]:
    return status_of(job).get("uncountedTerminatedPods") or {}


def replaces_failed_only(job: Object) -> bool:
    """Whether a pod that is being deleted is not over before it has ended. The API server says so of jobs with a podFailurePolicy."""
    return bool(spec_of(job).get("podReplacementPolicy") == "Failed")


def is_over(job: Object, pod: Object) -> bool:
    """Whether nothing more is to come of a pod."""
    return phase(pod) in ENDED or (terminating(pod) and not replaces_failed_only(job))


def is_tracked(pod: Object) -> bool:
    return JOB_TRACKING in finalizers_of(pod)


def let_go(pods: Iterable[Object]) -> list[Write]:
    """Take off the finalizer."""
    others = ((pod, [each for each in finalizers_of(pod) if each != JOB_TRACKING]) for pod in pods if is_tracked(pod))
    return [patch(pod, {"metadata": {"finalizers": left or None}}) for pod, left in others]


# Pods that no Job counts any more: theirs is gone, or they were taken out of it.


class StrayPod(NamedTuple):
    """Names a pod whose finalizer may have to be taken off."""

    pod: Key


def strays(change: ObjectChange, lister: Lister) -> Iterable[StrayPod]:
    """Of a changed pod itself, of a Job that has gone the pods that it had."""
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
