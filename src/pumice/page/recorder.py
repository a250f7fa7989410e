"""An observer of a scheduler's cycles for the page: what each cycle decided, why pods wait, what queues deserve.

The last cycles that decided something are kept, each with what it bound and evicted, action by action.
"""

import time
from collections import deque
from typing import Any

import msgspec

from pumice.live.scheduler.loop import CycleObserver
from pumice.page.rows import job_key
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.observer import Stage
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Vector

KEPT = 200  #: cycles
SHOWN = 200  #: binds, and evictions, of one cycle


class ActionRecord(msgspec.Struct):
    """What one action did."""

    name: str
    took_ms: float
    bound: int
    evicted: int


class CycleRecord(msgspec.Struct):
    """One cycle that decided something. `binds` and `evictions` are only the first of them, in order."""

    number: int
    at: float
    took_ms: float
    bound: int
    evicted: int
    waiting: int
    jobs: int  #: whose pods were bound or evicted
    actions: list[ActionRecord]
    binds: list[tuple[str, str, str, str]]  #: pod, its job, node, action
    evictions: list[tuple[str, str, str, str, str]]  #: pod, its job, node, the beneficiary, action


class Recorder(CycleObserver):
    """An observer that keeps the last cycles for the page. `cycled` is called with the outcome of a cycle after its end."""

    needs_full_cycles = False

    def __init__(self) -> None:
        self.cycles: deque[CycleRecord] = deque(maxlen=KEPT)
        self.count = 0  #: cycles, the idle ones too
        self.deserved: dict[str, Vector] = {}  #: by queue, as the last session's plugins share out the cluster
        self.why: dict[str, str] = {}  #: why pods wait, by pod uid
        self.jobs_why: dict[str, str] = {}  #: why jobs wait, by the job's key
        self.stirred: set[str] = set()  #: the keys of jobs that cycles dealt with since this set was last taken
        self._last: Decisions | None = None  #: of the last cycle; if the next has the same object, there is nothing new
        self._session: Session | None = None
        self._began = 0.0
        self._before = (0, 0)
        self._actions: list[tuple[ActionRecord, tuple[int, int]]] = []

    # -- in the cycle

    def begins(self, stage: Stage, subject: Any) -> None:
        if stage is Stage.SESSION:
            self._session = subject
            self._actions = []
        elif stage is Stage.ACTION:
            self._before = self._decided()
            self._began = time.perf_counter()

    def ends(self, stage: Stage, subject: Any) -> None:
        if stage is Stage.ACTION:
            (bound, evicted), before = self._decided(), self._before
            took_ms = round((time.perf_counter() - self._began) * 1000, 2)
            self._actions.append((ActionRecord(subject.name, took_ms, bound - before[0], evicted - before[1]), before))
        elif stage is Stage.OPEN and hasattr(subject, "entitlements"):
            self.deserved = {name: deserved for name, (deserved, _) in subject.entitlements().items()}
        elif stage is Stage.SESSION:
            self.stirred.update(subject.cluster.changed)

    def _decided(self) -> tuple[int, int]:
        assert self._session is not None
        decisions = self._session.decisions
        return len(decisions.binds), len(decisions.evictions)

    # -- after it

    def cycled(self, decisions: Decisions, at: float, took_s: float) -> None:
        self.count += 1
        if decisions is self._last:
            return
        self._last, self._session = decisions, None
        self._note_reasons(decisions)
        self.stirred.update(group.job.uid for group in decisions.of_those_looked_at().groups)
        self.stirred.update(self.jobs_why)
        if decisions.binds or decisions.evictions:
            self.cycles.append(self._record(decisions, at, took_s))
        self._actions = []

    def _note_reasons(self, decisions: Decisions) -> None:
        """Note why pods and jobs wait. A job has the most informative of the messages of its pods."""
        resting = [*decisions.conclusion.at_rest.jobs] if decisions.conclusion is not None else []
        before, jobs_before, looked_at = self.why, self.jobs_why, decisions.of_those_looked_at()
        self.why = {uid: before[uid] for job in resting for uid in job.pending if uid in before}
        self.why |= {one.task.uid: one.message for one in looked_at.waiting}
        found = {job.uid: jobs_before[job.uid] for job in resting if job.uid in jobs_before}
        found |= {
            group.job.uid: group.condition.message for group in looked_at.groups if group.condition is not None and not group.job.tasks
        }
        for one in looked_at.waiting:
            key = job_key(one.task)
            if key not in found or _telling(one.message) > _telling(found[key]):
                found[key] = one.message
        self.jobs_why = found

    def _record(self, decisions: Decisions, at: float, took_s: float) -> CycleRecord:
        binds, evictions = decisions.binds[:SHOWN], decisions.evictions[:SHOWN]
        return CycleRecord(
            number=self.count,
            at=at,
            took_ms=round(took_s * 1000, 2),
            bound=len(decisions.binds),
            evicted=len(decisions.evictions),
            waiting=len(decisions.waiting),
            jobs=len({job_key(one.task) for one in decisions.binds} | {job_key(one.task) for one in decisions.evictions}),
            actions=[action for action, _ in self._actions],
            binds=[(one.task.key, job_key(one.task), one.node, self._action_of(index)) for index, one in enumerate(binds)],
            evictions=[(one.task.key, job_key(one.task), one.node, one.beneficiary, one.action) for one in evictions],
        )

    def _action_of(self, bind: int) -> str:
        """The name of the action that decided a bind. `bind` is the index of the bind in the order of the cycle."""
        return next((action.name for action, before in reversed(self._actions) if before[0] <= bind and action.bound), "")


def _telling(message: str) -> int:
    """How informative a message is: 2 if it says why nodes refuse the pod, 1 if it is about the gang, 0 if it says that this pod alone
    could be placed."""
    return 2 if message.startswith("0/") else 0 if "can possibly be assigned" in message else 1
