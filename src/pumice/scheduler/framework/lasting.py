"""Evaluations that serve the next sessions as well, so that in each only the nodes are asked again that have changed.

What a plugin's rules hold may be of the session that it was opened for; those that `rules_last` hold nothing of it. Evaluations are made
anew once a node or another object is another one, and where pods have terms about each other or somebody watches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.scheduler.engine.evaluation import Evaluations
from pumice.scheduler.engine.rules import PLAINLY

if TYPE_CHECKING:
    from pumice.scheduler.framework.session import Session

MEMORY = "evaluations"  #: its key in the cluster's memory


def evaluations_for(session: Session) -> Evaluations:
    """Those that an earlier session has left, else new ones."""
    basis, found = session.cluster.memory.pop(MEMORY, (None, None))
    if basis is None or basis != _basis(session):
        found = Evaluations(session.cluster, *session.plugins.rules, session.observer.asking)
    return found  # type: ignore[no-any-return]


def leave(session: Session, evaluations: Evaluations) -> None:
    """The session has closed: what lasts is for those to come."""
    basis = _basis(session)
    if basis is not None:
        evaluations.keep_lasting()
        session.cluster.memory[MEMORY] = basis, evaluations


def _basis(session: Session) -> tuple[Any, ...] | None:
    """What they depend on besides what stands on nodes; None where they do not last."""
    cluster = session.cluster
    is_watched = session.observer.watches or session.observer.asking is not PLAINLY
    if is_watched or cluster.with_pod_affinity or not (session.policy.rules_last and session.plugins.are_trusted):
        return None
    return session.policy, cluster.nodes.version, cluster.versions.copy(), len(cluster.dimensions.names), cluster.dimensions.width
