"""Pods that wait for a node over time: which of them are to be tried now, and which wait for an event that could help them.

A pod that was refused waits for an event that could help (`may_help`), and then for its back-off, which doubles with every
failure. A pod whose attempt ended in an error only backs off. No pod waits longer than FORGOTTEN_S, in case an event was missed.
Time is an argument: the loop that owns the queue passes it, and gives the queue to each cycle.

    loop: for each watch event   queue.happened(...)
          each cycle             queue.due(...): the cycle tries them; queue.placed / refused / failed
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from pumice.scheduler.framework.cluster_events import ClusterEvent, EventKind
from pumice.scheduler.framework.pods_to_try import G, GroupOutcome, WaitingGroup, WaitingPods
from pumice.scheduler.kube.group_queue import ATTEMPT_FAILED, ENDED, NEW, GroupQueue
from pumice.scheduler.kube.pipelined_room import PipelinedRoom
from pumice.scheduler.kube.queueing_hints import may_help
from pumice.scheduler.model import Cluster, Task

FLEETING = frozenset([PipelinedRoom.name])  #: rules that refuse for the length of a session: no event announces the end of that

FORGOTTEN_S = 300.0  #: longest wait for an event
AT_ONCE = 64  #: so many pods at least are tried in a cycle: Volcano's jobs, which have their turn in each cycle, do not wait for thousands


@dataclass
class _Entry:
    task: Task
    refusals: int = 0
    errors: int = 0  #: attempts in a row that ended in an error
    refused_by: frozenset[str] = frozenset()
    since: float = 0.0  #: when the pod was put back


@dataclass
class SchedulingQueue(WaitingPods):
    """Active, backing-off and unschedulable pods. A pod is in exactly one of the four places, or being tried, or on its way to a node."""

    cluster: Cluster
    initial_s: float = 1.0
    max_s: float = 10.0
    at_once: int = AT_ONCE
    ready: dict[str, _Entry] = field(default_factory=dict)
    backoff: dict[str, _Entry] = field(default_factory=dict)  #: something may have helped; its back-off is not over
    failing: dict[str, _Entry] = field(default_factory=dict)  #: backing off after an error
    waiting: dict[str, _Entry] = field(default_factory=dict)  #: waiting for an event
    groups: GroupQueue = field(init=False)
    incoming: Counter[tuple[str, str, str]] = field(default_factory=Counter)  #: how often what was added: by queue, event, type
    _placed: dict[str, _Entry] = field(default_factory=dict)  #: pods that have a node, but whose bind may still fail
    _tried: dict[str, tuple[_Entry, int]] = field(default_factory=dict)  #: with the number of events when the pod was taken
    _meanwhile: list[ClusterEvent] = field(default_factory=list)  #: events while any pod was being tried

    def __post_init__(self) -> None:
        self.groups = GroupQueue(self.initial_s, self.max_s, self.incoming)

    # -- pods

    def add(self, task: Task) -> None:
        """Add a new pending pod, or a pod whose gates are gone."""
        if not self.knows(task):
            self._count("active", NEW)
            self.ready[task.uid] = self._placed.pop(task.uid, _Entry(task))

    def knows(self, task: Task) -> bool:
        return any(task.uid in place for place in self._places) or task.uid in self._tried

    def place_of(self, task: Task) -> str:
        """Where a pod is, in kube-scheduler's words; empty if it is not here."""
        if task.uid in self.ready:
            return "active"
        if task.uid in self.backoff or task.uid in self.failing or self.groups.tries(task)[0]:
            return "backoff"
        return "unschedulable" if task.uid in self.waiting else ""

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
        """The first pods of `ready` that are to be tried now. Pods that are due but not in `ready` are dropped: others place them, or they
        are gated again."""
        for task in ready:
            self.add(task)
        due = {task.uid: task for task in self.take(now)}
        trying = [task for task in ready if due.pop(task.uid, None) is not None]
        for task in due.values():
            self.forget(task)
        most = max(self.at_once, len(trying) // 32)  # to sort thousands of them in each cycle must not cost more than to try them
        for task in trying[most:]:
            self.ready[task.uid], _ = self._tried.pop(task.uid)
        return trying[:most]

    def take(self, now: float) -> list[Task]:
        """The pods to try now. If none is ready, pods in back-off after a refusal are taken: the scheduler has nothing better to do."""
        forgotten = self._move(self.waiting, self.backoff, lambda entry: now - entry.since >= FORGOTTEN_S)
        self._count("backoff", "UnschedulableTimeout", forgotten)
        for place in (self.backoff, self.failing):
            self._count("active", ENDED, self._move(place, self.ready, lambda entry: now >= self.free_at(entry)))
        if not self.ready:
            self._count("active", "PopFromBackoffQ", self._move(self.backoff, self.ready, lambda entry: True))
        taken = list(self.ready.values())
        self.ready.clear()
        self._tried |= {entry.task.uid: (entry, len(self._meanwhile)) for entry in taken}
        return [entry.task for entry in taken]

    def next_due(self) -> float | None:
        """When take() should be called next if nothing happens; None for never."""
        times = [self.free_at(entry) for place in (self.backoff, self.failing) for entry in place.values()]
        times += [entry.since + FORGOTTEN_S for entry in self.waiting.values()]
        times += [0.0] if self.ready else []
        times += [] if (group := self.groups.next_due()) is None else [group]
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
        self._count("backoff" if helped else "unschedulable", ATTEMPT_FAILED)
        self._end_attempts()

    def placed(self, task: Task) -> None:
        """Note that the pod has a node. Its failures are remembered in case its bind fails."""
        entry, _ = self._tried.pop(task.uid, (_Entry(task), 0))
        self._placed[task.uid] = entry
        self._end_attempts()

    def failed(self, task: Task, now: float) -> None:
        """Put back a pod whose attempt ended in an error, or whose bind failed. The group of a member is tried again at once."""
        if self.groups.knows(task):
            self.groups.activate([task])
            return
        entry, _ = self._tried.pop(task.uid, (self._placed.pop(task.uid, _Entry(task)), 0))
        entry.task, entry.since, entry.errors = task, now, entry.errors + 1
        self.failing[task.uid] = entry
        self._count("backoff", ATTEMPT_FAILED)
        self._end_attempts()

    def _end_attempts(self) -> None:
        if not self._tried:
            self._meanwhile.clear()

    # -- groups

    def due_groups(self, ready: list[G], present: Collection[str], now: float) -> list[G]:
        return self.groups.due(ready, present, now)

    def group_tried(self, group: WaitingGroup, outcome: GroupOutcome, left: Sequence[Task], now: float) -> None:
        self.groups.tried(group, outcome, left, now)
        self.groups.forget_others(self.cluster.members)

    def tries(self, task: Task) -> tuple[int, float]:
        return self.groups.tries(task)

    # -- events

    def happened(self, event: ClusterEvent) -> list[Task]:
        """Take in an event. Return the pods that it may help: they now wait only for the end of their back-off."""
        if self._tried:
            self._meanwhile.append(event)
        woken = [entry for entry in self.waiting.values() if may_help(self.cluster, entry.task, entry.refused_by, event)]
        for entry in woken:
            del self.waiting[entry.task.uid]
            self.backoff[entry.task.uid] = entry
        self._count("backoff", event.name, len(woken))
        return [entry.task for entry in woken]

    def nomination_ended(self, task: Task) -> None:
        """Let waiting pods know, as an event, that the room held for a nominated pod is free."""
        if task.nominated:
            self.happened(ClusterEvent(EventKind.POD_GONE, task.nominated, task))

    def eviction_failed(self, node: str) -> None:
        """Let pods that are nominated to this node be tried again as soon as possible: no event will announce the room."""
        self.activate([entry.task for entry in self.waiting.values() if entry.task.nominated == node])
        self.groups.activate(task for members in self.cluster.members.values() for task in members.values() if task.nominated == node)

    def activate(self, tasks: Iterable[Task]) -> None:
        """Let these pods be tried as soon as possible, whatever they wait for."""
        for task in tasks:
            for place in (self.backoff, self.failing, self.waiting):
                entry = place.pop(task.uid, None)
                if entry is not None:
                    self.ready[task.uid] = entry
                    self._count("active", "ForceActivate")

    def _count(self, queue: str, event: str, number: int = 1) -> None:
        if number:
            self.incoming[queue, event, "pod"] += number

    @staticmethod
    def _move(source: dict[str, _Entry], target: dict[str, _Entry], chosen: Callable[[_Entry], bool]) -> int:
        """Move the chosen entries, and return how many."""
        moving = [uid for uid, entry in source.items() if chosen(entry)]
        for uid in moving:
            target[uid] = source.pop(uid)
        return len(moving)
