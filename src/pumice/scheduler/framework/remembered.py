"""What the last cycle decided, which is what the next one would as long as nothing has happened that could matter.

A cycle that left everything as it was is remembered, with the cluster's revision and the time until which its answers hold. Plugins and
actions say of themselves whether those follow from the kept state (`reads_only_state`); time makes them others at a plugin's `next_turn`.
With one that does not say so every cycle looks at everything anew; what a class says does not hold for those based on it.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.job_status import next_stranded
from pumice.scheduler.framework.observer import Observer
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model.cluster import Cluster

if TYPE_CHECKING:
    from pumice.scheduler.framework.session import Session

MEMORY = "decisions"  #: its key in the cluster's memory


class Remembered(Struct, frozen=True):
    """The decisions of the last cycle, and until when they hold."""

    policy: Policy
    revision: int
    since: float
    until: float
    decisions: Decisions


def recall(cluster: Cluster, policy: Policy, now: float, observer: Observer) -> Decisions | None:
    """The last cycle's decisions, if this one would decide the same; they are the same object."""
    last: Remembered | None = cluster.memory.get(MEMORY)
    if last is None or last.policy is not policy or observer.watches or not last.since <= now < last.until:
        return None
    return None if cluster.changed or cluster.log or cluster.revision != last.revision else last.decisions


def remember(session: Session) -> None:
    """Keep what a session decided that has just closed, if it left everything as it was."""
    cluster = session.cluster
    cluster.memory.pop(MEMORY, None)
    if _changed_nothing(session) and (until := _holds_until(session)) > session.now:
        cluster.memory[MEMORY] = Remembered(session.policy, cluster.revision, session.now, until, _of_those_who_wait(session))


def _changed_nothing(session: Session) -> bool:
    told = session.decisions
    if told.binds or told.evictions or told.ungated or told.failures or told.again_at < inf or session.went_by_clock:
        return False
    nominated = all(task.nominated == node for task, node in told.nominations.items())
    return nominated and all(job.phase == phase for job, phase in session.phases.items())


def _holds_until(session: Session) -> float:
    if not session.policy.reads_only_state:
        return -inf
    return min([next_stranded(session.cluster, session.now), *(plugin.next_turn(session) for plugin in session.plugins.everyone)])


def _of_those_who_wait(session: Session) -> Decisions:
    """The decisions without what was told only because a job had changed."""
    cluster = session.cluster
    moved = {task.job.uid: task.job for task in session.origins if task.job is not None}  # if only in thought
    told = replace(session.decisions)
    assert told.conclusion is not None
    told.tell(told.conclusion.of({*cluster.waiting, *cluster.not_enqueued, *moved}))
    return told
