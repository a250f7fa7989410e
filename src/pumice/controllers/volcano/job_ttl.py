"""Finished jobs with a time to live: a job is deleted, with its dependents, when the time is up.

For Volcano's Jobs (the time counts from their last transition) or Kubernetes' Jobs (from their end); in other clusters, Kubernetes' own
controllers delete the latter.
"""

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from pumice.api import Object, instant, key_of, kinds, spec_of
from pumice.api.json_objects import condition, field, terminating
from pumice.api.kinds import kind_of
from pumice.controllers.controller import NOTHING, Lister, ObjectChange, Result, result
from pumice.controllers.volcano.job import spec
from pumice.controllers.volcano.job.state import FINISHED
from pumice.controllers.writes import delete


class Finished(NamedTuple):
    """The key of a job, Volcano's or Kubernetes'."""

    kind: str
    namespace: str
    name: str


class JobTtl:
    """Deletes finished jobs by their `ttlSecondsAfterFinished`."""

    name = "job-ttl"

    def __init__(self, kind: str = kinds.JOB) -> None:
        self.watches = {kind: _with_ttl}

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, Finished)
        job = lister.get(*key)
        if job is None or terminating(job):
            return NOTHING
        ttl_s, ended_at = spec_of(job).get("ttlSecondsAfterFinished"), _ended_at(job)
        if ttl_s is None or ended_at is None:
            return NOTHING
        due = ended_at + float(ttl_s)
        return result([], [(due, key)]) if now < due else result([delete(job, propagation="Foreground")])


def _ended_at(job: Object) -> float | None:
    if kind_of(job) == kinds.JOB:
        stamp = field(job, "status.state.lastTransitionTime") if spec.phase_of(job) in FINISHED else None
    else:
        ends = [condition(job, type_) for type_ in ("Complete", "Failed")]
        stamp = next((end.get("lastTransitionTime") for end in ends if end and end.get("status") == "True"), None)
    return instant(stamp) if stamp else None


def _with_ttl(change: ObjectChange, lister: Lister) -> Iterable[Finished]:
    if change.new is not None and spec_of(change.new).get("ttlSecondsAfterFinished") is not None:
        yield Finished(kind_of(change.new), *key_of(change.new))
