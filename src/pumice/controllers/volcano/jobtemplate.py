"""JobTemplates: the status of each lists the jobs that were made from it."""

from collections.abc import Hashable, Iterable

from pumice.api import Key, annotations as key_names, kinds, name_of, namespace_of, status_of
from pumice.api.json_objects import annotations_of, copied
from pumice.controllers.controller import NOTHING, Lister, ObjectChange, Result, itself, result
from pumice.controllers.writes import status_change


class JobTemplates:
    """Lists in a template's status the jobs that were made from it."""

    name = "jobtemplate"

    def __init__(self) -> None:
        self.watches = {kinds.JOB_TEMPLATE: itself, kinds.JOB: _template_of}

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, Key)
        template = lister.get(kinds.JOB_TEMPLATE, *key)
        if template is None:
            return NOTHING
        origin = f"{key.namespace}.{key.name}"
        jobs = lister.all(kinds.JOB, key.namespace)
        names = [name_of(job) for job in jobs if annotations_of(job).get(key_names.CREATED_BY_TEMPLATE) == origin]
        return result(status_change(template, {**copied(status_of(template)), "jobDependsOnList": names or None}))


def _template_of(change: ObjectChange, lister: Lister) -> Iterable[Key]:
    origin = annotations_of(change.object).get(key_names.CREATED_BY_TEMPLATE, "")
    if origin and (change.old is None or change.new is None):
        yield Key(namespace_of(change.object), origin.partition(".")[2])
