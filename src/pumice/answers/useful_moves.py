"""Running pods that could run on other nodes, and so make room: one for a waiting pod that nearly fits, or several for a whole gang."""

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from pumice.answers.changes import MovePod
from pumice.answers.subject import waiter
from pumice.answers.trial_cluster import TrialCluster, rehearse_alone
from pumice.api.times import Duration
from pumice.scheduler.actions.consolidate import ConsolidateArgs, MakingRoom
from pumice.scheduler.framework.cycle import RehearsalObserver, rehearse
from pumice.scheduler.framework.policy import Action, Policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.world import World
from pumice.scheduler.model import EPSILON, Cluster, Job, Task, status

MOST_NODES, MOST_PODS = 3, 4  #: how many nodes that nearly fit are looked at, and how many pods of each


def moves(cluster: Cluster, policy: Policy, now: float, world: World, waits: Task) -> Iterator[MovePod]:
    """Moves of single pods after which a node has room for a pod like `waits`, each rehearsed: the pod finds the other node by itself."""
    for row in _nearly_fitting(cluster, waits):
        free = cluster.nodes.idle[:, row]
        running = [task for task in cluster.nodes.tasks[row].values() if task.status == status.RUNNING]
        enough = [task for task in running if (free + task.template.request > waits.template.request - EPSILON).all()]
        for task in sorted(enough, key=lambda each: (float(each.template.request.sum()), each.key))[:MOST_PODS]:
            if node := _elsewhere(cluster, policy, now, world, task):
                yield MovePod(task.key, node)


class _Plan(Action):
    """What the action consolidate would do for one job, whatever it is configured to spare."""

    name = "plan"

    def __init__(self, job: Job) -> None:
        super().__init__(ConsolidateArgs(minimum_run_time=Duration(0), maximum_lost_work=Duration(0), quiet_period=Duration(0)))
        self.moves: tuple[MovePod, ...] = ()
        self._job = job

    def run(self, session: Session) -> None:
        found = MakingRoom(session, self.args).plan(self._job)
        if found is not None:
            self.moves = tuple(MovePod(task.key, session.nodes.names[row]) for task, row in found[0].moves)


def together(cluster: Cluster, policy: Policy, now: float, world: World, job: Job) -> tuple[MovePod, ...]:
    """The moves with which the action consolidate would make room for a job; none if it would find no plan. Where a whole gang would move,
    those of its pods that would come back to their node are left where they are."""
    plan = _Plan(job)
    rehearse(cluster, replace(policy, actions=(plan,)), now, world)
    return tuple(move for move in plan.moves if cluster.tasks[move.pod].node_name != move.node)


def _nearly_fitting(cluster: Cluster, waits: Task) -> list[int]:
    """The rows of nodes that are large enough and lack the smallest part of the request."""
    nodes, needs = cluster.nodes, waits.template.needs
    large, lacks = nodes.alive.copy(), np.zeros(len(nodes))
    for column, amount in needs:
        large &= nodes.allocatable[column] > amount - EPSILON
        lacks += np.maximum(amount - nodes.idle[column], 0.0) / amount
    rows = np.flatnonzero(large & (lacks > 0))
    return [int(row) for row in rows[np.argsort(lacks[rows], kind="stable")][:MOST_NODES]]


def _elsewhere(cluster: Cluster, policy: Policy, now: float, world: World, task: Task) -> str:
    """The node that a running pod would get if its own took no more pods; empty if none."""
    row = task.node
    wire = cluster.nodes.wire[row]
    with TrialCluster(cluster) as trial:
        trial.put("Node", replace(wire, spec=replace(wire.spec, unschedulable=True)))
        trial.move(task, status.PENDING, -1)
        seen = RehearsalObserver()
        decisions = rehearse_alone(cluster, policy, now, waiter(task.job, [task]), world, seen)
        seen.forget()
        place = next((bind.node for bind in decisions.binds if bind.task is task), "")
    return "" if place == wire.metadata.name else place
