"""The short way of a newcomer: a job of one pod that waits alone is bound to its best node without a session.

Nobody competes with it, so that no order counts; nobody is evicted; no other job has a turn. What is left of a cycle is whether plugins let
it start (`Plugin.welcomes`), the best node by the evaluation that earlier sessions have left, and the phases of jobs that have changed. If
anything is not that plain, a session decides. Both decide the same (`tests/properties/test_newcomers.py`).
"""

from __future__ import annotations

from pumice.scheduler.engine.rules import PLAINLY
from pumice.scheduler.framework.decisions import GANG_READY, Bind, Conclusion, Decisions, JobOutcome
from pumice.scheduler.framework.job_classes import MEMORY as JOB_CLASSES, Member, age
from pumice.scheduler.framework.job_status import phase_of
from pumice.scheduler.framework.kept_evaluations import evaluation_left
from pumice.scheduler.framework.newcomer import Newcomer
from pumice.scheduler.framework.observer import Observer
from pumice.scheduler.framework.open_plugins import OpenPlugins
from pumice.scheduler.framework.past_evictions import PAST_EVICTIONS
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import INQUEUE, Cluster, Job, status

NO_MATTER = frozenset(["estimate"])  #: attributes that few jobs have, and that do not matter here


def place_newcomer(cluster: Cluster, policy: Policy, now: float, observer: Observer) -> Decisions | None:
    """The decisions of a cycle that has only a newcomer to place, which finds a node. Else None, and nothing has changed."""
    newcomer = _newcomer(cluster) if policy.places_newcomers and _sees_no_session(observer) else None
    plugins = OpenPlugins.left(cluster, policy) if newcomer is not None else None
    if newcomer is None or plugins is None:
        return None
    job, task = newcomer.job, newcomer.task
    others = [each for each in cluster.changed.values() if each is not job and each.queue is not None and each.queue.exists]
    if not all(each.tasks and each.is_ready for each in others):
        return None
    cluster.refresh_sums()
    evaluation = evaluation_left(cluster, policy, task)
    if evaluation is None or not all(plugin.welcomes(newcomer) for plugin in plugins):
        return None
    row = evaluation.best_with_room()
    if row < 0:
        return None
    observer.turn(task)
    if job.is_pending:
        if job.waiting_since is None and policy.has_action("enqueue"):
            job.waiting_since = now
        cluster.set_phase(job, INQUEUE)
    cluster.move(task, status.ALLOCATED, row)
    cluster.decide(task)
    decisions = Decisions([Bind(task, task.node_name, {})])
    decisions.tell(_conclusion(cluster, policy, [job, *sorted(others, key=age)]))
    cluster.memory.pop(JOB_CLASSES, None)
    cluster.forget_changes()
    return decisions


def _sees_no_session(observer: Observer) -> bool:
    """Whether it makes no difference to the observer that there is no session."""
    kind = type(observer)
    is_silent = kind.begins is Observer.begins and kind.ends is Observer.ends
    return is_silent and observer.asking is PLAINLY and not observer.needs_full_cycles


def _newcomer(cluster: Cluster) -> Newcomer | None:
    """The only job that waits, if it is a newcomer."""
    if len(cluster.waiting) != 1 or cluster.without_job or cluster.memory.get(PAST_EVICTIONS):
        return None
    (job,) = cluster.waiting.values()
    if len(job.tasks) != 1 or job.min_member > 1 or not job.seldom.keys() <= NO_MATTER or not cluster.not_enqueued.keys() <= {job.uid}:
        return None
    if job.queue is None or not job.queue.open:
        return None
    newcomer = Newcomer(cluster, job)
    template = newcomer.task.template
    is_plain = template.needs_only_room and not (template.gates or template.best_effort or template.beyond or newcomer.task.seldom)
    return newcomer if is_plain else None


def _conclusion(cluster: Cluster, policy: Policy, jobs: list[Job]) -> Conclusion:
    """The status of these jobs, no pod of which waits. Their phases are set."""
    condition = GANG_READY if policy.has_plugin("gang") else None
    outcomes = []
    for job in jobs:
        phase = phase_of(job, unschedulable=False)
        cluster.set_phase(job, phase)
        outcomes.append(JobOutcome([Member.of(job)], phase, condition, job.allocated_hypernode, [], job.held_places))
    return Conclusion(outcomes, [], [])
