"""The volumes of a job: claims that the job names must exist, claims that it describes are made, and all pods mount them.

A described claim gets a name from the job's uid and its place in the list. The name is written into the job, where users see it.
"""

from collections.abc import Iterator

from pumice.api import Object, kinds, name_of, namespace_of, spec_of, uid_of
from pumice.api.json_objects import controlled_by, copied, suffix
from pumice.controllers.controller import Lister
from pumice.controllers.writes import Create, Write, patch


def claims(job: Object) -> Iterator[tuple[str, Object]]:
    """The volumes of a job, as (name of the claim, entry of the job)."""
    for index, volume in enumerate(spec_of(job).get("volumes") or ()):
        generated = f"{name_of(job)}-pvc-{suffix(uid_of(job), 'volume', index, length=12)}"
        yield volume.get("volumeClaimName") or generated, volume


def missing_claim(job: Object, lister: Lister) -> str:
    """The name of a claim that the job names but does not describe, and that does not exist; empty if there is none."""
    for name, volume in claims(job):
        if not volume.get("volumeClaim") and lister.get(kinds.CLAIM, namespace_of(job), name) is None:
            return name
    return ""


def volume_writes(job: Object, status: Object, lister: Lister) -> list[Write]:
    """The writes that create described claims and put their names into the job. All claims are noted in `status`."""
    named = [{**volume, "volumeClaimName": name} for name, volume in claims(job)]
    writes: list[Write] = [patch(job, {"spec": {"volumes": named}})] if named != (spec_of(job).get("volumes") or []) else []
    for name, volume in claims(job):
        status["controlledResources"] = {**(status.get("controlledResources") or {}), f"volume-pvc-{name}": name}
        if volume.get("volumeClaim") and lister.get(kinds.CLAIM, namespace_of(job), name) is None:
            claim = kinds.new(kinds.CLAIM, namespace_of(job), name, spec=copied(volume["volumeClaim"]))
            claim["metadata"]["ownerReferences"] = [controlled_by(job)]
            writes.append(Create(claim, job))
    return writes


def mount(pod: Object, job: Object) -> None:
    """Mount the job's volumes in every container of a pod; a claim that is mounted at two paths is one volume."""
    mounted: set[str] = set()
    for claim, volume in claims(job):
        name = f"volume-{suffix(uid_of(job), claim, length=12)}"  # not every name of a claim may be the name of a volume
        if claim not in mounted:
            mounted.add(claim)
            pod["spec"].setdefault("volumes", []).append({"name": name, "persistentVolumeClaim": {"claimName": claim}})
        for container in pod["spec"].get("containers") or ():
            container.setdefault("volumeMounts", []).append({"name": name, "mountPath": volume["mountPath"]})
