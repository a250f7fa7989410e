"""The pods that a Job makes."""

from __future__ import annotations

from pumice.api.annotations import COMPLETION_INDEX, IGNORED_FAILURES, INDEX_FAILURES
from pumice.controllers.objects import Object, name_of, spec_of, uid_of
from pumice.controllers.workloads.job_tally import FIRST, Attempts, by_index
from pumice.controllers.workloads.pods import free_names, from_template
from pumice.controllers.world import World


def plain_pods(job: Object, count: int, world: World) -> list[Object]:
    return [from_template(job, spec_of(job).get("template") or {}, name, **_labels(job)) for name in free_names(job, count, world)]


def indexed_pod(job: Object, index: int, attempts: Attempts | None, world: World) -> Object:
    name = next(free_names(job, 1, world, f"{name_of(job)}-{index}"))
    pod = from_template(job, spec_of(job).get("template") or {}, name, **_labels(job), **{COMPLETION_INDEX: str(index)})
    notes = pod["metadata"].setdefault("annotations", {})
    notes[COMPLETION_INDEX] = str(index)
    if by_index(job):
        counted, ignored, _ = attempts or FIRST
        notes[INDEX_FAILURES] = str(counted)
        if ignored:
            notes[IGNORED_FAILURES] = str(ignored)
    pod["spec"].setdefault("hostname", f"{name_of(job)}-{index}")
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{COMPLETION_INDEX}']"}}}
    for container in (*(pod["spec"].get("initContainers") or ()), *(pod["spec"].get("containers") or ())):
        container.setdefault("env", []).append(dict(variable))
    return pod


def _labels(job: Object) -> dict[str, str]:
    names = {"controller-uid": uid_of(job), "job-name": name_of(job)}
    return {**names, **{f"batch.kubernetes.io/{name}": value for name, value in names.items()}}
