"""The status of every job at the end of a session: its phase, and why its pods still wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from pumice.scheduler.framework.decisions import Conclusion, GroupCondition, JobOutcome, Pipelined
from pumice.scheduler.framework.hook_answers import NOT_ENOUGH_RESOURCES, SCHEDULABLE, UNSCHEDULABLE
from pumice.scheduler.framework.job_classes import JobClass
from pumice.scheduler.framework.session_notes import LastTry, SessionNotes
from pumice.scheduler.model import COMPLETED, INQUEUE, PENDING, RUNNING, UNKNOWN, Job, Task, status

if TYPE_CHECKING:
    from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.unserved_pods import stranded

WAITS = status.PENDING | status.ALLOCATED | status.PIPELINED
NOT_LET_IN = ". Not let in: "  #: what follows in a text is not said by Volcano


def conclude(session: Session) -> Conclusion:
    """The statuses of all jobs that waited or may have changed. The jobs' phases are set, and the rest of the decisions is filled in."""
    cluster, decisions = session.cluster, session.decisions
    explained = {waiting.task.uid for waiting in session.refused}
    session.together(cluster.changed)
    groups = session.looked_at({**cluster.changed, **cluster.not_enqueued})
    outcomes = [_outcome(session, alike, explained) for alike in groups]
    for outcome in outcomes:
        phase = outcome.phase
        is_new = outcome.members[0].job.phase != phase  # for all members, for they are alike
        for member in outcome.members if is_new else outcome.members[:1]:
            session.set_phase(member.job, phase)
    decisions.again_at = min(session.gathering.close(), session.past_evictions.until)
    waits = {op.task.uid: op for op in session.undecided if op.task.status == status.PIPELINED and op.before != status.PIPELINED}
    decisions.pipelined += [Pipelined(op.task, op.task.node_name) for op in waits.values()]
    decisions.nominations |= {op.task: op.task.node_name for op in waits.values() if op.evicted}
    at_rest = session.at_rest()
    if at_rest.groups or any(alike.passed_over for alike in groups):
        unsaid = [outcome for outcome, alike in zip(outcomes, groups, strict=True) if alike.passed_over]
        outcomes = [outcome for outcome, alike in zip(outcomes, groups, strict=True) if not alike.passed_over]
        at_rest.groups += (outcome.members for outcome in unsaid)
        at_rest.pods += sum(len(outcome.members) * len(outcome.pods) for outcome in unsaid)
    return Conclusion(outcomes, session.refused, stranded(cluster, session.policy, session.now), at_rest)


def _outcome(session: Session, alike: JobClass, explained: Container[str]) -> JobOutcome:
    job = alike.first
    condition = session.conditions.get(job.uid) or _not_admitted(session, job)
    phase = phase_of(job, condition is not None and condition.type == UNSCHEDULABLE)
    outcome = JobOutcome(alike.members, phase, condition, job.allocated_hypernode, [], job.held_places)
    waits = [(number, task) for number, task in enumerate(job.tasks.values()) if task.status & WAITS]
    if not waits:
        return outcome
    held, is_held_back = session.past_evictions.why_held(job), session.holds_back(job)
    state = ""
    if session.observer.reads_reasons and not held:
        state = (session.states.get(job.uid) if session.policy.shortcuts else "") or fit_error(session, job)
    for number, task in waits:
        uid, is_pending = task.uid, task.status == status.PENDING
        if is_pending and held:
            outcome.pods.append((number, UNSCHEDULABLE, held))
            continue
        if is_pending and is_held_back and uid not in session.fit_errors:
            continue  # no node or queue refused it: it is only held back
        last = session.last_try.get(uid)
        if uid not in explained:
            reason = scheduling_reason(session, task, last, state) if session.observer.reads_reasons else (UNSCHEDULABLE, "")
            outcome.pods.append((number, *reason))
    return outcome


def phase_of(job: Job, unschedulable: bool) -> str:
    scheduled = completed = 0
    for bit, number in job.counts.items():
        if bit == status.RUNNING and unschedulable:
            return UNKNOWN
        if bit & (status.RUNNING | status.BOUND | status.FINISHED):
            scheduled += number
            completed += number if bit & status.FINISHED else 0
        elif bit == status.RELEASING:
            scheduled += sum(task.node_name != "" for task in job.tasks.values() if task.status == status.RELEASING)
    if scheduled >= job.min_member and (scheduled or _has_run_out(job)):
        return COMPLETED if scheduled == completed else RUNNING
    return INQUEUE if job.phase == INQUEUE else PENDING


def _has_run_out(job: Job) -> bool:
    """Whether a job without a minimum has run and has no task left."""
    return job.phase not in (PENDING, INQUEUE) and not job.count(status.VALID)


def not_ready(job: Job, found: int, why: str) -> GroupCondition:
    """The condition of a gang that is not ready. `found`: how many of its pods would have a place."""
    missing = job.min_member - (job.ready_count + found)
    return GroupCondition(UNSCHEDULABLE, NOT_ENOUGH_RESOURCES, f"{missing}/{len(job.tasks)} tasks in gang unschedulable: {why}")


def fit_error(session: SessionNotes, job: Job) -> str:
    """The state of a job in one text, with the error of the first of its tasks that found no node."""
    text = _counted(job.is_ready, job.min_member, tuple(job.by_status.items()))
    if job.pending:
        text += f"; Pending: {_pending(session, job)}"
    if gates := _gates(job):
        text += f". Held by scheduling gates: {_listing(Counter(gates))}"
    if job.uid in session.not_admitted:
        text += f"{NOT_LET_IN}{session.not_admitted[job.uid]}"
    errors = session.fit_errors
    refused = [job.tasks[uid] for uid in errors.keys() & job.tasks.keys()] if errors else ()
    origin = min(refused, key=lambda task: (task.created, task.uid), default=None)
    if origin is not None and not job.is_ready:
        text += f". Origin reason is {session.name_of(origin)}: {session.fit_errors[origin.uid]}"
    return text


@lru_cache(maxsize=4096)
def _counted(ready: bool, min_member: int, counts: tuple[tuple[int, int], ...]) -> str:
    """The beginning of that text. It is cached, as it is the same for most waiting jobs."""
    histogram = {status.NAMES[bit]: number for bit, number in counts if number} | {"minAvailable": min_member}
    return f"pod group is {'ready' if ready else 'not ready'}, {_listing(histogram)}"


def _pending(session: SessionNotes, job: Job) -> str:
    """How many Pending pods of the job would have a place if the whole gang had one, and how many would not."""
    tried = session.last_try.keys() & job.pending.keys() if session.last_try else ()
    placed = sum([session.last_try[uid].status == status.ALLOCATED for uid in tried])
    return _of_both(placed, len(job.pending) - placed)


@lru_cache(maxsize=4096)
def _of_both(placed: int, others: int) -> str:
    counts = {SCHEDULABLE: placed, UNSCHEDULABLE: others}
    return _listing({reason: count for reason, count in counts.items() if count})


def _gates(job: Job) -> list[str]:
    """The scheduling gates that hold pods of the job, once for each pod."""
    return [gate for task in job.pending.values() for gate in task.template.gates]


def _listing(histogram: Mapping[str, int]) -> str:
    return ", ".join(sorted(f"{number} {name}" for name, number in histogram.items()))


def scheduling_reason(session: SessionNotes, task: Task, last: LastTry | None, state: str) -> tuple[str, str]:
    """The reason and message of the pod's condition. `state` is the text about the state of its job."""
    placed, node = (task.status, task.node_name) if last is None else (last.status, last.node)
    if placed & (status.ALLOCATED | status.PIPELINED):
        assigned = f"Pod {task.namespace}/{session.name_of(task)} can possibly be assigned to {node}, once"
        if placed == status.ALLOCATED:
            return SCHEDULABLE, f"{assigned} minAvailable is satisfied"
        return UNSCHEDULABLE, f"{assigned} resource is released and minAvailable is satisfied"
    errors = session.fit_errors.get(task.uid)
    if errors is not None:
        return UNSCHEDULABLE, str(errors)
    headline = session.refused_by_queue.get(task.uid)
    return UNSCHEDULABLE, _joined(state, headline) if headline else state


@lru_cache(maxsize=1)
def _joined(state: str, headline: str) -> str:
    """Both texts, as one object for all pods of a job."""
    return f"{state}. {headline}"


def _not_admitted(session: Session, job: Job) -> GroupCondition | None:
    """The condition of a job that was not let in and has no pods yet, for which no plugin gives a condition; None for other jobs."""
    why = session.not_admitted.get(job.uid)
    return GroupCondition(UNSCHEDULABLE, NOT_ENOUGH_RESOURCES, why) if why and not job.tasks else None
