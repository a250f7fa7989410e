"""The volumes of a job: claims that it names must exist, claims that it describes are made, and all pods mount them.

A described claim is called after the job's uid and its place in the list, so nobody has to write the name down.
"""

from __future__ import annotations

from collections.abc import Iterator

from pumice.controllers import kinds
from pumice.controllers.naming import suffix
from pumice.controllers.objects import Object, controlled_by, copied, name_of, namespace_of, spec_of, uid_of
from pumice.controllers.world import World
from pumice.controllers.writes import Create, Write


def claims(job: Object) -> Iterator[tuple[str, Object]]:
    """(name of the claim, entry of the job)."""
    for index, volume in enumerate(spec_of(job).get("volumes") or ()):
        generated = f"{name_of(job)}-volume-{suffix(uid_of(job), 'volume', index)}"
        yield volume.get("volumeClaimName") or generated, volume


def missing_claim(job: Object, world: World) -> str:
    """A claim that the job names, does not describe, and that does not exist; or nothing."""
    for name, volume in claims(job):
        if not volume.get("volumeClaim") and world.get(kinds.CLAIM, namespace_of(job), name) is None:
            return name
    return ""


def volume_writes(job: Object, status: Object, world: World) -> list[Write]:
    """Claims to make; the status remembers them all."""
    writes: list[Write] = []
    for name, volume in claims(job):
        if not volume.get("volumeClaim"):
            continue
        status["controlledResources"] = {**(status.get("controlledResources") or {}), f"volume-pvc-{name}": name}
        if world.get(kinds.CLAIM, namespace_of(job), name) is None:
            claim = kinds.new(kinds.CLAIM, namespace_of(job), name, spec=copied(volume["volumeClaim"]))
            claim["metadata"]["ownerReferences"] = [controlled_by(job)]
            writes.append(Create(claim))
    return writes


def mount(pod: Object, job: Object) -> None:
    """Give every container of a pod the job's volumes."""
    for name, volume in claims(job):
        pod["spec"].setdefault("volumes", []).append({"name": name, "persistentVolumeClaim": {"claimName": name}})
        for container in pod["spec"].get("containers") or ():
            container.setdefault("volumeMounts", []).append({"name": name, "mountPath": volume["mountPath"]})
