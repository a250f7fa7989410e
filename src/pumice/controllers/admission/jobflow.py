"""Rules for JobFlows: every step has a name of its own, depends on steps that exist, and not on itself by a detour."""

from __future__ import annotations

from collections.abc import Iterator

from pumice.api.errors import did_you_mean
from pumice.controllers.admission.dependencies import loop
from pumice.controllers.admission.problem import Problem, Settings, is_subdomain, one_of
from pumice.controllers.objects import Object, spec_of
from pumice.controllers.world import World


def validate(operation: str, new: Object | None, old: Object | None, world: World, settings: Settings) -> list[Problem]:
    assert new is not None
    spec = spec_of(new)
    problems = [
        *one_of(spec.get("jobRetainPolicy") or None, ("retain", "delete"), "spec.jobRetainPolicy"),
        *_flows(spec.get("flows") or []),
    ]
    graph = {flow.get("name", ""): (flow.get("dependsOn") or {}).get("targets") or [] for flow in spec.get("flows") or ()}
    circle = loop(graph)
    if not problems and circle:
        problems.append(Problem("spec.flows", f"{' > '.join(circle)} is a loop; let one of them depend on less"))
    return problems


def _flows(flows: list[Object]) -> Iterator[Problem]:
    names = [flow.get("name") or "" for flow in flows]
    if not flows:
        yield Problem("spec.flows", "a flow needs at least one step; name a JobTemplate")
    for index, flow in enumerate(flows):
        name = names[index]
        if not is_subdomain(name):
            yield Problem(f"spec.flows[{index}].name", f'"{name}" is not a name; write that of a JobTemplate')
        if name in names[:index]:
            yield Problem(f"spec.flows[{index}].name", f'"{name}" stands twice; a step appears once')
        for number, target in enumerate((flow.get("dependsOn") or {}).get("targets") or ()):
            if target not in names:
                field = f"spec.flows[{index}].dependsOn.targets[{number}]"
                yield Problem(field, f'"{target}" is not a step of this flow{did_you_mean(target, names)}')
