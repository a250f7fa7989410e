"""task-topology: tasks of a job that talk to one another go to the same node, tasks that disturb one another to different ones.

The PodGroup's annotations say which roles (`volcano.sh/task-topology-affinity: "ps,worker"`). Such a job's tasks are sorted into
buckets when the session opens; a bucket's tasks are placed in a row, on the node that can take most of them.
"""

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, field

from pumice.scheduler.engine import MAX_SCORE, Reach, Scorer, Scores, View
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import EPSILON, Job, Task
from pumice.scheduler.plugins.volcano.task_topology.buckets import Bucket, Buckets
from pumice.scheduler.plugins.volcano.task_topology.relations import KEYS, read_relations


class TaskTopologyArgs(Struct):
    weight: int = field(name="task-topology.weight", default=1)


class TaskTopology(Plugin):
    name = "task-topology"
    reads_only_state = True
    Args = TaskTopologyArgs

    def open(self, session: Session) -> None:
        super().open(session)
        self._managed: dict[str, Buckets] = {}
        for job in session.cluster.waiting.values():
            if any(key in job.annotations for key in KEYS):
                relations = read_relations(job.annotations, {task.role for task in job.tasks.values()})
                if relations is not None:
                    self._managed[job.uid] = Buckets(job, relations, session.cluster)

    def buckets(self, task: Task) -> Buckets | None:
        return self._managed.get(task.job.uid) if task.job is not None else None

    def task_order(self, task: Task) -> tuple[int, ...]:
        """The order of tasks: the bucket with most waiting tasks first; in a bucket, the strongest role; tasks without a bucket last."""
        buckets = self.buckets(task)
        bucket = buckets.of.get(task.uid) if buckets is not None else None
        if buckets is None or bucket is None:
            return (1, 0, 0, 0, 0)
        return (0, -len(bucket.waiting), bucket.index, *buckets.relations.rank(task.role))

    def class_key(self, job: Job) -> str:
        """The job's uid if it has a topology, so that it is like no other job; else empty."""
        return job.uid if any(key in job.annotations for key in KEYS) else ""

    def scorers(self) -> list[Scorer]:
        return [Company(self, self.args.weight)]

    def on_allocate(self, task: Task) -> None:
        if buckets := self.buckets(task):
            buckets.came(task)

    def on_deallocate(self, task: Task) -> None:
        if buckets := self.buckets(task):
            buckets.went(task)


class _Member(NamedTuple):
    task: Task
    buckets: Buckets
    bucket: Bucket


class Company(Scorer):
    """The score of a node: how many tasks of the task's bucket are, or can be, on it, less the tasks there that it avoids."""

    name = "task-topology"
    reach = Reach.CLUSTER

    def __init__(self, plugin: TaskTopology, weight: float) -> None:
        self._plugin = plugin
        self.weight = weight

    def _member(self, task: Task) -> _Member | None:
        buckets = self._plugin.buckets(task)
        bucket = buckets.of.get(task.uid) if buckets is not None else None
        return _Member(task, buckets, bucket) if buckets is not None and bucket is not None else None

    def prepare(self, task: Task) -> Any:
        return self._member(task)

    def key(self, task: Task) -> Hashable:
        member = self._member(task)
        return member and (task.job and task.job.uid, member.bucket.index, task.role)

    def score(self, state: Any, nodes: View) -> Scores:
        task, buckets, bucket = state
        room = nodes.idle + nodes.releasing
        template = task.template
        fits = (room[template.columns] >= template.amounts[:, None]).all(axis=0)
        total = np.full(len(nodes.table), float(len(bucket.waiting)))
        for row, number in bucket.on.items():
            total[row] += number
        for row, company in buckets.roles_on.items():
            total[row] += buckets.relations.push(task.role, company)
        total = total[nodes.row_numbers] - buckets.leftovers(bucket, task, room + EPSILON)
        return np.where(fits, total * MAX_SCORE / buckets.widest, 0.0)
