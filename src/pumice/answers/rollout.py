"""One possible future of a state: running pods end, jobs come, the scheduler decides. The state itself is changed, and then restored.

The cost follows the events until the wanted jobs have started, not the number of running pods. The scheduler decides when something has
happened, but after a decision it waits a twentieth of the time that the rollout had taken by then: late events are only known roughly.
"""

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from math import inf
from typing import Any, NamedTuple

from pumice.answers.outcome_of_cycles import with_gang
from pumice.answers.trial_cluster import TrialCluster
from pumice.scheduler.config import schedulers_of
from pumice.scheduler.framework.carry_out import carry_out
from pumice.scheduler.framework.cycle import Rehearsal
from pumice.scheduler.framework.decisions import Bind, Evict
from pumice.scheduler.framework.journal import Otherwise
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import COMPLETED, Cluster, Task, status
from pumice.simulate.workload import Work, group_of, instant_text, pods_of, queue

PACE = 1 / 20  #: the least time between two decisions, as a part of the time since the rollout began
PERIOD_S = 1.0  #: from one decision to the next while the scheduler has more to do, and from an eviction until the pod is gone

RUNS = status.BINDING | status.BOUND | status.RUNNING
ACTIVE = RUNS | status.PENDING | status.PIPELINED


class PodBatch(NamedTuple):
    """Pods of a job that began together and end together."""

    tasks: list[Task]
    since: float


class Coming(NamedTuple):
    """A job that will come, and how many seconds it will run."""

    work: Work
    run: float


class Rollout:
    """One rollout. `runs`: how long each existing job, or pod without a job, runs from its start on, by name, in seconds."""

    def __init__(self, cluster: Cluster, policy: Policy, now: float, runs: dict[str, float], batches: Iterable[PodBatch]) -> None:
        self._cluster, self._policy = cluster, policy
        self._began = self._now = self._not_before = now
        self._runs = dict(runs)
        self._starts: dict[str, float] = {}
        self._since: dict[Task, float] = {}  #: the starts of pods that started in this rollout; inf for evicted pods
        self._settles = all(action.settles for action in policy.actions)
        self._is_put_off = False  #: something has happened that waits for the next decision
        ends = ((max(now, batch.since + runs[name_of(batch.tasks[0])]), batch) for batch in batches)
        self._heap: list[tuple[float, int, Callable[[Any], None], Any]] = [
            (end, serial, self._end, batch) for serial, (end, batch) in enumerate(ends) if end < inf
        ]
        self._serial = len(self._heap)
        heapify(self._heap)

    def starts(self, wanted: set[str], promised: Iterable[Coming], coming: Iterator[Coming], until: float) -> dict[str, float]:
        """When the wanted jobs start. Jobs that do not start before `until` are left out. Call this once.

        `promised`: existing jobs whose pods are still to be created.
        """
        with Rehearsal(self._cluster, self._policy) as self._rehearsal, TrialCluster(self._cluster) as self._trial:
            for work, run in promised:
                self._submit(work, run)
            self._expect(coming)
            self._look(self._now)
            while self._heap and self._heap[0][0] <= until and not wanted <= self._starts.keys():
                self._step()
        return {name: when for name, when in self._starts.items() if name in wanted}

    def _at(self, when: float, call: Callable[[Any], None], subject: Any) -> None:
        self._serial += 1
        heappush(self._heap, (when, self._serial, call, subject))

    def _look(self, when: float) -> None:
        """Let the scheduler look at this instant whether there is something to decide."""
        self._at(when, _nothing, None)

    def _step(self) -> None:
        """Carry out all that happens at the next instant, and let the scheduler decide if it is time."""
        self._now = now = self._heap[0][0]
        while self._heap and self._heap[0][0] == now:
            _, _, call, subject = heappop(self._heap)
            call(subject)
        if now >= self._not_before:
            self._is_put_off = False
            self._not_before = now + PACE * (now - self._began)
            self._decide()
        elif not self._is_put_off:
            self._is_put_off = True
            self._look(self._not_before)

    # -- jobs come, and end

    def _expect(self, coming: Iterator[Coming]) -> None:
        """Plan the arrival of the next job. When it comes, the one after it is planned."""
        if (found := next(coming, None)) is not None:
            self._at(found.work.submit, self._come, (found, coming))

    def _come(self, found: tuple[Coming, Iterator[Coming]]) -> None:
        (work, run), others = found
        self._submit(work, run)
        self._expect(others)

    def _submit(self, work: Work, run: float) -> None:
        cluster, trial, created = self._cluster, self._trial, instant_text(work.submit)
        grouped = work.group is not None if work.scheduler else self._policy.places_gangs
        if work.queue not in cluster.queues or cluster.queues[work.queue].wire is None:
            trial.put("Queue", queue(work.queue))
        if grouped:
            trial.put("PodGroup", group_of(work, created))
        for pod in pods_of(work, created, work.scheduler or schedulers_of(self._policy)[0], grouped=grouped):
            trial.put("Pod", pod)
            self._runs[name_of(cluster.tasks[f"{work.namespace}/{pod.metadata.name}"])] = run

    def _end(self, batch: PodBatch) -> None:
        for task in batch.tasks:
            if task.status & RUNS and self._since.get(task, batch.since) == batch.since:
                self._trial.move(task, status.SUCCEEDED, -1)
        job = batch.tasks[0].job
        if job is not None and not job.count(ACTIVE):
            self._trial.phase(job, COMPLETED)

    # -- what the scheduler decides

    def _decide(self) -> None:
        cluster = self._cluster
        if not (cluster.waiting or cluster.without_job or cluster.not_enqueued):
            return
        decisions, take_back = self._rehearsal.cycle(self._now)
        self._trial.note(Otherwise(take_back))
        self._note_starts(decisions.binds)
        carry_out(self._trial, decisions, self._now, self._evict)
        if decisions.again_at < inf:
            self._look(max(self._now, decisions.again_at))
        if not self._settles and (decisions.binds or decisions.evictions) and cluster.waiting:
            self._look(self._now + PERIOD_S)

    def _note_starts(self, binds: list[Bind]) -> None:
        together: dict[str, list[Task]] = {}
        for bind in binds:
            self._since[bind.task] = self._now
            together.setdefault(name_of(bind.task), []).append(bind.task)
        for name, tasks in together.items():
            self._starts.setdefault(name, self._now)
            self._at(self._now + self._runs[name], self._end, PodBatch(tasks, self._now))

    def _evict(self, eviction: Evict) -> None:
        """Evict a pod, with its gang if that cannot go on without it. The work that the pods have done is lost."""
        for task in with_gang(eviction.task):
            if self._since.get(task) == inf:
                continue  # it was evicted with another pod of its gang
            self._since[task] = inf
            if task.status != status.RELEASING:
                self._trial.move(task, status.RELEASING, task.node)
            self._at(self._now + PERIOD_S, self._come_back, task)

    def _come_back(self, task: Task) -> None:
        """Let an evicted pod wait again: it has left its node."""
        self._trial.move(task, status.PENDING, -1)
        self._trial.set(task, disrupted=False, started=None, placed_at=None)


def _nothing(subject: Any) -> None:
    """Do nothing: only the cycle that follows is wanted."""


def name_of(task: Task) -> str:
    """The name of a task's job, or of the pod itself if it has no job."""
    return task.key if task.job is None else task.job.uid
