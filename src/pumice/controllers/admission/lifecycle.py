"""Rules for lifecycle policies: each answers events or one exit code with an action, and nothing is answered twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pumice.api.times import duration
from pumice.controllers.admission.problem import Problem
from pumice.controllers.objects import Object
from pumice.controllers.volcano.job.event import ANY, events_of

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
        events: list[str | int] = [*dict.fromkeys(events_of(policy))]
        answered = [*events, policy["exitCode"]] if policy.get("exitCode") is not None else events
        for cause in answered:
            if cause in seen:
                what = "event" if isinstance(cause, str) else "exitCode"
                yield Problem(where, f"duplicate {what} {cause}: an earlier policy answers it already; keep one of them")
            seen.add(cause)
    if ANY in seen and sum(isinstance(cause, str) for cause in seen) > 1:
        yield Problem(field, f"if there's {ANY} here, no other policy should be here: it answers every event; leave the others out")


def _one(policy: Object, where: str) -> Iterator[Problem]:
    events, exit_code = events_of(policy), policy.get("exitCode")
    if events and exit_code is not None:
        yield Problem(where, "must not specify event and exitCode simultaneously; write one of them")
    if not events and exit_code is None:
        yield Problem(where, "either event and exitCode should be specified; write one of them")
    if exit_code == 0:
        yield Problem(f"{where}.exitCode", "0 is not a valid error code, for it means success; write that of a failure")
    for event in events:
        if event not in EVENTS:
            yield Problem(f"{where}.event", f'invalid policy event "{event}"; write one of {", ".join(EVENTS)}')
    if policy.get("action") not in ACTIONS:
        yield Problem(f"{where}.action", f'invalid policy action "{policy.get("action") or ""}"; write one of {", ".join(ACTIONS)}')
    try:
        duration(policy.get("timeout") or "0")
    except ValueError as error:
        yield Problem(f"{where}.timeout", str(error))
