"""Buckets: tasks of a job that should be on the same node.

A bucket belongs to the node where some of its tasks already are, or to no node yet. Tasks that wait are put into the bucket that attracts
them most. Tasks that are placed or taken back in a session move between `waiting` and `on`.
"""

from collections import Counter

import numpy as np

from pumice.scheduler.model import MEMORY, Cluster, Job, Task, Vector
from pumice.scheduler.model.status import ALLOCATED, PENDING, PIPELINED
from pumice.scheduler.plugins.volcano.task_topology.relations import Relations

MIB = 2.0**20


class Bucket:
    """Tasks that are to share a node. `roles` counts all its tasks, wherever they are."""

    def __init__(self, index: int, request: Vector) -> None:
        self.index = index
        self.roles: Counter[str] = Counter()
        self.waiting: dict[str, Task] = {}
        self.request = request  #: sum of `waiting`
        self.on: Counter[int] = Counter()  #: number of tasks by row

    @property
    def size(self) -> float:
        """What the waiting tasks request, as one number: the sum of milli and MiB."""
        return float(self.request.sum() - self.request[MEMORY] * (1 - 1 / MIB))

    def wait(self, task: Task) -> None:
        self.waiting[task.uid] = task
        self.request = self.request + task.template.request

    def stop_waiting(self, task: Task) -> None:
        if self.waiting.pop(task.uid, None) is not None:
            self.request = self.request - task.template.request


class Buckets:
    """The buckets of one job in one session."""

    def __init__(self, job: Job, relations: Relations, cluster: Cluster) -> None:
        self.relations = relations
        self.buckets: list[Bucket] = []
        self.of: dict[str, Bucket] = {}  #: by task uid
        self.placed: dict[str, int] = {}  #: row by uid of the tasks placed in this session
        self.roles_on: dict[int, Counter[str]] = {}  #: by row, the roles of the tasks placed in this session
        self._zero = cluster.dimensions.zeros()
        rows = cluster.nodes.rows
        at_node: dict[str, Bucket] = {}
        for task in sorted((task for task in job.tasks.values() if relations.knows(task.role)), key=self._sort_key):
            if task.node_name:
                bucket = at_node[task.node_name] = at_node.get(task.node_name) or self._new()
                if task.node_name in rows:
                    bucket.on[rows[task.node_name]] += 1
            else:
                bucket = self._most_attractive(task.role) or self._new()
                bucket.wait(task)
            bucket.roles[task.role] += 1
            self.of[task.uid] = bucket
        self.widest = max((sum(bucket.roles.values()) for bucket in self.buckets), default=0)

    def _sort_key(self, task: Task) -> tuple[bool, str, tuple[int, int], str]:
        return not task.node_name, task.node_name, self.relations.rank(task.role), task.name

    def _new(self) -> Bucket:
        self.buckets.append(Bucket(len(self.buckets), self._zero))
        return self.buckets[-1]

    def _most_attractive(self, role: str) -> Bucket | None:
        """The bucket that attracts the role most; of equal ones, the one with the smallest request. None if all repel it."""
        best = min(self.buckets, key=lambda bucket: (-self.relations.pull(role, bucket.roles), bucket.size), default=None)
        return best if best is not None and self.relations.pull(role, best.roles) >= 0 else None

    # -- moves

    def came(self, task: Task) -> None:
        """The task was placed, or its eviction was undone."""
        row, bucket = task.node, self.of.get(task.uid)
        if task.status & (ALLOCATED | PIPELINED):
            self.placed[task.uid] = row
            self.roles_on.setdefault(row, Counter())[task.role] += 1
        if bucket is not None:
            bucket.stop_waiting(task)
            bucket.on[row] += 1

    def went(self, task: Task) -> None:
        """The task's placing was undone, or it was evicted."""
        row, bucket = self.placed.pop(task.uid, None), self.of.get(task.uid)
        if row is None:
            row = task.node
        else:
            self.roles_on[row][task.role] -= 1
        if bucket is not None:
            bucket.on[row] -= 1
            if task.status == PENDING:
                bucket.wait(task)

    # -- rating

    def leftovers(self, bucket: Bucket, task: Task, room: Vector) -> Vector:
        """Per node, how many of the bucket's other waiting tasks must stay out so that the rest fits. `room`: [r, n].

        The task stands for any equal task: if it does not wait itself, an equal task that waits is left out of the others.
        """
        others = sorted(bucket.waiting.values(), key=lambda mate: (mate.template is not task.template, mate is not task, mate.name))[1:]
        most = np.zeros(room.shape[1], int)
        for column in np.flatnonzero(bucket.request):
            rest = bucket.request[column] - np.cumsum([0.0, *(mate.template.request[column] for mate in others)])
            most = np.maximum(most, np.searchsorted(-rest, -room[column], side="right"))
        return np.minimum(most, len(others))
