"""ResourceClaims: made for pods that name a template, and released from pods that have ended.

The name of a new claim is written into its pod's status, where the scheduler looks for it. A claim that is no longer reserved for any pod
is free to be allocated again; a claim that was made for a pod is deleted when the pod has ended.

With the feature gate DRAWorkloadResourceClaims, Kubernetes' own PodGroups have claims as well. A pod that has the same claim as its group,
in the same words, shares that of the group.
"""

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from pumice.api import Object, key_of, kinds, name_of, namespace_of, spec_of, status_of, uid_of
from pumice.api.annotations import POD_CLAIM
from pumice.api.json_objects import controlled_by, controller_of, copied, suffix, terminating
from pumice.api.kinds import kind_of
from pumice.controllers.controller import NOTHING, Lister, ObjectChange, Result, result
from pumice.controllers.kubernetes.owned_pods import ENDED, phase
from pumice.controllers.kubernetes.pod_group_protection import GROUP, group_of
from pumice.controllers.writes import Create, Emit, Write, delete, status_change


class ClaimSubject(NamedTuple):
    """The key of a pod, of a PodGroup or of a claim."""

    kind: str
    namespace: str
    name: str


class ResourceClaims:
    """Makes claims from templates and releases them."""

    name = "resourceclaim"

    def __init__(self, of_groups: bool = False) -> None:
        self.watches = {kinds.POD: _pod_touched, kinds.DEVICE_CLAIM: _claim_touched, kinds.DEVICE_CLAIM_TEMPLATE: _waiting}
        if of_groups:
            self.watches[GROUP] = _group_touched

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, ClaimSubject)
        subject = lister.get(*key)
        if subject is None or terminating(subject):
            return NOTHING
        return result(_released(subject, lister) if key.kind == kinds.DEVICE_CLAIM else _made(subject, lister))


def _made(pod: Object, lister: Lister) -> list[Write]:
    """The writes that create the claims which a pod or group lacks, and put their names into its status."""
    if phase(pod) in ENDED:
        return []
    shared = _shared(pod, lister)
    known: list[Object] = list(status_of(pod).get("resourceClaimStatuses") or ())
    named = {each["name"] for each in known}
    writes: list[Write] = []
    for asked in _templated(pod):
        template = lister.get(kinds.DEVICE_CLAIM_TEMPLATE, namespace_of(pod), asked["resourceClaimTemplateName"])
        if asked["name"] in named:
            continue
        if asked["name"] in shared:
            if name := shared[asked["name"]]:
                known.append({"name": asked["name"], "resourceClaimName": name})
            continue
        if template is None:
            text = f'resourceclaimtemplate "{asked["resourceClaimTemplateName"]}" not found'
            writes.append(Emit(pod, "Warning", "FailedResourceClaimCreation", f"{pod['kind']}ResourceClaim {asked['name']}: {text}"))
            continue
        claim = _claim(pod, asked["name"], template)
        writes.append(Create(claim))
        known.append({"name": asked["name"], "resourceClaimName": name_of(claim)})
    return [*writes, *status_change(pod, {**status_of(pod), "resourceClaimStatuses": known})] if known else writes


def _templated(pod: Object) -> list[Object]:
    return [each for each in spec_of(pod).get("resourceClaims") or () if each.get("resourceClaimTemplateName")]


def _shared(pod: Object, lister: Lister) -> dict[str, str]:
    """The claims that a pod has in common with its group: its name for each, and the name of the claim, empty until the group has it."""
    group = lister.get(GROUP, namespace_of(pod), group_of(pod)) if group_of(pod) else None
    if group is None:
        return {}
    made = {each["name"]: each.get("resourceClaimName", "") for each in status_of(group).get("resourceClaimStatuses") or ()}
    common = [each for each in _templated(pod) if each in (spec_of(group).get("resourceClaims") or ())]
    return {each["name"]: made.get(each["name"], "") for each in common}


def _claim(pod: Object, asked: str, template: Object) -> Object:
    stated = spec_of(template)
    name = f"{name_of(pod)}-{asked}-{suffix(uid_of(pod), asked)}"
    claim = kinds.new(kinds.DEVICE_CLAIM, namespace_of(pod), name, spec=copied(stated.get("spec") or {}))
    given = stated.get("metadata") or {}
    claim["metadata"] |= {
        "ownerReferences": [controlled_by(pod)],
        "annotations": {**(given.get("annotations") or {}), POD_CLAIM: asked},
        **({"labels": dict(given["labels"])} if given.get("labels") else {}),
    }
    return claim


def _released(claim: Object, lister: Lister) -> list[Write]:
    """The writes that remove ended pods from a claim's reservations, or delete the claim if it was made for such a pod."""
    owner = controller_of(claim)
    if owner is not None and kind_of(owner) == kinds.POD and POD_CLAIM in (claim["metadata"].get("annotations") or {}):
        pod = lister.get(kinds.POD, namespace_of(claim), owner["name"])
        if pod is not None and uid_of(pod) == owner["uid"] and phase(pod) in ENDED:
            return [delete(claim)]
    status = status_of(claim)
    reserved = status.get("reservedFor") or []
    kept = [each for each in reserved if _lives(each, namespace_of(claim), lister)]
    if len(kept) == len(reserved):
        return []
    left = {key: value for key, value in status.items() if key not in ("reservedFor", "allocation")}
    return status_change(claim, {**left, "reservedFor": kept, "allocation": status.get("allocation")} if kept else left)


def _lives(consumer: Object, namespace: str, lister: Lister) -> bool:
    kind = {"pods": kinds.POD, "podgroups": GROUP}.get(consumer.get("resource", ""))
    if kind is None:
        return True
    found = lister.get(kind, namespace, consumer["name"])
    return found is not None and uid_of(found) == consumer["uid"] and phase(found) not in ENDED


def _pod_touched(change: ObjectChange, lister: Lister) -> Iterable[ClaimSubject]:
    pod = change.object
    if not spec_of(pod).get("resourceClaims"):
        return
    if change.new is not None and phase(pod) not in ENDED:
        if _templated(pod):
            yield ClaimSubject(kinds.POD, *key_of(pod))
        return
    yield from _its_claims(pod)


def _group_touched(change: ObjectChange, lister: Lister) -> Iterable[ClaimSubject]:
    group = change.object
    if change.new is None:
        yield from _its_claims(group)
    elif _templated(group):
        yield ClaimSubject(GROUP, *key_of(group))
        for pod in lister.all(kinds.POD, namespace_of(group)):
            if group_of(pod) == name_of(group):
                yield ClaimSubject(kinds.POD, *key_of(pod))


def _its_claims(pod: Object) -> Iterable[ClaimSubject]:
    """The keys of the claims of a pod or group."""
    namespace = namespace_of(pod)
    made = {each["name"]: each.get("resourceClaimName") for each in status_of(pod).get("resourceClaimStatuses") or ()}
    for each in spec_of(pod).get("resourceClaims") or ():
        name = each.get("resourceClaimName") or made.get(each["name"])
        if name:
            yield ClaimSubject(kinds.DEVICE_CLAIM, namespace, name)


def _claim_touched(change: ObjectChange, lister: Lister) -> Iterable[ClaimSubject]:
    if change.new is not None and status_of(change.new).get("reservedFor"):
        yield ClaimSubject(kinds.DEVICE_CLAIM, *key_of(change.new))


def _waiting(change: ObjectChange, lister: Lister) -> Iterable[ClaimSubject]:
    """The keys of the pods and groups that named this template before it existed."""
    if change.old is None:
        name = name_of(change.object)
        for kind in (kinds.POD, GROUP):
            for subject in lister.all(kind, namespace_of(change.object)):
                if any(each["resourceClaimTemplateName"] == name for each in _templated(subject)):
                    yield ClaimSubject(kind, *key_of(subject))
