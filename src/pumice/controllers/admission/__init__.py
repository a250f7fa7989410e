"""Admission: what is filled in on objects when they are created, and what is refused, with the reason.

One file a kind, each with `mutate(object, world, settings)` and `validate(operation, new, old, world, settings)` as far as the
kind has them; both are pure. `admit` is what an API server or a webhook calls. A problem names the field, says what was found
and what to write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pumice.controllers import annotations as keys
from pumice.controllers import kinds
from pumice.controllers.admission import cronjob, hypernode, job, jobflow, pod, podgroup, queue
from pumice.controllers.admission.problem import CREATE, DELETE, UPDATE, Problem, Settings
from pumice.controllers.objects import Object, annotations_of
from pumice.controllers.world import World

Mutate = Callable[[Object, World, Settings], Object]
Validate = Callable[[str, Object | None, Object | None, World, Settings], list[Problem]]


class Rules(NamedTuple):
    """Of one kind. `mutate` is for creations; `validate` for the operations named."""

    mutate: Mutate | None
    validate: Validate | None
    operations: frozenset[str] = frozenset({CREATE, UPDATE})


RULES: Mapping[str, Rules] = {
    kinds.QUEUE: Rules(queue.mutate, queue.validate, frozenset({CREATE, UPDATE, DELETE})),
    kinds.POD_GROUP: Rules(podgroup.mutate, podgroup.validate, frozenset({CREATE})),
    kinds.POD: Rules(pod.mutate, pod.validate, frozenset({CREATE})),
    kinds.JOB: Rules(job.mutate, job.validate),
    kinds.HYPER_NODE: Rules(None, hypernode.validate),
    kinds.JOB_FLOW: Rules(None, jobflow.validate),
    kinds.CRON_JOB: Rules(cronjob.mutate, cronjob.validate),
}

DEFAULTS = Settings()


def mutate(operation: str, subject: Object, world: World, settings: Settings = DEFAULTS) -> Object:
    """The object as it is to be stored; the one given stays as it is."""
    rules = RULES.get(kinds.kind_of(subject))
    return rules.mutate(subject, world, settings) if rules and rules.mutate and operation == CREATE else subject


def validate(operation: str, new: Object | None, old: Object | None, world: World, settings: Settings = DEFAULTS) -> list[Problem]:
    """What is wrong; nothing if it may be done. `new` is None for a deletion, `old` for a creation."""
    rules = RULES.get(kinds.kind_of(new or old or {}))
    if rules is None or rules.validate is None or operation not in rules.operations:
        return []
    if operation == UPDATE and new is not None and old is not None and _says(new) == _says(old):
        return []  # or what has become wrong since could not even lose its finalizers
    return rules.validate(operation, new, old, world, settings)


def _says(subject: Object) -> tuple[object, ...]:
    """What the rules look at."""
    notes = annotations_of(subject)
    return subject.get("spec"), subject.get("status"), *(notes.get(name) for name in (keys.HIERARCHY, keys.HIERARCHY_WEIGHTS))


__all__ = ["CREATE", "DEFAULTS", "DELETE", "RULES", "UPDATE", "Problem", "Rules", "Settings", "mutate", "validate"]
