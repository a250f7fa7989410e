"""Rules for JobFlows: every step is named after a JobTemplate, depends only on steps that exist, and not indirectly on itself.

A step that is listed twice is one step, as in Volcano; a flow without steps is allowed, and waits for steps.
"""

from collections.abc import Iterator

from pumice.api import Object, spec_of
from pumice.api.dns_names import is_subdomain
from pumice.controllers.admission.problem import KnownNames, Problem, Settings, loop, one_of
from pumice.controllers.controller import Lister

NOT_A_DAG = "jobflow Flow is not DAG"


def validate(operation: str, new: Object | None, old: Object | None, lister: Lister, settings: Settings) -> list[Problem]:
    assert new is not None
    spec = spec_of(new)
    problems = [
        *one_of(spec.get("jobRetainPolicy") or None, ("retain", "delete"), "spec.jobRetainPolicy"),
        *_flows(spec.get("flows") or []),
    ]
    graph: dict[str, list[str]] = {}
    for flow in spec.get("flows") or ():
        graph.setdefault(flow.get("name", ""), []).extend((flow.get("dependsOn") or {}).get("targets") or ())
    circle = loop(graph)
    if not problems and circle:
        problems.append(Problem("spec.flows", f"{NOT_A_DAG}: {' > '.join(circle)} is a loop; let one of them depend on less"))
    return problems


def _flows(flows: list[Object]) -> Iterator[Problem]:
    known = KnownNames([flow.get("name") or "" for flow in flows])
    for index, flow in enumerate(flows):
        name = flow.get("name") or ""
        if not is_subdomain(name):
            yield Problem(f"spec.flows[{index}].name", f'"{name}" is not a name; write that of a JobTemplate')
        for number, target in enumerate((flow.get("dependsOn") or {}).get("targets") or ()):
            if target not in known:
                field = f"spec.flows[{index}].dependsOn.targets[{number}]"
                message = f'vertex is not defined: {target}: "{target}" is not a step of this flow{known.hint(target)}'
                yield Problem(field, f"{NOT_A_DAG}: {message}")
