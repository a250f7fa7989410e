"""Volumes and claims stay while they are used: the finalizer that each gets is removed once it is to go, and is used no more. A volume is
used while a claim is bound to it, a claim while a pod on a node has it among its volumes."""

from collections.abc import Hashable, Iterable, Iterator, Mapping

from pumice.api import Key, Object, kinds, name_of, namespace_of, spec_of, status_of
from pumice.api.annotations import CLAIM_PROTECTION, VOLUME_PROTECTION
from pumice.api.json_objects import controller_of, finalizers_of, terminating
from pumice.controllers.controller import NOTHING, Among, KeysOf, Lister, ObjectChange, Result, itself, result
from pumice.controllers.writes import without_finalizer


class VolumeProtection:
    name = "pv-protection"
    watches: Mapping[str, KeysOf] = {kinds.VOLUME: itself}

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, Key)
        volume = lister.get(kinds.VOLUME, *key)
        if volume is None or not terminating(volume) or status_of(volume).get("phase") == "Bound":
            return NOTHING
        return result(without_finalizer(volume, VOLUME_PROTECTION))


class ClaimProtection:
    name = "pvc-protection"

    def __init__(self) -> None:
        self.watches: Mapping[str, KeysOf] = {kinds.CLAIM: itself, kinds.POD: Among(kinds.CLAIM, _claims_let_go)}

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, Key)
        claim = lister.get(kinds.CLAIM, *key)
        if claim is None or not terminating(claim) or CLAIM_PROTECTION not in finalizers_of(claim):
            return NOTHING
        if any(_uses(pod, claim) for pod in lister.all(kinds.POD, key.namespace)):
            return NOTHING
        return result(without_finalizer(claim, CLAIM_PROTECTION))


def _claims_let_go(change: ObjectChange, lister: Lister) -> Iterable[Key]:
    """The claims of a pod that is gone, or whose containers have ended; other pods hold up their claims, and change nothing."""
    if change.new is None or _is_over(change.new):
        yield from (Key(namespace_of(change.object), name) for name, _ in _claims_of(change.object))


def _is_over(pod: Object) -> bool:
    return terminating(pod) and pod["metadata"].get("deletionGracePeriodSeconds") == 0


def _claims_of(pod: Object) -> Iterator[tuple[str, bool]]:
    """The names of the claims among a pod's volumes, each with whether it is made for the pod."""
    for volume in spec_of(pod).get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield volume["persistentVolumeClaim"].get("claimName", ""), False
        elif "ephemeral" in volume:
            yield f"{name_of(pod)}-{volume['name']}", True


def _uses(pod: Object, claim: Object) -> bool:
    """A pod without a node uses nothing yet: no kubelet starts a pod whose claim is to go. A claim that was made for a pod lasts until the
    pod's containers have ended, else each of the two could wait for the other."""
    if not spec_of(pod).get("nodeName"):
        return False
    owner = controller_of(claim) or {}
    is_own = owner.get("uid") == pod["metadata"]["uid"] and not _is_over(pod)
    return any(name == name_of(claim) and (is_own or not is_made) for name, is_made in _claims_of(pod))
