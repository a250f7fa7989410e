"""Tasks, jobs, nodes and queues as they are sent to an extender: with the field names of Volcano's own structures.

Statuses are the same bits as in `model/status.py`. Amounts are numbers: CPU and scalars in thousandths, memory in bytes.
"""

from __future__ import annotations

from typing import Any

from pumice.api.annotations import REVOCABLE_ZONE
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import CPU, MEMORY, Dimensions, Job, Nodes, Queue, Task, Vector
from pumice.scheduler.model.task import as_pod

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
