"""Groups that wait over time: a group that was tried in vain backs off, and is tried again after that, whatever happens meanwhile.

The back-off doubles with every failure. Its limit grows with the square root of the number of pending members. It ends in whole seconds:
when the second in which it ends is over. A group that was placed in part, with members left, is due at once.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from math import floor, inf, sqrt

from pumice.scheduler.framework.pods_to_try import G, GroupOutcome, WaitingGroup
from pumice.scheduler.model import Task

#: why something is added to a queue, in upstream's words
NEW, ATTEMPT_FAILED, ENDED = "UnscheduledPodAdd", "ScheduleAttemptFailure", "BackoffComplete"
NEVER = (0, 0.0)  #: the tries of a member that was not tried


@dataclass
class _Tried:
    """A group that was tried."""

    size: int  #: how many of its members are pending
    refusals: int = 0
    errors: int = 0  #: attempts in a row that ended in an error
    since: float = 0.0
    members: dict[str, tuple[int, float]] = field(default_factory=dict)  #: by uid of each pending member: how often it was tried, and when


@dataclass
class GroupQueue:
    """The groups of the scheduling queue, by uid. A group that was not tried yet is due, and is not kept here."""

    initial_s: float
    max_s: float
    incoming: Counter[tuple[str, str, str]] = field(default_factory=Counter)  #: as of the SchedulingQueue
    _tried: dict[str, _Tried] = field(default_factory=dict)
    _of_leaf: dict[str, str] = field(default_factory=dict)  #: from PodGroup to the group in which it was tried

    def due(self, ready: list[G], present: Collection[str], now: float) -> list[G]:
        """The groups of `ready` to try now. Groups that are not `present` are forgotten."""
        for uid in self._tried.keys() - present:
            del self._tried[uid]
        due = [group for group in ready if self._is_due(group.uid, now)]
        for group in due:
            tried = self._tried.get(group.uid)
            if tried is None or tried.errors or tried.refusals:
                self._count("active", NEW if tried is None else ENDED, group)
        return due

    def _count(self, queue: str, event: str, group: WaitingGroup) -> None:
        self.incoming[queue, event, group.uid.partition(" ")[0]] += 1

    def _is_due(self, uid: str, now: float) -> bool:
        tried = self._tried.get(uid)
        return tried is None or now >= self._due_at(tried)

    def _due_at(self, tried: _Tried) -> float:
        failures = tried.errors or tried.refusals
        if not failures or tried.since == -inf:
            return tried.since
        longest = self.max_s * sqrt(tried.size) if tried.size > 1 else self.max_s
        return floor(tried.since + min(self.initial_s * 2.0 ** min(failures - 1, 62), longest)) + 1.0

    def tried(self, group: WaitingGroup, outcome: GroupOutcome, left: Sequence[Task], now: float) -> None:
        tried = self._tried.pop(group.uid, None) or _Tried(0)
        self._of_leaf |= {task.group: group.uid for task in group.tasks}
        if not left:
            return
        self._count("active" if outcome is GroupOutcome.PLACED else "backoff", ATTEMPT_FAILED, group)
        tried.size, tried.since = len(left), now
        tried.members = {task.uid: (tried.members.get(task.uid, NEVER)[0] + 1, now) for task in left}
        if outcome is GroupOutcome.PLACED:
            tried.refusals = tried.errors = 0
        elif outcome is GroupOutcome.REFUSED:
            tried.refusals, tried.errors = tried.refusals + 1, 0
        else:
            tried.errors += 1
        self._tried[group.uid] = tried

    def forget_others(self, present: Collection[str]) -> None:
        """Forget the PodGroups that are not present any more, if they are most of those that are known."""
        if len(self._of_leaf) > 2 * len(present):
            self._of_leaf = {leaf: uid for leaf, uid in self._of_leaf.items() if leaf in present}

    def tries(self, task: Task) -> tuple[int, float]:
        """How often a pending member was tried, and when the last time."""
        tried = self._tried.get(self._of_leaf.get(task.group, ""))
        return tried.members.get(task.uid, NEVER) if tried is not None else NEVER

    def knows(self, task: Task) -> bool:
        """Whether the pod is a member of a group that was tried."""
        return task.group in self._of_leaf

    def activate(self, tasks: Iterable[Task]) -> None:
        """Let the groups of these pods be tried as soon as possible."""
        for task in tasks:
            tried = self._tried.get(self._of_leaf.get(task.group, ""))
            if tried is not None:
                tried.since = -inf

    def next_due(self) -> float | None:
        return min(map(self._due_at, self._tried.values()), default=None)
