"""Pods that wait for a node over time: which of them are to be tried now, and which wait for an event that could help them.

A pod that was refused waits for an event that could help (`may_help`), and then for its back-off, which doubles with every
failure. A pod whose attempt ended in an error only backs off. No pod waits longer than FORGOTTEN_S, in case an event was missed.
Time is an argument: the loop that owns the queue passes it, and gives the queue to each cycle.

    loop: for each watch event   queue.happened(...)
          each cycle             queue.due(...): the cycle tries them; queue.placed / refused / failed

The `Nominator` has the pods that are nominated to a node, and the room that they hold there against pods that are not more important. The
sums are kept for one priority at a time. Pods are tried in order of falling priority, so that this priority only falls and few nominations
are counted anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pumice.scheduler.engine.rules import Filter, Reach, Reason, Refused
from pumice.scheduler.engine.view import View
from pumice.scheduler.framework.cluster_events import ClusterEvent, EventKind, QueueingHint
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.nodes import Table
from pumice.scheduler.model.resources import EPSILON, Rows
from pumice.scheduler.model.task import Task
from pumice.scheduler.plugins.kube.catalogue import PLUGINS


class Nominator:
    """Nominated pods, by node. `stamp[n]` grows when the sums of a row change."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._places: dict[str, tuple[Task, int]] = {}  #: by task uid
        self._by_row: dict[int, dict[str, Task]] = {}
        self.stamp = np.zeros(len(cluster.nodes), int)
        self._begin(float("inf"))

    def __bool__(self) -> bool:
        return bool(self._places)

    def add(self, task: Task, row: int) -> None:
        self.drop(task)
        self._places[task.uid] = (task, row)
        self._by_row.setdefault(row, {})[task.uid] = task
        self._enter(task, row)

    def drop(self, task: Task) -> None:
        _, row = self._places.pop(task.uid, (task, -1))
        if row < 0:
            return
        del self._by_row[row][task.uid]
        if self._below.pop(task.uid, None) is None:
            self._count(task, row, -1)

    def row_of(self, task: Task) -> int:
        """The row to which the pod is nominated; -1 if it is not nominated."""
        return self._places.get(task.uid, (task, -1))[1]

    def on(self, row: int) -> list[Task]:
        return list(self._by_row.get(row, {}).values())

    def held_against(self, task: Task, row: int) -> Iterator[Task]:
        """The pods nominated to a row for which a task must leave room."""
        return (other for other in self.on(row) if other is not task and other.pod_priority >= task.pod_priority)

    def against(self, task: Task) -> tuple[Rows, Table]:
        """The rows where nominated pods hold room against a task, and how much they hold: [r, row]."""
        self._turn_to(task.pod_priority)
        numbers, own = self._numbers, self._places.get(task.uid)
        if own is not None:
            numbers = numbers.copy()
            numbers[own[1]] -= 1
        rows = np.flatnonzero(numbers)
        held = self._held[:, rows]
        if own is not None:
            held[np.ix_(task.template.columns, rows == own[1])] -= task.template.amounts[:, None]
        return rows, held

    # -- sums

    def _begin(self, threshold: float) -> None:
        table = self._cluster.nodes
        self._threshold = threshold
        self._held: Table = np.zeros((table.dimensions.width, len(table)))
        self._numbers = np.zeros(len(table), int)
        self._below = dict(self._places)  #: nominations that are less important than the threshold

    def _turn_to(self, threshold: int) -> None:
        if threshold > self._threshold:
            self._begin(float("inf"))
            self.stamp += 1
        if threshold < self._threshold:
            self._threshold = threshold
            below, self._below = self._below, {}
            for task, row in below.values():
                self._enter(task, row)

    def _enter(self, task: Task, row: int) -> None:
        if task.pod_priority < self._threshold:
            self._below[task.uid] = (task, row)
        else:
            self._count(task, row, 1)

    def _count(self, task: Task, row: int, sign: int) -> None:
        self._held[task.template.columns, row] += task.template.amounts * sign
        self._numbers[row] += sign
        self.stamp[row] += 1


# Room that Volcano's actions have promised in this session to gangs that wait for leaving pods: plain pods must not take it.
#
# A node is refused if the pod fits there now, but would not fit once all releasing pods have left and all pipelined pods have come.

PROMISED = Reason("node(s) had no room but what is promised to a gang")


class PipelinedRoom(Filter):
    """A filter that keeps the room promised to gangs."""

    name = "PromisedRoom"
    reach = Reach.NODE
    plannable = True

    def prepare(self, task: Task) -> Any:
        return task.template

    def refuse(self, template: Any, nodes: View) -> Sequence[Refused]:
        now, later = np.ones(len(nodes), bool), np.ones(len(nodes), bool)
        for column, amount in template.needs:
            idle, limit = nodes.idle[column], amount - EPSILON
            now &= idle > limit
            later &= idle + nodes.releasing[column] - nodes.pipelined[column] > limit
        return [Refused(now & ~later, PROMISED)]


def pipelined_room(session: Session) -> list[Filter]:
    """The filter, if any gang has such room; else no filter."""
    return [PipelinedRoom()] if any(operation.task.status == status.PIPELINED for operation in session.undecided) else []


# Whether an event may help a pod that found no node: the queueing hints of the plugins that refused it decide.
#
# For rules without hints, such as extenders and plugins of others, every event may help.

#: A pod that scheduling gates hold back waits only for its own update.
HINTS: dict[str, Mapping[EventKind, QueueingHint]] = {each.name: each.hints for each in PLUGINS if each.hints} | {"SchedulingGates": {}}

FLEETING = frozenset([PipelinedRoom.name])  #: rules that refuse for the length of a session: no event announces the end of that


def may_help(cluster: Cluster, task: Task, refused_by: Iterable[str], event: ClusterEvent) -> bool:
    """Whether an event could help a pod that these rules refused. An update of the pod itself always may; other events about it never."""
    if event.what is EventKind.ANYTHING or event.pod is task:
        return event.what in (EventKind.ANYTHING, EventKind.OWN_UPDATE)
    for name in refused_by:
        hints = HINTS.get(name)
        if hints is None:
            return True
        hint = hints.get(event.what)
        if hint is not None and hint(cluster, task, event):
            return True
    return False


FORGOTTEN_S = 300.0  #: longest wait for an event


@dataclass
class _Entry:
    task: Task
    refusals: int = 0
    errors: int = 0  #: attempts in a row that ended in an error
    refused_by: frozenset[str] = frozenset()
    since: float = 0.0  #: when the pod was put back


@dataclass
class SchedulingQueue:
    """Active, backing-off and unschedulable pods. A pod is in exactly one of the four places, or being tried, or on its way to a node."""

    cluster: Cluster
    initial_s: float = 1.0
    max_s: float = 10.0
    ready: dict[str, _Entry] = field(default_factory=dict)
    backoff: dict[str, _Entry] = field(default_factory=dict)  #: something may have helped; its back-off is not over
    failing: dict[str, _Entry] = field(default_factory=dict)  #: backing off after an error
    waiting: dict[str, _Entry] = field(default_factory=dict)  #: waiting for an event
    _placed: dict[str, _Entry] = field(default_factory=dict)  #: pods that have a node, but whose bind may still fail
    _tried: dict[str, tuple[_Entry, int]] = field(default_factory=dict)  #: with the number of events when the pod was taken
    _meanwhile: list[ClusterEvent] = field(default_factory=list)  #: events while any pod was being tried

    # -- pods

    def add(self, task: Task) -> None:
        """Add a new pending pod, or a pod whose gates are gone."""
        if not self.knows(task):
            self.ready[task.uid] = self._placed.pop(task.uid, _Entry(task))

    def knows(self, task: Task) -> bool:
        return any(task.uid in place for place in self._places) or task.uid in self._tried

    def forget(self, task: Task) -> None:
        """Drop a pod: it is bound, deleted, or left to another action or scheduler."""
        for place in self._places:
            place.pop(task.uid, None)
        self._placed.pop(task.uid, None)
        self._tried.pop(task.uid, None)
        self._end_attempts()

    @property
    def _places(self) -> tuple[dict[str, _Entry], ...]:
        return self.ready, self.backoff, self.failing, self.waiting

    # -- attempts

    def due(self, ready: list[Task], now: float) -> list[Task]:
        """The pods of `ready` to try now. Pods that are due but not in `ready` are dropped: others place them, or they are gated again."""
        for task in ready:
            self.add(task)
        due = {task.uid: task for task in self.take(now)}
        trying = [task for task in ready if due.pop(task.uid, None) is not None]
        for task in due.values():
            self.forget(task)
        return trying

    def take(self, now: float) -> list[Task]:
        """The pods to try now. If none is ready, pods in back-off after a refusal are taken: the scheduler has nothing better to do."""
        self._move(self.waiting, self.backoff, lambda entry: now - entry.since >= FORGOTTEN_S)
        for place in (self.backoff, self.failing):
            self._move(place, self.ready, lambda entry: now >= self.free_at(entry))
        if not self.ready:
            self._move(self.backoff, self.ready, lambda entry: True)
        taken = list(self.ready.values())
        self.ready.clear()
        self._tried |= {entry.task.uid: (entry, len(self._meanwhile)) for entry in taken}
        return [entry.task for entry in taken]

    def next_due(self) -> float | None:
        """When take() should be called next if nothing happens; None for never."""
        times = [self.free_at(entry) for place in (self.backoff, self.failing) for entry in place.values()]
        times += [entry.since + FORGOTTEN_S for entry in self.waiting.values()]
        times += [0.0] if self.ready else []
        return min(times, default=None)

    def free_at(self, entry: _Entry) -> float:
        """The time when the pod's back-off ends."""
        failures = entry.errors or entry.refusals
        return entry.since + min(self.initial_s * 2.0 ** min(failures - 1, 62), self.max_s)

    def refused(self, task: Task, by: frozenset[str], now: float) -> None:
        """Put back a pod that found no node: it waits for an event, or only backs off if an event during its attempt may help."""
        entry, seen = self._tried.pop(task.uid, (_Entry(task), len(self._meanwhile)))
        entry.task, entry.refused_by, entry.since = task, by, now
        entry.refusals, entry.errors = entry.refusals + 1, 0
        helped = not by.isdisjoint(FLEETING) or any(may_help(self.cluster, task, by, event) for event in self._meanwhile[seen:])
        (self.backoff if helped else self.waiting)[task.uid] = entry
        self._end_attempts()

    def placed(self, task: Task) -> None:
        """Note that the pod has a node. Its failures are remembered in case its bind fails."""
        entry, _ = self._tried.pop(task.uid, (_Entry(task), 0))
        self._placed[task.uid] = entry
        self._end_attempts()

    def failed(self, task: Task, now: float) -> None:
        """Put back a pod whose attempt ended in an error, or whose bind failed."""
        entry, _ = self._tried.pop(task.uid, (self._placed.pop(task.uid, _Entry(task)), 0))
        entry.task, entry.since, entry.errors = task, now, entry.errors + 1
        self.failing[task.uid] = entry
        self._end_attempts()

    def _end_attempts(self) -> None:
        if not self._tried:
            self._meanwhile.clear()

    # -- events

    def happened(self, event: ClusterEvent) -> list[Task]:
        """Take in an event. Return the pods that it may help: they now wait only for the end of their back-off."""
        if self._tried:
            self._meanwhile.append(event)
        woken = [entry for entry in self.waiting.values() if may_help(self.cluster, entry.task, entry.refused_by, event)]
        for entry in woken:
            del self.waiting[entry.task.uid]
            self.backoff[entry.task.uid] = entry
        return [entry.task for entry in woken]

    def nomination_ended(self, task: Task) -> None:
        """Let waiting pods know, as an event, that the room held for a nominated pod is free."""
        if task.nominated:
            self.happened(ClusterEvent(EventKind.POD_GONE, task.nominated, task))

    def eviction_failed(self, node: str) -> None:
        """Let pods that are nominated to this node be tried again as soon as possible: no event will announce the room."""
        self.activate([entry.task for entry in self.waiting.values() if entry.task.nominated == node])

    def activate(self, tasks: Iterable[Task]) -> None:
        """Let these pods be tried as soon as possible, whatever they wait for."""
        for task in tasks:
            for place in (self.backoff, self.failing, self.waiting):
                entry = place.pop(task.uid, None)
                if entry is not None:
                    self.ready[task.uid] = entry

    @staticmethod
    def _move(source: dict[str, _Entry], target: dict[str, _Entry], chosen: Callable[[_Entry], bool]) -> None:
        moving = [uid for uid, entry in source.items() if chosen(entry)]
        for uid in moving:
            target[uid] = source.pop(uid)
