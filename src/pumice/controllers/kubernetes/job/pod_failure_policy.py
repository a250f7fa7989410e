"""The podFailurePolicy of a Job: which failures of pods count, and which end the Job or an index at once."""

from typing import NamedTuple

from pumice.api import Object, name_of, namespace_of, spec_of, status_of
from pumice.api.json_objects import condition

FAIL_JOB, FAIL_INDEX, IGNORE, COUNT = "FailJob", "FailIndex", "Ignore", "Count"


class Judged(NamedTuple):
    action: str
    because: str = ""  #: the reason, in Kubernetes' words


def judged(job: Object, pod: Object) -> Judged:
    """The action for a failed pod, by the first rule of the podFailurePolicy that matches; `COUNT` if none matches."""
    whose = f"{namespace_of(pod)}/{name_of(pod)}"
    for number, rule in enumerate((spec_of(job).get("podFailurePolicy") or {}).get("rules") or ()):
        met = _exited(rule["onExitCodes"], pod, whose) if rule.get("onExitCodes") else _has_condition(rule, pod, whose)
        if met:
            return Judged(rule["action"], f"{met} matching {rule['action']} rule at index {number}")
    return Judged(COUNT)


def _exited(wanted: Object, pod: Object, whose: str) -> str:
    statuses = [*(status_of(pod).get("containerStatuses") or ()), *(status_of(pod).get("initContainerStatuses") or ())]
    for each in statuses:
        code = ((each.get("state") or {}).get("terminated") or {}).get("exitCode")
        if not code or wanted.get("containerName") not in (None, each["name"]):
            continue
        if (code in (wanted.get("values") or ())) == (wanted.get("operator") == "In"):
            return f"Container {each['name']} for pod {whose} failed with exit code {code}"
    return ""


def _has_condition(rule: Object, pod: Object, whose: str) -> str:
    for pattern in rule.get("onPodConditions") or ():
        found = condition(pod, pattern["type"])
        if found is not None and found.get("status") == (pattern.get("status") or "True"):
            return f"Pod {whose} has condition {pattern['type']}"
    return ""
