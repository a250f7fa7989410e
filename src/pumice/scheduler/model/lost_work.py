"""What an eviction costs its victim: the work since its last checkpoint. It makes one every `pumice.io/checkpoint-every` of its PodGroup;
without that annotation none."""

from __future__ import annotations

from pumice.api.annotations import CHECKPOINT
from pumice.api.times import duration
from pumice.scheduler.model.resources import Dimensions
from pumice.scheduler.model.task import Task


def ran_s(task: Task, now: float) -> float:
    since = task.started if task.started is not None else task.placed_at
    return 0.0 if since is None else max(0.0, now - since)


def at_risk_s(task: Task, now: float) -> float:
    """Seconds of work that would have to be done again."""
    every = seconds(task.job.annotations.get(CHECKPOINT, "")) if task.job is not None else 0.0
    return ran_s(task, now) % every if every > 0 else ran_s(task, now)


def gpus(task: Task, dimensions: Dimensions) -> float:
    return sum(float(amount) for column, amount in task.template.needs if dimensions.names[column].endswith("/gpu")) / 1000


def seconds(text: str) -> float:
    """0 for what is no duration."""
    try:
        return duration(text)
    except ValueError:
        return 0.0
