"""The scheduler rolled forward from a state, several times: each time running jobs end, and others come, as the past lets expect.

A rollout is a world of its own, made from the state's objects, so that the state itself stays as it is. Nothing is random: how long a job
runs in a rollout follows from its name and the rollout's number, and the jobs that came of late come again, each time from another hour on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple
from zlib import crc32

from msgspec import structs

from pumice.answers.past import SERVICE, WINDOW_S, Guess, Past, owner_of
from pumice.answers.sketch import pod_of
from pumice.api.annotations import GROUP_NAME, TASK_SPEC, USER
from pumice.api.meta import DEFAULT_QUEUE
from pumice.api.quantity import format_milli
from pumice.api.volcano import PodGroupStatus
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.task import Task
from pumice.simulate.life import Life
from pumice.simulate.record import Record
from pumice.simulate.work import Role, Work, role
from pumice.simulate.world import Habits, World

ROLLOUTS = 19  #: the 18th of so many is exceeded by a further one with a chance of one in ten
HORIZON_S = 7 * 86_400.0

STANDS = status.BINDING | status.BOUND | status.RUNNING
WAITS = status.PENDING | status.PIPELINED


class PresentJob(NamedTuple):
    """A job that is there: which of its pods run where since when, and how long it is expected to run."""

    work: Work
    places: dict[int, tuple[str, float]]  #: by number of the pod
    guess: Guess


class Forecast:
    """See the module."""

    def __init__(self, cluster: Cluster, policy: Policy, now: float, past: Past | None = None) -> None:
        self._cluster, self._policy, self._now = cluster, policy, now
        self._past = past or past_of(cluster)
        jobs = sorted((job for job in cluster.jobs.values() if job.group is not None), key=lambda job: job.created)
        self.standing = [self._standing(_work(job, tasks), tasks) for job in jobs if (tasks := _active(job)) or job.is_pending]
        plain = [task for task in cluster.tasks.values() if _is_plain(cluster, task) and task.status & (STANDS | WAITS)]
        self.standing += [self._standing(_lone_work(task), [task]) for task in plain]
        self._recent = [(_fresh(work), self._past.guess(work)) for work in self._past.recent(now)]

    @property
    def sources(self) -> Counter[str]:
        """What run times were guessed from, and of how many jobs."""
        return Counter(each.guess.source for each in self.standing)

    @property
    def arrivals(self) -> int:
        """Jobs that come again each day."""
        return len(self._recent)

    def starts(self, wanted: set[str]) -> dict[str, list[float]]:
        """By job: in how many seconds pods of it start, in each rollout, in order; inf where they do not before the horizon."""
        found = [self._roll(number, wanted) for number in range(ROLLOUTS)]
        return {name: sorted(each.get(name, inf) for each in found) for name in wanted}

    def _roll(self, number: int, wanted: set[str]) -> dict[str, float]:
        starts, until = Starts(), Habits(until=self._now + HORIZON_S)
        world = World(self._twin(), self._policy, self._arrivals(number), starts, until)
        for work, places, guess in self.standing:
            world.resume(replace(work, run=guess.run(_share(work, number))), places)
        starts.when.clear()
        world.look(self._now)
        while not wanted <= starts.when.keys() and world.step():
            pass
        return {name: when - self._now for name, when in starts.when.items()}

    def _twin(self) -> Cluster:
        """The cluster as it is without jobs: nodes, queues, and pods that are none of the scheduler's."""
        cluster = self._cluster
        twin = Cluster(tuple(cluster.schedulers), cluster.default_queue)
        for kind, items in cluster.objects.items():
            for item in items.values():
                twin.put(kind, item)
        for queue in cluster.queues.values():
            if queue.wire is not None:
                twin.put("Queue", queue.wire)
        for row in cluster.nodes.rows.values():
            twin.put("Node", cluster.nodes.wire[row])
        for task in cluster.tasks.values():
            if task.node >= 0 and task.status & status.ON_NODE and not (_is_plain(cluster, task) or _is_grouped(task)):
                twin.put("Pod", pod_of(task, node_name=task.node_name))
        return twin

    def _arrivals(self, number: int) -> Iterator[Work]:
        """What came within the window comes again, over and over."""
        shift = WINDOW_S * number / ROLLOUTS
        turns = sorted(((work.submit - self._now - shift) % WINDOW_S, n) for n, (work, _) in enumerate(self._recent))
        for day in range(int(HORIZON_S // WINDOW_S)):
            for after, n in turns:
                work, guess = self._recent[n]
                again = replace(work, name=f"{work.name}-again-{day}", submit=self._now + day * WINDOW_S + after)
                yield replace(again, run=guess.run(_share(again, number)))

    def _standing(self, work: Work, tasks: list[Task]) -> PresentJob:
        places = {n: (task.node_name, _since(task, self._now)) for n, task in enumerate(tasks) if task.status & STANDS}
        if tasks and tasks[0].controller:
            return PresentJob(work, places, SERVICE)
        elapsed = self._now - min((since for _, since in places.values()), default=self._now)
        return PresentJob(work, places, self._past.guess(work, elapsed))


class Starts(Record):
    """When each job first started pods."""

    def __init__(self) -> None:
        super().__init__()
        self.when: dict[str, float] = {}  #: by "namespace/name"

    def submitted(self, *_: Any, **__: Any) -> None:
        """Nobody asks for anything else."""

    def started(self, life: Life, tasks: Iterable[Task], *, first: bool) -> None:
        self.when.setdefault(name_of(life.work), self.now)

    begin = capacity = stopped = evicted = returned = ended = submitted

    def advance(self, now: float) -> None:
        self.now = now


def name_of(work: Work) -> str:
    return f"{work.namespace}/{work.name}"


def past_of(cluster: Cluster) -> Past:
    """What the state itself tells: pods that have ended, and when everybody came."""
    past = Past()
    for job in sorted((job for job in cluster.jobs.values() if job.group is not None), key=lambda job: job.created):
        tasks = list(job.tasks.values())
        work = _work(job, tasks)
        past.came(work)
        times = [task.ended - task.started for task in tasks if task.ended is not None and task.started is not None]
        if times and not job.count(STANDS | WAITS):
            past.ended(work, max(times))
    return past


def _fresh(work: Work) -> Work:
    """As it was when it came."""
    return work if work.group is None else replace(work, group=structs.replace(work.group, status=PodGroupStatus(phase="Pending")))


def _share(work: Work, number: int) -> float:
    """From 0 to below 1, for each rollout another; one for half of the jobs of an owner, who often run for equally long."""
    name = name_of(work)
    return _hashed(f"{number}/{owner_of(work) if _hashed(name) < 0.5 else name}")


def _hashed(text: str) -> float:
    return crc32(text.encode()) * 2654435761 % 2**32 / 2**32


def _is_plain(cluster: Cluster, task: Task) -> bool:
    """Whether it is the scheduler's, without being a member of anything."""
    return task.job is None and task.template.scheduler_name in cluster.schedulers


def _is_grouped(task: Task) -> bool:
    return task.job is not None and task.job.group is not None


def _active(job: Job) -> list[Task]:
    return [task for task in job.tasks.values() if task.status & (STANDS | WAITS)]


def _since(task: Task, now: float) -> float:
    since = task.started if task.started is not None else task.placed_at
    return now if since is None else min(since, now)


def _work(job: Job, tasks: list[Task]) -> Work:
    """Of those whose pods are not made yet, as many as it needs, of what it needs."""
    assert job.group is not None
    spec = job.group.spec
    roles = tuple(map(_role, tasks)) or _promised(job)
    least = max(0, job.min_member - job.counts[status.SUCCEEDED])
    begun = structs.replace(job.group.status, phase=job.phase)
    group = structs.replace(job.group, spec=structs.replace(spec, min_member=least), status=begun)
    return Work(
        job.name,
        job.created,
        inf,
        roles,
        spec.queue or DEFAULT_QUEUE,
        job.annotations.get(USER, ""),
        estimate=job.estimate,
        minimum=None if least == sum(role.count for role in roles) else least,
        namespace=job.namespace,
        group=group,
        scheduler=tasks[0].template.scheduler_name if tasks else "",
    )


def _lone_work(task: Task) -> Work:
    """Of a pod that is a member of nothing."""
    return Work(
        task.name,
        task.created,
        inf,
        (_role(task),),
        user=task.annotations.get(USER, ""),
        namespace=task.namespace,
        scheduler=task.template.scheduler_name,
    )


def _role(task: Task) -> Role:
    annotations = {key: value for key, value in task.annotations.items() if key != GROUP_NAME}
    return Role(1, structs.replace(task.template.spec, node_name=None), annotations, dict(task.labels))


def _promised(job: Job) -> tuple[Role, ...]:
    """The pods that its controller makes as soon as it is let in, of the roles that its group counts."""
    count = max(1, job.min_member)
    spec = job.group.spec if job.group is not None else None
    least = (spec.min_resources if spec is not None else None) or {}
    equal = role(count, {name: format_milli(amount.milli // count) for name, amount in least.items()})
    members = (spec.min_task_member if spec is not None else None) or {}
    return tuple(Role(number, equal.spec, {TASK_SPEC: name}) for name, number in members.items() if number) or (equal,)
