"""The rules of Kubernetes' own groups of pods that the tables of types do not declare."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pumice.api import Object
from pumice.api.problems import qualified_name_fault
from pumice.cluster.apiserver.scheme.builtin_shapes import shape_of
from pumice.cluster.apiserver.validation.declared_rules import causes, internal
from pumice.cluster.apiserver.validation.field_rules import Causes, compact, invalid, missing, required, unsupported

if TYPE_CHECKING:
    from pumice.cluster.apiserver.scheme.kinds import ServedKind

GROUPS = ("podgroups.scheduling.k8s.io", "compositepodgroups.scheduling.k8s.io")
WORKLOADS = "workloads.scheduling.k8s.io"
MOST_LEVELS = 4  #: of templates: three of composite ones, and one of PodGroups
KINDS = frozenset({*GROUPS, WORKLOADS})
_STATUSES = ("False", "True", "Unknown")  #: of a condition
_LONGEST = {"reason": 1024, "message": 32768}
_REASON = re.compile("[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_OF_REASONS = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and "
    "must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or "
    f"'ReasonA:ReasonB', regex used for validation is '{_REASON.pattern}')"
)
_OF_JOBS = frozenset({"WorkloadWithJob"})  #: the field is left out before if this gate is off


def group_causes(kind: ServedKind, obj: Object, old: Object | None) -> Causes:
    """The causes for refusing a PodGroup, a CompositePodGroup or a Workload."""
    by_hand = _tree_causes(obj["spec"]) if kind.storage == WORKLOADS else [*_condition_causes(obj), *_claim_causes(obj)]
    return by_hand + causes(kind.shape, obj, old, "", kind.gates, "spec", "status")


def _condition_causes(group: Object) -> Causes:
    """The causes for refusing the conditions of a status."""
    found: Causes = []
    types: set[str] = set()
    for index, one in enumerate((group.get("status") or {}).get("conditions") or ()):
        place, type_, reason = f"status.conditions[{index}]", one.get("type") or "", one.get("reason") or ""
        if type_ in types:
            found.append((place, f"Duplicate value: {compact(type_)}"))
        types.add(type_)
        if not type_:
            found.append(required(f"{place}.type", "is required"))
        elif fault := qualified_name_fault(type_):
            found.append(invalid(f"{place}.type", type_, fault))
        found += unsupported(f"{place}.status", one["status"], _STATUSES) if one.get("status") else missing(place, one, "status")
        if (generation := one.get("observedGeneration") or 0) < 0:
            found.append(invalid(f"{place}.observedGeneration", generation, "must be greater than or equal to zero"))
        found += missing(place, one, "lastTransitionTime", "reason")
        if reason and not _REASON.fullmatch(reason):
            found.append(invalid(f"{place}.reason", reason, _OF_REASONS))
        for part, most in _LONGEST.items():
            if len((one.get(part) or "").encode()) > most:
                found.append((f"{place}.{part}", f"Too long: may not be more than {most} bytes"))
    return found


def _claim_causes(group: Object) -> Causes:
    claims = {claim.get("name") for claim in group["spec"].get("resourceClaims") or ()}
    stated = (group.get("status") or {}).get("resourceClaimStatuses") or ()
    text = "must match the name of an entry in `spec.resourceClaims`"
    return [
        invalid(f"status.resourceClaimStatuses[{index}].name", one.get("name", ""), text)
        for index, one in enumerate(stated)
        if one.get("name") not in claims
    ]


def job_scheduling_causes(spec: Object, before: Object | None) -> Causes:
    """The causes for refusing what a Job says of the scheduling of its pods."""
    shape = shape_of("batch.v1.JobSpec")
    return causes(shape, spec, before, "spec", _OF_JOBS, "scheduling") if "scheduling" in {*spec, *(before or ())} else []


def _templates(spec: Object) -> Iterator[Object]:
    """All templates in a Workload's spec or in a composite template, those of PodGroups and composite ones."""
    for template in spec.get("compositePodGroupTemplates") or ():
        yield template
        yield from _templates(template)
    yield from spec.get("podGroupTemplates") or ()


def _tree_causes(spec: Object) -> Causes:
    """The causes for refusing the templates of a Workload as a whole."""
    found = _repeated_names(spec, "spec", {one.get("name") for one in spec.get("podGroupTemplates") or ()})
    trees = spec.get("compositePodGroupTemplates") or ()
    shape = shape_of("scheduling.v1beta1.CompositePodGroupTemplate")
    for index, tree in enumerate(trees):
        if _levels(tree) >= MOST_LEVELS:
            children = [internal(shape, each) for each in tree.get("compositePodGroupTemplates") or ()]
            found.append(
                invalid(f"spec.compositePodGroupTemplates[{index}]", children, f"maximum template hierarchy depth is {MOST_LEVELS}")
            )
    if len({(one.get("priorityClassName") or "", one.get("priority")) for one in _templates(spec)}) > 1:
        several = "all priority and priorityClassName values must be identical, detected multiple values"
        found.append(("spec", f"Invalid value: null: {several if trees else 'detected multiple priority configurations'}"))
    return found + _childless(spec, "spec")


def _repeated_names(spec: Object, place: str, names: set[str | None]) -> Causes:
    """The causes for names of composite templates and below that are known already. Names within one list are a rule of that list."""
    found: Causes = []
    listed = list(enumerate(spec.get("compositePodGroupTemplates") or ()))
    found += _known(listed, f"{place}.compositePodGroupTemplates", names)
    for index, template in listed:
        inner = f"{place}.compositePodGroupTemplates[{index}]"
        found += _known(list(enumerate(template.get("podGroupTemplates") or ())), f"{inner}.podGroupTemplates", names)
        found += _repeated_names(template, inner, names)
    return found


def _known(listed: list[tuple[int, Object]], place: str, names: set[str | None]) -> Causes:
    found = [
        (f"{place}[{index}].name", f"Duplicate value: {compact(one.get('name', ''))}") for index, one in listed if one.get("name") in names
    ]
    names.update(one.get("name") for _, one in listed)
    return found


def _levels(template: Object) -> int:
    return 1 + max(map(_levels, template.get("compositePodGroupTemplates") or ()), default=0)


def _childless(spec: Object, place: str) -> Causes:
    found: Causes = []
    for index, template in enumerate(spec.get("compositePodGroupTemplates") or ()):
        inner = f"{place}.compositePodGroupTemplates[{index}]"
        if not template.get("podGroupTemplates") and not template.get("compositePodGroupTemplates"):
            text = "must have at least one child PodGroupTemplate or CompositePodGroupTemplate"
            found.append(invalid(inner, template.get("name", ""), text))
        found += _childless(template, inner)
    return found
