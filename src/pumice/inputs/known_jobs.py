"""Volcano's Jobs, which a scheduler itself does not read: answers look up what a job's controller will make."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pumice.api import Object, name_of, namespace_of
from pumice.api.json_objects import field
from pumice.api.kinds import JOB, kind_of
from pumice.api.manifests import Manifest
from pumice.scheduler.model import Cluster, Job

MEMORY = "jobs"  #: its key in the cluster's memory

FindJob = Callable[[str, str], Object | None]  #: by namespace and name


def know_jobs(cluster: Cluster, find: FindJob) -> None:
    cluster.memory[MEMORY] = find


def jobs_among(workloads: Iterable[Manifest]) -> FindJob:
    known = {(namespace_of(each.obj), name_of(each.obj)): each.obj for each in workloads if kind_of(each.obj) == JOB}
    return lambda namespace, name: known.get((namespace, name))


def phase_of(cluster: Cluster, namespace: str, name: str) -> str:
    """The phase of a Volcano Job; empty if the Job is not known."""
    find: FindJob | None = cluster.memory.get(MEMORY)
    found = find(namespace, name) if find is not None else None
    return str(field(found, "status.state.phase") or "Pending") if found is not None else ""


def owner_of(cluster: Cluster, job: Job) -> Object | None:
    """The Volcano Job that a PodGroup belongs to, if it is known."""
    owner = job.group.metadata.controller if job.group is not None else None
    find: FindJob | None = cluster.memory.get(MEMORY)
    if owner is None or find is None or owner.kind != "Job" or not owner.api_version.startswith("batch.volcano.sh/"):
        return None
    return find(job.namespace, owner.name)
