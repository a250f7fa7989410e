"""task-topology: tasks of a job that talk to one another go to the same node, tasks that disturb one another to different ones.

The PodGroup's annotations say which roles (`volcano.sh/task-topology-affinity: "ps,worker"`). Such a job's tasks are sorted into
buckets when the session opens; a bucket's tasks are placed in a row, on the node that can take most of them.

Buckets: tasks of a job that should be on the same node.

A bucket belongs to the node where some of its tasks already are, or to no node yet. Tasks that wait are put into the bucket that attracts
them most. Tasks that are placed or taken back in a session move between `waiting` and `on`.

The relations between the roles of a job, read from its PodGroup's annotations.
Groups of roles are separated by `;`, roles in a group by `,`. A group of one role is about the tasks of that role, a larger group about
every pair of its roles. A role that no task has, or that occurs twice in a group, makes the whole topology void.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, field

from pumice.api.annotations import TASK_AFFINITY, TASK_ANTI_AFFINITY, TASK_ORDER
from pumice.scheduler.engine import MAX_SCORE, Reach, Scorer, Scores, View
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import EPSILON, MEMORY, Cluster, Job, Task, Vector
from pumice.scheduler.model.status import ALLOCATED, PENDING, PIPELINED

KEYS = (TASK_AFFINITY, TASK_ANTI_AFFINITY, TASK_ORDER)

SELF_ANTI, INTER_AFFINITY, SELF_AFFINITY, INTER_ANTI = 4, 3, 2, 1  #: what a relation adds to its role's importance

Neighbours = dict[str, set[str]]


class Relations:
    """Which roles attract each other, and which avoid each other. A role that attracts or avoids its own tasks is its own neighbour."""

    def __init__(self, affinity: Iterable[list[str]] = (), anti_affinity: Iterable[list[str]] = (), order: Iterable[str] = ()) -> None:
        self.attracts = _neighbours(affinity)
        self.avoids = _neighbours(anti_affinity)
        order = list(order)
        self._precedence = {role: len(order) - position for position, role in enumerate(order)}

    def knows(self, role: str) -> bool:
        """Whether the role has any relation."""
        return role in self.attracts or role in self.avoids

    def rank(self, role: str) -> tuple[int, int]:
        """The sort key of a role: first the roles that the user put first, then those with the stronger relations."""
        return -self._precedence.get(role, 0), -self._importance(role)

    def _importance(self, role: str) -> int:
        attracts, avoids = self.attracts.get(role, set()), self.avoids.get(role, set())
        return max(
            SELF_ANTI * (role in avoids),
            INTER_AFFINITY * bool(attracts - {role}),
            SELF_AFFINITY * (role in attracts),
            INTER_ANTI * bool(avoids - {role}),
        )

    def pull(self, role: str, company: Mapping[str, int]) -> int:
        """How much a task of the role is drawn to other tasks. `company`: their numbers by role."""
        return sum(number for mate, number in company.items() if mate in self.attracts.get(role, ())) + self.push(role, company)

    def push(self, role: str, company: Mapping[str, int]) -> int:
        """The repelling part of `pull`: 0 or less."""
        return -sum(number for mate, number in company.items() if mate in self.avoids.get(role, ()))


def _neighbours(groups: Iterable[list[str]]) -> Neighbours:
    found: Neighbours = {}
    for group in groups:
        for role, mate in permutations(group, 2) if len(group) > 1 else [(group[0], group[0])]:
            found.setdefault(role, set()).add(mate)
    return found


def read_relations(annotations: Mapping[str, str], roles: Collection[str]) -> Relations | None:
    """The relations that the annotations give for a job whose tasks have these roles; None if they give none, or are not valid."""
    if not any(key in annotations for key in KEYS):
        return None
    affinity = _groups(annotations.get(TASK_AFFINITY))
    anti_affinity = _groups(annotations.get(TASK_ANTI_AFFINITY))
    order = annotations[TASK_ORDER].split(",") if TASK_ORDER in annotations else []
    for group in (*affinity, *anti_affinity, order):
        if len(set(group)) < len(group) or not set(group) <= set(roles):
            return None
    return Relations(affinity, anti_affinity, order)


def _groups(text: str | None) -> list[list[str]]:
    return [group.split(",") for group in text.split(";")] if text is not None else []


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
