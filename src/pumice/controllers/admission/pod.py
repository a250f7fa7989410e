"""Rules for pods of our schedulers: valid disruption budgets in annotations, and the settings of resource groups filled in.

A resource group (from the admission ConfigMap) gives pods of some namespaces or with some annotations a node selector, tolerations, an
affinity or another scheduler; the first group that matches wins.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pumice.api import Object, annotations as key, namespace_of, spec_of
from pumice.api.json_objects import annotations_of, copied
from pumice.controllers.admission.problem import Problem, Settings
from pumice.controllers.controller import Lister

BUDGETS = (key.JDB_MIN_AVAILABLE, key.JDB_MAX_UNAVAILABLE)

_COUNT = re.compile(r"[1-9]\d*\Z")
_PERCENT = re.compile(r"[1-9]\d?%\Z")


def mutate(pod: Object, lister: Lister, settings: Settings) -> Object:
    group = next((each for each in settings.resource_groups if _matches(each, pod)), None)
    gated = settings.queue_gates and annotations_of(pod).get(key.QUEUE_GATE, "false") != "false" and _is_ours(pod, settings)
    if group is None and not gated:
        return pod
    result: Object = copied(pod)
    if group is not None:
        _join(result["spec"], group)
    gates = result["spec"].get("schedulingGates") or []
    if gated and all(gate.get("name") != key.QUEUE_GATE for gate in gates):
        result["spec"]["schedulingGates"] = [*gates, {"name": key.QUEUE_GATE}]
    return result


def _matches(group: Mapping[str, Any], pod: Object) -> bool:
    subject = group.get("object") or {}
    values = subject.get("value") or []
    if subject.get("key") == "namespace":
        return namespace_of(pod) in values
    notes = annotations_of(pod)
    if subject.get("key") == "annotation" and values:
        wanted = (value.partition(":") for value in values)
        return any(notes.get(name.strip()) == text.strip() for name, _, text in wanted)
    return notes.get(key.RESOURCE_GROUP) == group.get("resourceGroup")


def _join(spec: Object, group: Mapping[str, Any]) -> None:
    if group.get("labels"):
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **group["labels"]}
    if group.get("tolerations"):
        spec["tolerations"] = [*(spec.get("tolerations") or ()), *copied(group["tolerations"])]
    if group.get("affinity"):
        spec["affinity"] = copied(group["affinity"])
    if group.get("schedulerName"):
        spec["schedulerName"] = group["schedulerName"]


def validate(operation: str, new: Object | None, old: Object | None, lister: Lister, settings: Settings) -> list[Problem]:
    assert new is not None
    return list(_budgets(annotations_of(new))) if _is_ours(new, settings) else []


def _budgets(notes: Mapping[str, str]) -> Iterator[Problem]:
    stated = [name for name in BUDGETS if name in notes]
    for name in stated:
        if not _COUNT.match(notes[name]) and not _PERCENT.match(notes[name]):
            message = f"invalid value <{notes[name]}> for {name}, it must be a positive integer or a percentage which between 1% ~ 99%"
            yield Problem(f"metadata.annotations[{name}]", message)
    if len(stated) > 1:
        yield Problem(
            "metadata.annotations", f"not allow configure multiple annotations <{BUDGETS[0]}, {BUDGETS[1]}> at same time; keep one"
        )


def _is_ours(pod: Object, settings: Settings) -> bool:
    return spec_of(pod).get("schedulerName") in settings.scheduler_names
