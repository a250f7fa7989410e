"""The volumes of a job: claims that it names must exist, claims that it describes are made, and all pods mount them.

A described claim is called after the job's uid and its place in the list, and the name is written into the job for its users to read.
"""

from __future__ import annotations

from collections.abc import Iterator

from pumice.api.json_objects import copied
from pumice.controllers import kinds
from pumice.controllers.naming import suffix
from pumice.controllers.objects import Object, controlled_by, name_of, namespace_of, spec_of, uid_of
from pumice.controllers.world import World
from pumice.controllers.writes import Create, Write, patch


def claims(job: Object) -> Iterator[tuple[str, Object]]:
    """(name of the claim, entry of the job)."""
    for index, volume in enumerate(spec_of(job).get("volumes") or ()):
        generated = f"{name_of(job)}-pvc-{suffix(uid_of(job), 'volume', index, length=12)}"
        yield volume.get("volumeClaimName") or generated, volume


def missing_claim(job: Object, world: World) -> str:
    """A claim that the job names, does not describe, and that does not exist; or nothing."""
    for name, volume in claims(job):
        if not volume.get("volumeClaim") and world.get(kinds.CLAIM, namespace_of(job), name) is None:
            return name
    return ""


def volume_writes(job: Object, status: Object, world: World) -> list[Write]:
    """Claims to make, and their names in the job; the status remembers all claims."""
    named = [{**volume, "volumeClaimName": name} for name, volume in claims(job)]
    writes: list[Write] = [patch(job, {"spec": {"volumes": named}})] if named != (spec_of(job).get("volumes") or []) else []
    for name, volume in claims(job):
        status["controlledResources"] = {**(status.get("controlledResources") or {}), f"volume-pvc-{name}": name}
        if volume.get("volumeClaim") and world.get(kinds.CLAIM, namespace_of(job), name) is None:
            claim = kinds.new(kinds.CLAIM, namespace_of(job), name, spec=copied(volume["volumeClaim"]))
            claim["metadata"]["ownerReferences"] = [controlled_by(job)]
            writes.append(Create(claim, job))
    return writes


def mount(pod: Object, job: Object) -> None:
    """Give every container of a pod the job's volumes; a claim that appears at two places is one volume."""
    mounted: set[str] = set()
    for claim, volume in claims(job):
        name = f"volume-{suffix(uid_of(job), claim, length=12)}"  # claims may have names that volumes may not
        if claim not in mounted:
            mounted.add(claim)
            pod["spec"].setdefault("volumes", []).append({"name": name, "persistentVolumeClaim": {"claimName": claim}})
        for container in pod["spec"].get("containers") or ():
            container.setdefault("volumeMounts", []).append({"name": name, "mountPath": volume["mountPath"]})
