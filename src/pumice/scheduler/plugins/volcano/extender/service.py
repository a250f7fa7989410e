"""An extender service: the bodies of its calls, and its rules (a filter, node by node; a scorer of all nodes at once).

Tasks, jobs, nodes and queues as they are sent to an extender: with the field names of Volcano's own structures.
Statuses are the same bits as in `status.py`. Amounts are numbers: CPU and scalars in thousandths, memory in bytes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pumice.api.annotations import REVOCABLE_ZONE
from pumice.scheduler.engine import Filter, Reach, Reason, Refused, Scorer, Scores, View
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import CPU, MEMORY, Dimensions, Job, Nodes, Queue, Task, Vector
from pumice.scheduler.model.task import as_pod
from pumice.scheduler.plugins.volcano.extender.client import ServiceFailure

if TYPE_CHECKING:
    from pumice.scheduler.plugins.volcano.extender import ExtenderPlugin

Body = dict[str, Any]


def resource_body(vector: Vector, dimensions: Dimensions) -> Body:
    scalars = {name: float(vector[at]) for at, name in enumerate(dimensions.names) if at > MEMORY and vector[at]}
    return {"MilliCPU": float(vector[CPU]), "Memory": float(vector[MEMORY]), "ScalarResources": scalars}


def task_body(task: Task, dimensions: Dimensions) -> Body:
    request = resource_body(task.template.request, dimensions)
    return {
        "UID": task.uid,
        "Job": task.job.uid if task.job is not None else "",
        "Name": task.name,
        "Namespace": task.namespace,
        "TaskRole": task.role,
        "Resreq": request,
        "InitResreq": request,
        "NodeName": task.node_name,
        "Status": task.status,
        "Priority": task.priority,
        "Preemptable": task.preemptable,
        "BestEffort": task.best_effort,
        "RevocableZone": task.zone,
        "SchGated": task.gated,
        "Pod": as_pod(task),
    }


def node_body(nodes: Nodes, row: int) -> Body:
    amounts = {
        "Allocatable": nodes.allocatable[:, row],
        "Idle": nodes.row_idle(row),
        "Used": nodes.used[:, row],
        "Releasing": nodes.releasing[:, row],
        "Pipelined": nodes.pipelined[:, row],
    }
    return {
        "Name": nodes.names[row],
        "Node": nodes.wire[row],
        "RevocableZone": nodes.labels(row).get(REVOCABLE_ZONE, ""),
        "Tasks": {task.key: task_body(task, nodes.dimensions) for task in nodes.tasks[row].values()},
        **{name: resource_body(vector, nodes.dimensions) for name, vector in amounts.items()},
    }


def job_body(job: Job, dimensions: Dimensions) -> Body:
    return {
        "UID": job.uid,
        "Name": job.name,
        "Namespace": job.namespace,
        "Queue": job.queue.name if job.queue is not None else "",
        "Priority": job.priority,
        "MinAvailable": job.min_member,
        "TaskMinAvailable": job.role_minimum,
        "Allocated": resource_body(job.held, dimensions),
        "TotalRequest": resource_body(job.held + job.asked, dimensions),
        "Preemptable": job.preemptable,
        "RevocableZone": job.zone,
        "PodGroup": job.group,
        "Tasks": {task.uid: task_body(task, dimensions) for task in job.tasks.values()},
    }


def queue_body(queue: Queue) -> Body:
    return {"UID": queue.name, "Name": queue.name, "Weight": queue.weight, "Queue": queue.wire}


def session_body(session: Session) -> Body:
    """All jobs, nodes and queues, for services that are notified when a session opens."""
    nodes, dimensions = session.nodes, session.cluster.dimensions
    zoned = [row for row in nodes if nodes.labels(row).get(REVOCABLE_ZONE)]
    return {
        "Jobs": {job.uid: job_body(job, dimensions) for job in session.jobs(session.cluster.jobs.values())},
        "Nodes": {nodes.names[row]: node_body(nodes, row) for row in nodes},
        "Queues": {queue.name: queue_body(queue) for queue in session.queues},
        "NamespaceInfo": {},
        "RevocableNodes": {nodes.names[row]: node_body(nodes, row) for row in zoned},
    }


class _AskedAbout:
    """The base of the rules that ask the service: an answer may depend on anything about the task."""

    name = "extender"

    def __init__(self, plugin: ExtenderPlugin, verb: str) -> None:
        self._plugin = plugin
        self._verb = verb

    def key(self, task: Task) -> Hashable:
        return self._plugin.kin(task)


class NodeAnswers:
    """The answers about each node for one task, kept until something on the node changes."""

    def __init__(self, plugin: ExtenderPlugin, verb: str, task: Task) -> None:
        self._plugin, self._verb, self._task = plugin, verb, task
        self._log = plugin.session.cluster.log
        self._position = len(self._log)
        self._reasons: dict[int, Reason | None] = {}

    def refresh(self) -> None:
        for change in self._log[self._position :]:
            self._reasons.pop(change.row, None)
        self._position = len(self._log)

    def of(self, row: int) -> Reason | None:
        if row not in self._reasons:
            self._reasons[row] = self._ask(row)
        return self._reasons[row]

    def _ask(self, row: int) -> Reason | None:
        plugin, nodes = self._plugin, self._plugin.session.nodes
        try:
            return plugin.service.verdict(self._verb, {"task": task_body(self._task, nodes.dimensions), "node": node_body(nodes, row)})
        except ServiceFailure as failure:
            return None if plugin.args.ignorable else Reason(f"extender failed: {failure}", final=True)


class AskedFilter(_AskedAbout, Filter):
    """The filter that asks the extender's predicate, node by node."""

    reach = Reach.NODE

    def prepare(self, task: Task) -> Any:
        return NodeAnswers(self._plugin, self._verb, task) if self._plugin.interested(task) else None

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        state.refresh()
        refused: dict[Reason, list[int]] = {}
        for position, row in enumerate(nodes.row_numbers.tolist()):
            if nodes.table.alive[row] and (reason := state.of(row)) is not None:
                refused.setdefault(reason, []).append(position)
        return [_at(nodes, positions, reason) for reason, positions in refused.items()]


def _at(nodes: View, positions: list[int], reason: Reason) -> Refused:
    where = nodes.nothing()
    where[positions] = True
    return Refused(where, reason)


class Ratings:
    """The extender's scores of all nodes for one task, until anything changes. `failure`: why there are no scores; else empty."""

    def __init__(self, plugin: ExtenderPlugin, verb: str, task: Task) -> None:
        self._plugin, self._verb, self._task = plugin, verb, task
        self._position = -1
        self.scores: Scores = np.zeros(0)
        self.failure = ""

    def refresh(self) -> Ratings:
        log = self._plugin.session.cluster.log
        if self._position != len(log):
            self._position = len(log)
            self._ask()
        return self

    def _ask(self) -> None:
        nodes = self._plugin.session.nodes
        self.scores, self.failure = np.zeros(len(nodes)), ""
        body = {"task": task_body(self._task, nodes.dimensions), "nodes": [node_body(nodes, row) for row in nodes]}
        try:
            for node, score in self._plugin.service.scores(self._verb, body).items():
                if node in nodes.rows:
                    self.scores[nodes.rows[node]] = score
        except ServiceFailure as failure:
            self.failure = str(failure)


class AskedScorer(_AskedAbout, Scorer):
    """The scorer that asks the extender to rate all nodes."""

    reach = Reach.CLUSTER

    def prepare(self, task: Task) -> Any:
        return self._plugin.ratings(task, self._verb)

    def score(self, state: Any, nodes: View) -> Scores:
        return np.asarray(nodes.of(state.refresh().scores), float)


class AskedFailure(_AskedAbout, Filter):
    """Refuses all nodes if an extender that is not ignorable cannot rate them: there is no best node, and the task is not placed."""

    reach = Reach.CLUSTER

    def prepare(self, task: Task) -> Any:
        return self._plugin.ratings(task, self._verb)

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        failure = state.refresh().failure
        return [Refused(~nodes.nothing(), Reason(f"extender failed: {failure}", final=True))] if failure else []
