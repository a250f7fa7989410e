"""The whole scheduler on one screen."""

from __future__ import annotations

from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.observer import SILENT, Observer, Stage
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.remembered import recall, remember
from pumice.scheduler.framework.scheduling_queue import EVERYBODY, WaitingPods
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.world import NOWHERE, World
from pumice.scheduler.model.cluster import Cluster


def cycle(
    cluster: Cluster,
    policy: Policy,
    now: float,
    world: World = NOWHERE,
    queue: WaitingPods = EVERYBODY,
    observer: Observer = SILENT,
) -> Decisions:
    """Decide once. What is not decided is undone: `cluster` is afterwards as it was, plus what the decisions say.

    If nothing has happened since the last time that could make them others, they are the last ones.

    `queue` says which of the pods of kube-scheduler's profiles are tried, and is told what became of them. If something in Pumice fails,
    it is decided again with all plugins guarded, so that what fails spoils only what it was asked about, and is named.
    """
    if (last := recall(cluster, policy, now, observer)) is not None:
        return last
    try:
        return _decide(Session(cluster, policy, now, world, queue, observer))
    except Exception:
        return _decide(Session(cluster, policy, now, world, queue, observer, guarded=True))


def _decide(opened: Session) -> Decisions:
    with opened as session:
        for action in opened.policy.actions:
            session.observer.begins(Stage.ACTION, action)
            action.run(session)
            session.observer.ends(Stage.ACTION, action)
        decisions = session.close()
    remember(opened)
    return decisions
