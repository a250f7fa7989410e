"""Admission: the defaults that objects get when they are created, and the objects that are refused, with the reasons.

There is one file per kind (`task.py` has the rules for the tasks of Jobs), with `mutate(object, lister, settings)` and
`validate(operation, new, old, lister, settings)` if the kind has such rules; both are pure. An API server or a webhook calls the `mutate`
and `validate` of this file. A problem names the field, and says what was found and what to write.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from pumice.api import Object, annotations as keys, kinds
from pumice.api.json_objects import annotations_of
from pumice.controllers.admission import cronjob, hypernode, job, jobflow, pod, podgroup, queue
from pumice.controllers.admission.problem import CREATE, DELETE, UPDATE, Problem, Settings, readable
from pumice.controllers.controller import Lister

Mutate = Callable[[Object, Lister, Settings], Object]
Validate = Callable[[str, Object | None, Object | None, Lister, Settings], list[Problem]]


class Rules(Struct, frozen=True):
    """The rules for one kind. `mutate` is for creations, `validate` for the named operations."""

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


def mutate(operation: str, subject: Object, lister: Lister, settings: Settings = DEFAULTS) -> Object:
    """The object as it is to be stored; the given object is not changed."""
    rules = RULES.get(kinds.kind_of(subject))
    if rules is None or rules.mutate is None or operation != CREATE:
        return subject
    try:
        return rules.mutate(subject, lister, settings)
    except (AttributeError, KeyError, TypeError, ValueError):
        return subject  # the schema, which is checked after this, refuses values of wrong types and names them


def validate(operation: str, new: Object | None, old: Object | None, lister: Lister, settings: Settings = DEFAULTS) -> list[Problem]:
    """The problems of an operation; none if it is allowed. `new` is None for a deletion, `old` for a creation."""
    rules = RULES.get(kinds.kind_of(new or old or {}))
    if rules is None or rules.validate is None or operation not in rules.operations:
        return []
    if operation == UPDATE and new is not None and old is not None and _says(new) == _says(old):
        return []  # else an object that has become invalid since could not even lose its finalizers
    return list(readable("spec", _found(rules.validate, operation, new, old, lister, settings)))


def _found(rule: Validate, *about: Any) -> Iterator[Problem]:
    yield from rule(*about)


def _says(subject: Object) -> tuple[object, ...]:
    """The parts of an object that the rules look at."""
    notes = annotations_of(subject)
    return subject.get("spec"), subject.get("status"), *(notes.get(name) for name in (keys.HIERARCHY, keys.HIERARCHY_WEIGHTS))


__all__ = ["CREATE", "DEFAULTS", "DELETE", "RULES", "UPDATE", "Problem", "Rules", "Settings", "mutate", "validate"]
