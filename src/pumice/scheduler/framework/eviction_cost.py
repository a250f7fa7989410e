"""What an eviction costs its victim: the work since its last checkpoint. A pod makes a checkpoint at the interval in the annotation
`pumice.io/checkpoint-every` of its PodGroup; without the annotation it makes none.
"""

from pumice.api import duration
from pumice.api.annotations import CHECKPOINT
from pumice.api.quantity import is_gpu
from pumice.scheduler.model import Dimensions, Task


def ran_s(task: Task, now: float) -> float:
    since = task.started if task.started is not None else task.placed_at
    return 0.0 if since is None else max(0.0, now - since)


def at_risk_s(task: Task, now: float) -> float:
    """The seconds of work that the task would have to repeat if it were evicted now."""
    every = seconds(task.job.annotations.get(CHECKPOINT, "")) if task.job is not None else 0.0
    return ran_s(task, now) % every if every > 0 else ran_s(task, now)


def gpus(task: Task, dimensions: Dimensions) -> float:
    return sum(float(amount) for column, amount in task.template.needs if is_gpu(dimensions.names[column])) / 1000


def seconds(text: str) -> float:
    """A duration in seconds; 0 for a text that is no duration."""
    try:
        return duration(text)
    except ValueError:
        return 0.0
