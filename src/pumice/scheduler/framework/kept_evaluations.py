"""Evaluations that later sessions use as well, so that each session asks the rules only about the nodes that have changed.

The rules of a plugin may keep objects of the session for which it was opened, unless the plugin has `rules_last`. Evaluations are made
anew when a node object or another object changes, and in each session if pods have inter-pod affinity or an observer needs full cycles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.scheduler.engine import Evaluation
from pumice.scheduler.engine.evaluations import Evaluations
from pumice.scheduler.engine.rules import PLAINLY, Asking
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import Cluster, Task

if TYPE_CHECKING:
    from pumice.scheduler.framework.session import Session

MEMORY = "evaluations"  #: its key in the cluster's memory


def evaluations_for(session: Session) -> Evaluations:
    """The evaluations that an earlier session has left, if they still hold; else new ones."""
    basis, found = session.cluster.memory.pop(MEMORY, (None, None))
    if basis is None or basis != _basis(session):
        found = Evaluations(session.cluster, *session.plugins.rules, session.observer.asking, shortcuts=session.policy.shortcuts)
    return found  # type: ignore[no-any-return]


def keep_evaluations(session: Session, evaluations: Evaluations) -> None:
    """Keep the evaluations that later sessions may use. Called when the session has closed."""
    basis = _basis(session)
    if basis is not None:
        evaluations.keep_lasting()
        session.cluster.memory[MEMORY] = basis, evaluations


def evaluations_left(cluster: Cluster, policy: Policy) -> Evaluations | None:
    """The evaluations that earlier sessions have left, if they still hold."""
    basis, found = cluster.memory.get(MEMORY, (None, None))
    return found if basis is not None and basis == _state(cluster, policy, PLAINLY, cluster.versions) else None


def evaluation_left(cluster: Cluster, policy: Policy, task: Task) -> Evaluation | None:
    """The evaluation that earlier sessions have left for such tasks, if it still holds."""
    found = evaluations_left(cluster, policy)
    return found.lasting(task) if found is not None else None


def _basis(session: Session) -> tuple[Any, ...] | None:
    """What evaluations depend on besides the tasks on nodes; None if they do not outlive the session."""
    observer, policy = session.observer, session.policy
    in_full = observer.needs_full_cycles or session.cluster.with_pod_affinity
    if in_full or not (policy.shortcuts and policy.rules_last and session.plugins.are_trusted and len(session.nodes)):
        return None
    return _state(session.cluster, policy, observer.asking, session.cluster.versions.copy())


def _state(cluster: Cluster, policy: Policy, asking: Asking, versions: dict[str, int]) -> tuple[Any, ...]:
    nodes, dimensions = cluster.nodes, cluster.dimensions
    return policy, asking, bool(cluster.with_pod_affinity), nodes.version, versions, len(dimensions.names), dimensions.width
