"""Which jobs go first, and by which rule: the first order that distinguishes two jobs decides."""

from typing import Any

from pumice.answers.answer import Because, ChainLink, Headline
from pumice.answers.changes import Gone
from pumice.answers.subject import called
from pumice.answers.trial_cluster import Look
from pumice.api.plural import plural
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import INQUEUE, Job, Queue, Task

SHOWN = 3  #: how many of the jobs and pods that go first are named


def headline(look: Look, decisions: Decisions) -> Headline | None:
    """The headline for a subject that would start alone, but not in a cycle with all others. None if no other job or pod got anything."""
    jobs, tasks = _takers(look, decisions)
    names = (*(f"podgroup/{job.uid}" for job in jobs), *(f"pod/{task.key}" for task in tasks))
    if not names:
        return None
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    shown = ", ".join(called(look.session.cluster, name) for name in names[:SHOWN]) + more
    reason = (
        _before(look.session, jobs[0], look.waiter.job) if jobs and look.waiter.job is not None else _priority(tasks, look.waiter.tasks)
    )
    goes, leaves = plural(len(names), "goes", "go"), plural(len(names), "leaves", "leave")
    text = f"it would start if it were alone, but {shown} {goes} first{reason} and {leaves} too little room"
    return Headline(Because.OUTRANKED, text, remedy=(Gone(names),))


def _takers(look: Look, decisions: Decisions) -> tuple[list[Job], list[Task]]:
    """Other jobs, and pods without a job, that got a node, were promised one, or were admitted in this cycle."""
    own = look.waiter
    moved = [*(bind.task for bind in decisions.binds), *(place.task for place in decisions.pipelined)]
    moved += [task for task, node in decisions.nominations.items() if node]
    others = [task for task in dict.fromkeys(moved) if task not in own.members and (own.job is None or task.job is not own.job)]
    jobs = dict.fromkeys(task.job for task in others if task.job is not None and task.job.group is not None)
    let_in = (group.job for group in decisions.groups if group.phase == INQUEUE and group.job in look.session.phases)
    jobs |= dict.fromkeys(job for job in let_in if job is not own.job)
    return [job for job in jobs if job is not None], [task for task in others if task.job is None or task.job.group is None]


def _before(session: Session, first: Job, second: Job) -> str:
    """The order by which one job comes before another, in words; empty if none is known."""
    if first.queue is not None and second.queue is not None and first.queue is not second.queue:
        orders = (*session.plugins.flat["compare_queues"], *session.plugins.flat["queue_order"])
        past = next(filter(None, (_past(method, first.queue, second.queue) for method in orders)), "")
        return f" (queue {first.queue.name} is served before queue {second.queue.name}{past})"
    for method in session.plugins.flat["job_order"]:
        one, other = method(first), method(second)
        if one < other:
            plugin = method.__self__.name  # type: ignore[attr-defined]
            by = f"by plugin {plugin}{_past(method, first, second)}"
            return f" (priority {first.priority} above {second.priority})" if plugin == "priority" else f" ({by})"
        if one > other:
            return ""
    return (
        " (older)" if first.created < second.created else " (by name, as both are equally old)" if first.created == second.created else ""
    )


def _past(order: Any, first: Job | Queue, second: Job | Queue) -> str:
    """The past use by which a plugin orders the two, in words; empty if it does not order by past use."""
    plugin = order.__self__
    text = plugin.why_before(first, second) if hasattr(plugin, "why_before") else ""
    return f": {text}" if text else ""


def _priority(firsts: list[Task], seconds: list[Task]) -> str:
    if firsts and seconds and firsts[0].pod_priority > seconds[0].pod_priority:
        return f" (priority {firsts[0].pod_priority} above {seconds[0].pod_priority})"
    return ""


def link(found: Headline | None) -> ChainLink:
    question = "is it its turn?"
    return ChainLink(question, found is None, found.text if found is not None else "nobody who goes first is in its way")
