"""What a cycle decided, as values. The edge turns them into effects; tests compare them."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from pumice.scheduler.framework.containment import Failure
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.task import Task


class Bind(NamedTuple):
    """Put a pod on a node. `annotations` are to be written with it. `bound_by`: the extender that has bound it already."""

    task: Task
    node: str
    annotations: dict[str, str]
    bound_by: str = ""


class Evict(NamedTuple):
    """Delete a pod, in favour of a pod or PodGroup ("namespace/name"; empty if of nobody)."""

    task: Task
    node: str
    beneficiary: str
    action: str


class Pipelined(NamedTuple):
    """A pod waits for room on a node that is being released."""

    task: Task
    node: str


class Condition(NamedTuple):
    """A PodGroup condition with status True."""

    type: str
    reason: str
    message: str


class GroupStatus(NamedTuple):
    """A PodGroup as the cycle leaves it."""

    job: Job
    phase: str
    condition: Condition | None
    hypernode: str = ""  #: that its tasks occupy, for the annotation volcano.sh/job-allocated-hypernode; empty for none


class Waiting(NamedTuple):
    """Why a pod is still pending."""

    task: Task
    reason: str
    message: str


class Event(NamedTuple):
    """Something a person should read, on a PodGroup."""

    job: Job
    type: str
    reason: str
    message: str


@dataclass
class Decisions:
    binds: list[Bind] = field(default_factory=list)
    evictions: list[Evict] = field(default_factory=list)
    pipelined: list[Pipelined] = field(default_factory=list)
    ungated: dict[str, Task] = field(default_factory=dict)  #: by uid: pods whose queue has room; its gate is to be taken from them
    nominations: dict[Task, str] = field(default_factory=dict)  #: nodes with room made, or about to be made, for a pod; "" takes one back
    groups: list[GroupStatus] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    failures: dict[Failure, None] = field(default_factory=dict)  #: of plugins, in the order they were met
    again_at: float = inf  #: when pods that are held back now may go
