"""Evictions of late: by which action, for whom, whom plugins let go, and what it cost. Kept for those who ask why afterwards."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from msgspec import Struct

from pumice.api.annotations import CHECKPOINT
from pumice.api.times import duration
from pumice.scheduler.framework.decisions import Evict
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.resources import Dimensions
from pumice.scheduler.model.task import Task

MEMORY = "past evictions"  #: its key in the cluster's memory
KEPT = 1000


class PastEviction(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One pod. `text` is in the words of another scheduler, where those are all that is known."""

    pod: str  #: namespace/name
    at: float  #: seconds since 1970
    job: str = ""  #: its uid
    action: str = ""
    beneficiary: str = ""
    permitted_by: tuple[str, ...] = ()  #: plugins
    lost_s: float = 0.0  #: of work since its last checkpoint
    gpus: float = 0.0  #: on so many
    text: str = ""

    @property
    def words(self) -> str:
        """By which action, for whom, by which rule, at which cost."""
        if self.text:
            return self.text
        whom = f" for {self.beneficiary}" if self.beneficiary else ""
        verb = "permits" if len(self.permitted_by) == 1 else "permit"
        rule = f", as {', '.join(self.permitted_by)} {verb}" if self.permitted_by else ""
        on = f" on {self.gpus:g} GPU{'s' if self.gpus != 1 else ''}" if self.gpus else ""
        lost = f"; it loses {self.lost_s:.0f} s of work{on}" if self.lost_s else ""
        return f"{self.action}{whom}{rule}{lost}"


def past_eviction(eviction: Evict, cluster: Cluster, now: float) -> PastEviction:
    task = eviction.task
    job = task.job.uid if task.job is not None else ""
    lost = at_risk_s(task, now), gpus(task, cluster.dimensions)
    return PastEviction(task.key, now, job, eviction.action, eviction.beneficiary, eviction.permitted_by, *lost)


def note(cluster: Cluster, evictions: Iterable[PastEviction]) -> None:
    known: deque[PastEviction] = cluster.memory.setdefault(MEMORY, deque(maxlen=KEPT))
    known.extend(evictions)


def past_evictions(cluster: Cluster) -> tuple[PastEviction, ...]:
    """The oldest first."""
    return tuple(cluster.memory.get(MEMORY, ()))


# What an eviction costs its victim: the work since its last checkpoint. It makes one every `pumice.io/checkpoint-every` of its PodGroup;
# without that annotation none.


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
