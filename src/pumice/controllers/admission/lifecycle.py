"""Rules for lifecycle policies: each answers events or one exit code with an action, and nothing is answered twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pumice.api.times import duration
from pumice.controllers.admission.problem import Problem, one_of
from pumice.controllers.job.request import ANY, events_of
from pumice.controllers.objects import Object

EVENTS = (ANY, "PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted", "TaskFailed", "JobUpdated")
ACTIONS = (
    "AbortJob",
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
)


def problems(policies: Sequence[Object], field: str) -> Iterator[Problem]:
    seen: set[str | int] = set()
    for index, policy in enumerate(policies):
        where = f"{field}[{index}]"
        yield from _one(policy, where)
        answered: list[str | int] = [*events_of(policy), *([policy["exitCode"]] if policy.get("exitCode") is not None else [])]
        for cause in answered:
            if cause in seen:
                yield Problem(where, f"{cause} is answered by an earlier policy already; keep one of them")
            seen.add(cause)
    if ANY in seen and sum(isinstance(cause, str) for cause in seen) > 1:
        yield Problem(field, f'"{ANY}" answers every event; leave the other events out')


def _one(policy: Object, where: str) -> Iterator[Problem]:
    events, exit_code = events_of(policy), policy.get("exitCode")
    if events and exit_code is not None:
        yield Problem(where, "both an event and an exitCode given; write one of them")
    if not events and exit_code is None:
        yield Problem(where, "neither an event nor an exitCode given; write one of them")
    if exit_code == 0:
        yield Problem(f"{where}.exitCode", "0 means success; write the code of a failure")
    for event in events:
        yield from one_of(event, EVENTS, f"{where}.event")
    yield from one_of(policy.get("action") or "", ACTIONS, f"{where}.action")
    try:
        duration(policy.get("timeout") or "0")
    except ValueError as error:
        yield Problem(f"{where}.timeout", str(error))
