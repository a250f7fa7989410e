"""The decisions of the last cycle, which are also those of the next cycle as long as nothing has changed that could matter.

A cycle that changed nothing is remembered, with the cluster's revision and the time until which its decisions hold. Plugins and actions
declare that their answers follow from the kept state (`reads_only_state`); by time alone they change at a plugin's `next_turn`. If one
of them does not declare it, every cycle is run in full. What a class declares does not hold for its subclasses.
"""

from collections.abc import Callable
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.observer import Observer
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.unserved_pods import next_stranded
from pumice.scheduler.model import Cluster

MEMORY = "decisions"  #: its key in the cluster's memory


class Remembered(Struct, frozen=True):
    policy: Policy
    revision: int
    since: float
    until: float
    decisions: Decisions


def recall(cluster: Cluster, policy: Policy, now: float, observer: Observer) -> Decisions | None:
    """The decisions of the last cycle (the same object) if this cycle would decide the same, else None."""
    last: Remembered | None = cluster.memory.get(MEMORY)
    if last is None or last.policy is not policy or observer.needs_full_cycles or not policy.shortcuts:
        return None
    if not last.since <= now < last.until:
        return None
    return None if cluster.changed or cluster.log or cluster.revision != last.revision else last.decisions


def remember(session: Session, find_out: Callable[[], Decisions]) -> None:
    """Keep the decisions of a session that has just closed, if it changed nothing. `find_out`: looks at each job again, for the statuses
    that are not kept."""
    cluster = session.cluster
    cluster.memory.pop(MEMORY, None)
    if _changed_nothing(session) and (until := _holds_until(session)) > session.now:
        cluster.memory[MEMORY] = Remembered(session.policy, cluster.revision, session.now, until, _kept(session, find_out))


def _changed_nothing(session: Session) -> bool:
    decisions = session.decisions
    if (
        decisions.binds
        or decisions.evictions
        or decisions.ungated
        or decisions.failures
        or decisions.again_at < inf
        or session.went_by_clock
    ):
        return False
    nominated = all(task.nominated == node for task, node in decisions.nominations.items())
    return nominated and all(job.phase == phase for job, phase in session.phases.items())


def _holds_until(session: Session) -> float:
    if not session.policy.reads_only_state:
        return -inf
    by_plugins = (plugin.next_turn(session) for plugin in session.plugins.everyone)
    by_actions = (action.next_turn(session) for action in session.policy.actions)
    return min([next_stranded(session.cluster, session.now), *by_plugins, *by_actions])


def _kept(session: Session, find_out: Callable[[], Decisions]) -> Decisions:
    """The decisions, without the status of jobs that are in them only because the jobs had changed. The statuses of jobs that are like no
    other are found out again if somebody reads them."""
    cluster = session.cluster
    waits = {*cluster.waiting, *cluster.not_enqueued}
    decisions = replace(session.decisions)
    assert decisions.conclusion is not None
    conclusion = decisions.conclusion.of(waits)
    if session.job_classes is not None and not session.observer.reads_all:
        alone = (outcome.members[0] for outcome in conclusion.outcomes if len(outcome.members) == 1)
        lone = session.job_classes.lone(
            each for each in alone if each.uid in waits and not each.job.lacks_pods
        )  # whose pods may be on their way
        conclusion = conclusion.unsaid(lone, find_out)
        unsaid = {job.uid for job in conclusion.at_rest.jobs if job.is_pending}
        decisions.events = [event for event in decisions.events if event.job.uid not in unsaid]
    decisions.tell(conclusion)
    return decisions
