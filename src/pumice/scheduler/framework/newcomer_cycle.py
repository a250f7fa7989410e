"""The short way of newcomers: jobs of one pod with which nobody else waits are bound to their best nodes without a session.

Nobody is evicted, and no other job has a turn. What is left of a cycle is whether plugins let each of them start (`Plugin.welcomes`), their
order if there are several (`order_of_newcomer`), the best node by the evaluation that earlier sessions have left, and the phases of jobs
that have changed; where nobody waits at all, only these phases. If anything is not that plain, a session decides. Both decide the same
(`tests/properties/test_newcomers.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pumice.scheduler.engine.rules import PLAINLY
from pumice.scheduler.framework.decisions import GANG_READY, Bind, Conclusion, Decisions, JobOutcome
from pumice.scheduler.framework.job_classes import MEMORY as JOB_CLASSES, Member, by_age
from pumice.scheduler.framework.job_status import phase_of
from pumice.scheduler.framework.kept_evaluations import evaluation_left
from pumice.scheduler.framework.newcomer import Newcomer
from pumice.scheduler.framework.observer import Observer
from pumice.scheduler.framework.open_plugins import OpenPlugins
from pumice.scheduler.framework.past_evictions import PAST_EVICTIONS
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import Action, Policy
from pumice.scheduler.model import Cluster, Job

NO_MATTER = frozenset(["estimate"])  #: attributes that few jobs have, and that do not matter here
MOST = 32  #: newcomers at once: with more, a session costs little for each


def place_newcomers(cluster: Cluster, policy: Policy, now: float, observer: Observer) -> Decisions | None:
    """The decisions of a cycle that has only newcomers to place, which all find nodes, or nobody. Else None, and nothing has changed."""
    newcomers = _newcomers(cluster) if policy.places_newcomers and sees_no_session(observer) else None
    plugins = OpenPlugins.left(cluster, policy) if newcomers is not None else None
    if newcomers is None or plugins is None:
        return None
    if (others := plainly_changed(cluster)) is None:
        return None
    if len(newcomers) > 1 and not _put_in_order(newcomers, policy, plugins.everyone):
        return None
    let_in_at = now if policy.has_action("enqueue") else None
    for number, newcomer in enumerate(newcomers):
        row = _best_row(newcomer, policy, plugins.hosts)
        if row < 0:
            for placed in reversed(newcomers[:number]):
                placed.take_back()
            return None
        newcomer.place(row, let_in_at)
    for newcomer in newcomers:
        observer.turn(newcomer.task)
    decisions = Decisions([Bind(newcomer.task, newcomer.task.node_name, {}) for newcomer in newcomers])
    jobs = [newcomer.job for newcomer in newcomers]
    decisions.tell(Conclusion(outcomes_of(cluster, policy, [*by_age(jobs), *by_age(others)]), [], []))
    cluster.memory.pop(JOB_CLASSES, None)
    cluster.forget_changes()
    return decisions


def _put_in_order(newcomers: list[Newcomer], policy: Policy, plugins: Sequence[Plugin]) -> bool:
    """Put the newcomers in the order of their turns. Return whether it is known without a session."""
    if policy.placer.serves_by_queue and len({newcomer.job.queue for newcomer in newcomers}) > 1:
        return False
    givers = givers_of_order(policy, plugins)
    turns = {newcomer: turn_of(newcomer.job, policy.placer, givers) for newcomer in newcomers}
    if None in turns.values():
        return False
    newcomers.sort(key=turns.__getitem__)
    return True


def givers_of_order(policy: Policy, plugins: Sequence[Plugin]) -> list[Plugin]:
    """The plugins that decide whose turn is next, in their order."""
    by_kind = {type(plugin): plugin for plugin in plugins}
    return [by_kind[policy.choices[number].plugin] for tier in policy.takers.get("job_order", ()) for number in tier]


def turn_of(job: Job, placer: Action, givers: Sequence[Plugin]) -> Any:
    """The key of a job's turn among jobs of one pod; None if only a session knows it."""
    order = [giver.order_of_newcomer(job) for giver in givers]
    return None if None in order else (*order, *placer.turn_of_newcomer(job))


def _best_row(newcomer: Newcomer, policy: Policy, hosts: Sequence[Plugin]) -> int:
    """The row of the best node for a newcomer that all plugins welcome; -1 if there is none."""
    evaluation = evaluation_left(newcomer.cluster, policy, newcomer.task)
    if evaluation is None:
        return -1
    for host in hosts:
        if not host.welcomes(newcomer):
            return -1
    return evaluation.best_with_room()


def plainly_changed(cluster: Cluster) -> list[Job] | None:
    """The jobs that have changed and do not wait; None if the status of any is not plain."""
    others = []
    for job in cluster.changed.values():
        if job.uid not in cluster.waiting and job.queue is not None and job.queue.exists:
            if not job.tasks or not job.is_ready:
                return None
            others.append(job)
    return others


def sees_no_session(observer: Observer) -> bool:
    """Whether it makes no difference to the observer that there is no session."""
    kind = type(observer)
    is_silent = kind.begins is Observer.begins and kind.ends is Observer.ends
    return is_silent and observer.asking is PLAINLY and not observer.needs_full_cycles


def _newcomers(cluster: Cluster) -> list[Newcomer] | None:
    """The jobs that wait, if all of them are newcomers: none, a single one, or several that have just come."""
    waiting = cluster.waiting
    if cluster.without_job or cluster.memory.get(PAST_EVICTIONS) or not cluster.not_enqueued.keys() <= waiting.keys():
        return None
    if len(waiting) > 1 and (len(waiting) > MOST or not waiting.keys() <= cluster.changed.keys()):
        return None
    newcomers = []
    for job in waiting.values():
        if not is_newcomer(job):
            return None
        newcomers.append(Newcomer(cluster, job))
    return newcomers


def is_newcomer(job: Job) -> bool:
    if len(job.tasks) != 1 or job.min_member > 1 or not job.seldom.keys() <= NO_MATTER or job.queue is None or not job.queue.open:
        return False
    (task,) = job.tasks.values()
    template = task.template
    return template.needs_only_room and not (template.gates or template.best_effort or template.beyond or task.seldom)


def outcomes_of(cluster: Cluster, policy: Policy, jobs: list[Job]) -> list[JobOutcome]:
    """The statuses of these jobs, no pod of which waits. Their phases are set."""
    condition = GANG_READY if policy.has_plugin("gang") else None
    outcomes = []
    for job in jobs:
        phase = phase_of(job, unschedulable=False)
        if phase != job.phase:
            cluster.set_phase(job, phase)
        hypernode, places = (job.allocated_hypernode, job.held_places) if job.seldom else ("", "")
        outcomes.append(JobOutcome([Member.of(job)], phase, condition, hypernode, [], places))
    return outcomes
