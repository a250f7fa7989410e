"""Pods of a gang that are missing: why its minimum is not there; and whether it is there with some of the pods."""

from collections import Counter

from pumice.answers.answer import Because, Headline
from pumice.answers.pod_changes import MorePods
from pumice.answers.pods_to_come import is_promised
from pumice.answers.request_changes import FewerPods
from pumice.api.plural import counted
from pumice.scheduler.model import Job, Task, status


def pods_there(job: Job) -> str:
    there = counted(job.valid_count, "pod")
    there = there if job.min_member < 2 else f"{there}, of which {job.min_member} must start together"
    promised = sum(map(is_promised, job.tasks.values()))
    return f"{there}; its controller is still to create {promised} of them" if promised else there


def may_start_with(job: Job, tasks: list[Task]) -> bool:
    """Whether the job may start if of its waiting pods these find a node, and no others."""
    if not tasks or job.ready_count + len(tasks) < job.min_member:
        return False
    roles = Counter(task.role for task in tasks) + Counter(job.allocated_by_role)
    return job.min_member < job.role_minimum_total or all(roles[role] >= least for role, least in job.role_minimum.items())


def never_made(job: Job, held: dict[str, list[str]]) -> Headline:
    """The headline for a gang that waits for pods which wait for the gang."""
    needed, there = job.min_member, job.valid_count
    waits = "; ".join(f"task {name} gets no pods until {', '.join(others)} runs" for name, others in held.items())
    text = f"it needs {counted(needed, 'pod')} to start, and has {there} ({needed - there} short): {waits}, as its dependsOn says"
    remedy = (FewerPods(job.uid, there),) if there else ()
    return Headline(Because.NO_PODS, text, str(needed), str(there), str(needed - there), remedy)


def too_few(job: Job, message: str) -> Headline:
    """The headline for a gang of which pods are missing: of one role, or in total."""
    like = next(iter(job.pending.values()), None) or next(iter(job.tasks.values()))
    valid = Counter(task.role for task in job.tasks.values() if task.status & status.VALID)
    short = {role: least - valid[role] for role, least in job.role_minimum.items() if least > valid[role]}
    if short and job.min_member >= job.role_minimum_total:
        role, count = next(iter(short.items()))
        like = next((task for task in job.tasks.values() if task.role == role), like)
        text = f"it needs {counted(job.role_minimum[role], 'pod')} of role {role} to start, and has {valid[role]} ({count} short)"
        return Headline(
            Because.NO_PODS, text, str(job.role_minimum[role]), str(valid[role]), str(count), (MorePods(like.key, count, role),)
        )
    count = job.min_member - job.valid_count
    if count <= 0:
        return Headline(Because.NO_PODS, message)
    text = f"it needs {counted(job.min_member, 'pod')} to start, and has {job.valid_count} ({count} short)"
    return Headline(Because.NO_PODS, text, str(job.min_member), str(job.valid_count), str(count), (MorePods(like.key, count),))


def sub_group_too_small(job: Job) -> Headline | None:
    """The headline if each sub-group that waits has fewer pods than must start together; else None."""
    short = {part: -part.ready_margin - len(part.pending) for part in job.subjobs if part.pending}
    if min(short.values(), default=0) <= 0:
        return None
    part, count = next(iter(short.items()))
    has = part.min_member - count
    text = f"its sub-group {part.policy} needs {counted(part.min_member, 'pod')} to start, and has {has} ({count} short)"
    return Headline(Because.NO_PODS, text, str(part.min_member), str(has), str(count), (MorePods(part.pending[0].key, count),))
