"""The whole scheduler on one screen."""

from __future__ import annotations

from pumice.framework.decisions import Decisions
from pumice.framework.policy import Policy
from pumice.framework.session import Session
from pumice.framework.world import NOWHERE, World
from pumice.model.cluster import Cluster


def cycle(cluster: Cluster, policy: Policy, now: float, world: World = NOWHERE) -> Decisions:
    """Decide once. What is not decided is undone: `cluster` is afterwards as it was, plus what the decisions say."""
    with Session(cluster, policy, now, world) as session:
        for action in policy.actions:
            action.run(session)
        return session.close()
