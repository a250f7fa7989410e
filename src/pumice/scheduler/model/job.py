"""A PodGroup and its tasks: the unit that is queued, admitted, and started together or not at all.

Counts and sums follow every move of a task; `Cluster` calls `enter` and `remove`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from pumice.api import duration
from pumice.api.annotations import (
    ALLOCATED_HYPERNODE,
    ESTIMATE,
    HELD_PLACES,
    OLD_SLA_WAITING_TIME,
    PREEMPTABLE,
    QUEUE_GATE,
    REVOCABLE_ZONE,
    SLA_WAITING_TIME,
)
from pumice.api.meta import Metadata
from pumice.api.structs import pack, unpacker
from pumice.api.volcano import PodGroup, PodGroupSpec, PodGroupStatus
from pumice.scheduler.model import status
from pumice.scheduler.model.inqueue_promises import NO_PROMISES, fitted
from pumice.scheduler.model.rare_attributes import NOTHING, Seldom, unusual
from pumice.scheduler.model.resources import (
    FEW_READ,
    MOST_SHARED,
    Dimensions,
    Sum,
    Vector,
    as_vector,
    no_sum,
    one_text,
    unpacked,
)
from pumice.scheduler.model.shadow_group import MARK
from pumice.scheduler.model.subjob import SubJobs
from pumice.scheduler.model.task import Task, flag, revocable_zone

if TYPE_CHECKING:
    from pumice.scheduler.model.queue import Queue


PENDING, INQUEUE, RUNNING, UNKNOWN, COMPLETED = "Pending", "Inqueue", "Running", "Unknown", "Completed"


class Counts(dict[int, int]):
    """Numbers of tasks by status. A status that no task has is left out, and reads as 0."""

    __slots__ = ()

    def __missing__(self, bit: int) -> int:
        return 0


#: labels and annotations of PodGroups that few of them have
OF_JOBS = frozenset([PREEMPTABLE, REVOCABLE_ZONE, SLA_WAITING_TIME, OLD_SLA_WAITING_TIME, ALLOCATED_HYPERNODE, HELD_PLACES])
NO_COUNTS = Counts()  #: one for all jobs that only wait


class Job:
    """A PodGroup with its tasks. Without a PodGroup (`group` None) the job has no queue, and Volcano's actions do not place its tasks."""

    __slots__ = (
        "_about",
        "_rest",
        "annotations",
        "counts",
        "created",
        "has_min_resources",
        "holding",
        "least",
        "min_member",
        "namespace",
        "pending",
        "pending_best_effort",
        "phase",
        "preemptable",
        "priority",
        "promises",
        "queue",
        "ready_count",
        "seldom",
        "tasks",
        "uid",
        "waiting_since",
    )

    beyond = Seldom("")  #: an amount of its minimum resources that no cluster has
    waiting_time = Seldom[float | None](None)
    estimate = Seldom[float | None](None)  #: how long its pods are expected to run
    role_minimum = Seldom[Mapping[str, int]](NOTHING)
    zone = Seldom("")
    never_preempted = Seldom(False)
    allocated_hypernode = Seldom("")
    held_places = Seldom("")
    nominated_hypernodes = Seldom(NOTHING)  #: sub-job uid to HyperNode, set by gang preemption
    asks_for_topology = Seldom(False)  #: whether the job or one of its sub-group policies has a network topology
    has_one_part = Seldom(True)  #: whether no sub-group policy splits the job into sub-jobs
    _subjobs = Seldom[SubJobs | None](None)

    def __init__(self, uid: str, dimensions: Dimensions, group: PodGroup | None = None) -> None:
        self.seldom = NOTHING
        self.uid = uid
        self.namespace = one_text(uid.partition("/")[0])
        self.read(group, dimensions)  # before vectors are made: it may make all vectors longer
        self.queue: Queue | None = None
        self.clear(dimensions.width)
        self.promises = NO_PROMISES
        self.priority = 0
        self.waiting_since: float | None = None  #: time of the first cycle whose action enqueue saw it

    def clear(self, width: int) -> None:
        """Forget all tasks. `width`: the length of its vectors."""
        self.tasks: dict[str, Task] = {}
        self.pending = self.tasks  #: the Pending tasks; as long as all are Pending the same dictionary
        self.pending_best_effort = 0  #: number of Pending tasks that request nothing
        self.counts = NO_COUNTS  #: number of tasks by status, without those in `pending`
        self.ready_count = 0  #: number of tasks that hold a node or have succeeded
        self.holding: Sum = no_sum(width)  #: requests of tasks in status.HELD; replaced, never changed

    def read(self, group: PodGroup | None, dimensions: Dimensions) -> None:
        """Take over a PodGroup."""
        self.group = group
        spec = group.spec if group else None
        meta = group.metadata if group else None
        policies = (spec.sub_group_policy if spec else None) or ()
        annotations, labels = (meta.annotations if meta else None) or NOTHING, (meta.labels if meta else None) or NOTHING
        minimum = spec.min_resources if spec else None
        self.min_member = (spec.min_member if spec else None) or 0
        self.created = meta.created if meta else 0.0
        self.has_min_resources = minimum is not None
        self.least, without_bound = dimensions.packed(minimum)  #: `min_resources`
        self.annotations = annotations
        self.phase = (group.status.phase if group else None) or PENDING
        self.preemptable = False
        estimate = _seconds(annotations.get(ESTIMATE)) if annotations else None
        is_usual = OF_JOBS.isdisjoint(annotations) and OF_JOBS.isdisjoint(labels) and not (policies or without_bound or self.seldom)
        if is_usual and not (spec is not None and (spec.min_task_member or spec.network_topology)):
            if estimate is not None:
                self.estimate = estimate
            return
        self.preemptable = flag(annotations, labels, PREEMPTABLE, default=False)
        self.seldom = unusual(
            Job,
            beyond=without_bound,
            waiting_time=_waiting_time(annotations),
            estimate=estimate,
            role_minimum=(spec.min_task_member if spec else None) or NOTHING,
            zone=revocable_zone(annotations),
            never_preempted=annotations.get(PREEMPTABLE, labels.get(PREEMPTABLE)) is not None and not self.preemptable,
            allocated_hypernode=annotations.get(ALLOCATED_HYPERNODE, ""),
            held_places=annotations.get(HELD_PLACES, ""),
            nominated_hypernodes=self.nominated_hypernodes,
            asks_for_topology=spec is not None and (spec.network_topology is not None or any(p.network_topology for p in policies)),
            has_one_part=not policies,
        )

    def widen(self, dimensions: Dimensions) -> None:
        self.holding = dimensions.fitted(self.holding)
        self.promises = fitted(self.promises, dimensions)

    def __repr__(self) -> str:
        return f"<Job {self.uid} {self.phase}>"

    @property
    def name(self) -> str:
        return self.uid[len(self.namespace) + 1 :]

    @property
    def group(self) -> PodGroup | None:
        """The PodGroup. It is kept as it is written, which takes a third of the memory, and read when it is asked for."""
        return _read(self.uid, *self.written) if self._rest else None

    @group.setter
    def group(self, group: PodGroup | None) -> None:
        if group is None:
            self._about = self._rest = b""
        else:
            self._about = _shared(pack(replace(group.metadata, name="", namespace=None)))
            self._rest = _rest(group.spec, group.status)

    @property
    def has_group(self) -> bool:
        return bool(self._rest)

    @property
    def is_shadow(self) -> bool:
        """Whether its PodGroup was made by the scheduler for pods that have none, so that nobody else knows it."""
        return self.has_group and MARK in self.annotations

    @property
    def has_stored_group(self) -> bool:
        """Whether the API server has its PodGroup, too."""
        return self.has_group and not self.is_shadow

    @property
    def written(self) -> tuple[bytes, bytes]:
        """The PodGroup as it is written: its metadata without its name, and its spec and status, which PodGroups that are alike share."""
        return self._about, self._rest

    @property
    def min_resources(self) -> Vector:
        return unpacked(self.least, self.width)

    @property
    def width(self) -> int:
        """The length of its vectors."""
        return int(self.holding.shape[1])

    @property
    def subjobs(self) -> SubJobs:
        """The sub-jobs of the job, made when they are first read."""
        if self._subjobs is None:
            spec = self.group.spec if self.group else None
            self._subjobs = SubJobs(self, (spec.sub_group_policy if spec else None) or [], spec.network_topology if spec else None)
        return self._subjobs

    @property
    def tier_names(self) -> list[str]:
        """The names of tiers of HyperNodes that its topologies have."""
        spec = self.group.spec if self.asks_for_topology and self.group else None
        asked = (spec.network_topology, *(p.network_topology for p in spec.sub_group_policy or ())) if spec is not None else ()
        return [topology.highest_tier_name for topology in asked if topology is not None and topology.highest_tier_name]

    @property
    def labels(self) -> Mapping[str, str]:
        return (self.group.metadata.labels if self.group is not None else None) or NOTHING

    @property
    def role_minimum_total(self) -> int:
        return sum(self.role_minimum.values())

    @property
    def held(self) -> Vector:
        return as_vector(self.holding)

    @property
    def asking(self) -> Sum:
        """The sum of the requests of Pending tasks. Few ask for it, so it is not kept."""
        total = no_sum(self.width)
        for template, count in Counter([task.template for task in self.pending.values()]).items():
            total = total + count * template.exactly
        return total

    @property
    def asked(self) -> Vector:
        return as_vector(self.asking)

    # -- tasks and their moves

    def add(self, task: Task) -> None:
        self.tasks[task.uid] = task
        if self.seldom and self._subjobs is not None:
            self._subjobs.add(task)

    def remove(self, task: Task) -> None:
        del self.tasks[task.uid]
        if self.seldom and self._subjobs is not None:
            self._subjobs.remove(task)

    def enter(self, task: Task) -> None:
        """Count a task in its present status, once it is in `tasks`."""
        if task.status == status.PENDING:
            self.pending[task.uid] = task
            self.pending_best_effort += task.template.best_effort
            return
        if self.pending is self.tasks:
            self.pending = self._pending_without(task)
        self.count_one(task.status, 1)
        if task.status & status.READY:
            self.ready_count += 1
        if task.status & status.HELD:
            self.holding = self.holding + task.template.exactly

    def leave(self, task: Task) -> None:
        """Undo enter()."""
        if task.status == status.PENDING:
            if self.pending is self.tasks:
                self.pending = self._pending_without(task)
            else:
                del self.pending[task.uid]
            self.pending_best_effort -= task.template.best_effort
            return
        self.count_one(task.status, -1)
        if task.status & status.READY:
            self.ready_count -= 1
        if task.status & status.HELD:
            self.holding = self.holding - task.template.exactly

    def _pending_without(self, task: Task) -> dict[str, Task]:
        return {uid: other for uid, other in self.tasks.items() if other is not task}

    # -- counts

    def count_one(self, bit: int, by: int) -> None:
        """Count a task that has a status other than Pending, or (-1) had it."""
        counts = self.counts
        if counts is NO_COUNTS:
            counts = self.counts = Counts()
        if number := counts.get(bit, 0) + by:
            counts[bit] = number
        else:
            del counts[bit]

    @property
    def by_status(self) -> dict[int, int]:
        """The number of tasks by status, of those that some task has."""
        return {status.PENDING: len(self.pending)} | self.counts if self.pending else self.counts

    def count(self, mask: int) -> int:
        """The number of tasks in any of the statuses of the mask."""
        return sum(number for bit, number in self.by_status.items() if bit & mask)

    @property
    def waiting_count(self) -> int:
        return self.counts[status.PIPELINED]

    @property
    def valid_count(self) -> int:
        return self.ready_count + self.counts[status.PIPELINED] + len(self.pending)

    @property
    def lacks_pods(self) -> bool:
        """Whether the job has fewer pods than its minimum."""
        return self.valid_count < self.min_member

    @property
    def allocated_count(self) -> int:
        return self.ready_count - self.counts.get(status.SUCCEEDED, 0)

    @property
    def is_ready(self) -> bool:
        return self.ready_count + self.pending_best_effort >= self.min_member

    @property
    def is_pipelined(self) -> bool:
        return self.waiting_count + self.ready_count + self.pending_best_effort >= self.min_member

    @property
    def is_starving(self) -> bool:
        return self.waiting_count + self.ready_count < self.min_member

    @property
    def is_pending(self) -> bool:
        return self.phase == PENDING

    def roles_reach(self, mask: int) -> bool:
        """Whether each role has its minimum of tasks in the statuses of the mask, Pending ones that request nothing among them. If the
        job's minimum is below the sum of the roles' minimums, these do not count."""
        if not self.role_minimum or self.min_member < self.role_minimum_total:
            return True
        counts = dict.fromkeys(self.role_minimum, 0)
        for task in self.tasks.values():
            if task.role in counts and (task.status & mask or (task.status == status.PENDING and task.best_effort)):
                counts[task.role] += 1
        return all(counts[role] >= minimum for role, minimum in self.role_minimum.items())

    @property
    def allocated_by_role(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for task in self.tasks.values():
            if task.status & status.ALLOCATED_ALL:
                counts[task.role] = counts.get(task.role, 0) + 1
        return counts

    # -- what the gate of a queue counts

    def gated_request(self) -> Vector | None:
        """The sum of the requests of tasks that have a scheduling gate besides the queue's; None if there are none."""
        gated = [t.template.request for t in self.pending.values() if t.gated and t.template.gates != (QUEUE_GATE,)]
        return np.sum(gated, axis=0) if gated else None

    def without_gated(self, amounts: Vector) -> Vector:
        gated = self.gated_request()
        return amounts if gated is None else np.where(amounts > 0, np.maximum(amounts - gated, 0.0), amounts)

    def outstanding(self, held: Vector) -> Vector:
        """For each dimension of the job's minimum resources, the amount that `held` does not cover."""
        return np.maximum(self.min_resources - held, 0.0)

    @property
    def reserves(self) -> bool:
        """Whether the job is admitted and may still create pods, for which its minimum resources reserve room."""
        if not self.has_min_resources:
            return False
        return self.phase == INQUEUE or (self.phase == RUNNING and self.allocated_count >= self.min_member)


_ABOUT, _REST = unpacker(Metadata), unpacker(tuple[PodGroupSpec, PodGroupStatus])


@lru_cache(maxsize=FEW_READ)
def _read(uid: str, about: bytes, rest: bytes) -> PodGroup:
    namespace, _, name = uid.partition("/")
    spec, status = _REST.decode(rest)
    return PodGroup(replace(_ABOUT.decode(about), name=name, namespace=namespace), spec, status)


MOST_SPECS = 16  #: of PodGroups that are known by their identity
_known_specs: dict[int, tuple[PodGroupSpec, PodGroupStatus, bytes]] = {}  #: by identity; simulated PodGroups share them


def _rest(spec: PodGroupSpec, status: PodGroupStatus) -> bytes:
    """Spec and status as they are written."""
    known = _known_specs.get(id(spec))
    if known is not None and known[0] is spec and known[1] is status:
        return known[2]
    if len(_known_specs) >= MOST_SPECS:
        _known_specs.clear()
    made = _shared(pack((spec, status)))
    _known_specs[id(spec)] = spec, status, made
    return made


@lru_cache(maxsize=MOST_SHARED)
def _shared(written: bytes) -> bytes:
    """One object for what was written before."""
    return written


def _waiting_time(annotations: Mapping[str, str]) -> float | None:
    """The seconds that a job may wait before the plugin sla lets it in; None for no limit."""
    return _seconds(annotations.get(SLA_WAITING_TIME, annotations.get(OLD_SLA_WAITING_TIME))) or None


def _seconds(text: str | None) -> float | None:
    """A duration in seconds; None if there is no text, or if the text is no duration or is below zero."""
    try:
        seconds = duration(text) if text else None
    except ValueError:
        return None
    return seconds if seconds is None or seconds >= 0 else None
