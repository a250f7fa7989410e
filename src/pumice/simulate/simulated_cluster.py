"""A simulated cluster: one heap of future events, the scheduler's state of a cluster, and the scheduler, which decides whenever something
has changed.

The events of one instant happen in a fixed order: runs end, evicted pods are gone, nodes come and go, jobs arrive; then the scheduler
decides, once. The cost follows the number of events, not the simulated time. Nothing here is random: random values were drawn before.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from heapq import heappop, heappush
from math import inf
from typing import Any

from pumice.api import InputError
from pumice.api.core import Node
from pumice.scheduler.config import schedulers_of
from pumice.scheduler.framework.carry_out import carry_out
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions, Evict
from pumice.scheduler.framework.job_status import phase_of
from pumice.scheduler.framework.observer import SILENT, ReasonReader
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import Cluster, Task, status
from pumice.simulate.job_runs import Life, Run, job_of
from pumice.simulate.record import Record
from pumice.simulate.waiting_reasons import Reasons
from pumice.simulate.workload import Work, class_name, group_of, instant_text, pods_of, priority_class, queue

PERIOD_S = 1.0  #: between two cycles of a scheduler that has more to do
EVICTED_ON_AND_ON = "pods were evicted again and again"
PROMISED_ON_AND_ON = "so many jobs waited that were all promised room in each cycle"
READER = ReasonReader()


class Rank(IntEnum):
    """The order in which the events of one instant happen."""

    END = 0
    GONE = 1
    NODE = 2
    ARRIVAL = 3
    AGAIN = 4  #: the scheduler asked for another cycle


@dataclass(frozen=True)
class Habits:
    """How the cluster behaves where the workload does not say it."""

    grace_s: float = 1.0  #: seconds from an eviction until the pod is gone
    kill_at_estimate: bool = False  #: whether a job that runs longer than its estimate is killed
    until: float = inf  #: when the simulation ends, even if jobs still run
    most_evictions: float = inf  #: of pods, after which the simulation ends: those that evict each other may never come to rest
    most_promises: float = inf  #: of room to waiting jobs, after which it ends: conservative backfill makes them anew in each cycle
    measured_until: float = inf  #: no job that comes from then on is measured; the simulation ends with the last one that is
    keeps_places: bool = False  #: whether a pod that runs runs to its end, whatever is decided later
    tells_reasons: bool = True  #: whether it is recorded why jobs wait, for which the scheduler looks at all of them in each cycle


class SimulatedCluster:
    """A cluster in simulated time, until nothing more happens in it."""

    def __init__(
        self, cluster: Cluster, policy: Policy, jobs: Iterable[Work], record: Record, habits: Habits = Habits(), origin: float = 0.0
    ) -> None:
        """`origin`: seconds since 1970 at the workload's 0."""
        self.cluster = cluster
        self.policy = policy
        self.record = record
        self.habits = habits
        self._observer = READER if habits.tells_reasons else SILENT
        self.now = -inf
        self._origin = origin
        self._jobs: Iterator[Work] = iter(jobs)
        self._heap: list[tuple[float, Rank, int, Callable[[Any], None], Any]] = []
        self._serial = 0
        self._number = 0
        self._lives: dict[str, Life] = {}  #: by uid, of jobs that have not ended, in order of arrival
        self._reasons = Reasons(self._lives)
        self.skew_s = 0.0  #: how many seconds the scheduler's clock is ahead
        self._evicted = 0  #: pods
        self._promised = 0
        self._promises_all = any(getattr(action.args, "backfill", "") == "conservative" for action in policy.actions)
        self._unplaced = 0  #: pods of measured jobs that wait
        self._unfinished = 0  #: measured jobs that have not ended
        self._away = False  #: whether the scheduler is away
        self._has_changed = False  #: whether something has changed since the last cycle
        self._settles = all(action.settles for action in policy.actions)
        self._scheduler = schedulers_of(policy)[0]
        self._grouped = policy.places_gangs
        self._submit_next()
        record.begin(self._heap[0][0] if self._heap else 0.0, cluster)

    # -- time

    def at(self, when: float, rank: Rank, call: Callable[[Any], None], subject: Any) -> None:
        self._serial += 1
        heappush(self._heap, (when, rank, self._serial, call, subject))

    def play(self) -> None:
        """Carry out events until no more can happen, or until the habits end the simulation."""
        while self.step():
            pass
        if self.now == -inf:
            return  # there was not a single job
        for life in self._lives.values():
            self._reasons.settle(self.cluster.jobs.get(life.uid))
        self.record.close(self._lives.values())

    def step(self) -> bool:
        """Carry out all events of the next instant. Return whether there was one."""
        heap = self._heap
        if not heap or heap[0][0] > self.habits.until or self._gives_up() or (heap[0][1] is Rank.NODE and self._all_over):
            return False
        if not self._unfinished and self._is_settled:
            return False
        self.now = now = heap[0][0]
        self.record.advance(now)
        self.cluster.clock = self._origin + now + self.skew_s
        while heap and heap[0][0] == now:
            _, rank, _, call, subject = heappop(heap)
            call(subject)
            self._has_changed = self._has_changed or rank is not Rank.GONE or bool(subject)
        if self._has_changed and self._anybody_waits and not self._away and not self._is_settled:
            self._has_changed = False
            self._promised += self._promises_all * len(self.cluster.waiting)
            self.record.turns += len(self.cluster.waiting) + len(self.cluster.not_enqueued)
            self._carry_out(cycle(self.cluster, self.policy, self.cluster.clock, observer=self._observer))
        return True

    def _gives_up(self) -> bool:
        """Whether going on would take too long. What is counted is work, not time, so it is the same on every machine."""
        if self._evicted > self.habits.most_evictions:
            self.record.given_up = EVICTED_ON_AND_ON
        elif self._promised > self.habits.most_promises:
            self.record.given_up = PROMISED_ON_AND_ON
        return bool(self.record.given_up)

    @property
    def _all_over(self) -> bool:
        """Whether every job has ended, and none will come."""
        return not self._lives and not any(rank is Rank.ARRIVAL for _, rank, *_ in self._heap)

    @property
    def _is_settled(self) -> bool:
        """Whether nothing that is decided from now on changes what is measured."""
        return self.now >= self.habits.measured_until and not (self._unplaced if self.habits.keeps_places else self._unfinished)

    @property
    def _anybody_waits(self) -> bool:
        return bool(self.cluster.waiting or self.cluster.without_job or self.cluster.not_enqueued)

    # -- jobs come

    def _submit_next(self) -> None:
        work = None if self._is_settled else next(self._jobs, None)
        if work is not None:
            if work.submit < self.now:
                raise not_in_order(work)
            self.at(work.submit, Rank.ARRIVAL, self._arrive, work)

    def _arrive(self, work: Work) -> None:
        self._submit(work)
        self._submit_next()

    def _submit(self, work: Work) -> Life:
        cluster, created = self.cluster, instant_text(self._origin + work.submit)
        life = Life(self._number, work)
        self._number += 1
        if life.uid in self._lives:
            raise InputError(f"two jobs are called {work.name}; names must differ while both are there")
        if work.queue not in cluster.queues or cluster.queues[work.queue].wire is None:
            cluster.put("Queue", queue(work.queue))
        if work.priority and class_name(work.priority) not in cluster.of("PriorityClass"):
            cluster.put("PriorityClass", priority_class(work.priority))
        if work.is_grouped(self._grouped):
            cluster.put("PodGroup", group_of(work, created, owned=True))
        self._lives[life.uid] = life
        self._unfinished += work.measured
        self._make_pods(life, created)
        self.record.submitted(life)
        return life

    def resume(self, work: Work, places: Mapping[int, tuple[str, float]]) -> None:
        """Add a job that exists when the simulation begins. `places`: by pod number, the node where the pod runs, and since when."""
        life = self._submit(work)
        starts = []
        for index, (node, since) in places.items():
            task = self.cluster.tasks[f"{life.uid}-{index}"]
            self.cluster.start(task, self.cluster.nodes.rows[node], self._origin + since, {})
            starts.append((task, since))
        self._began(starts)

    def look(self, when: float) -> None:
        """Let the scheduler decide at this instant, even if nothing else happens then."""
        self.at(when, Rank.AGAIN, _nothing, None)

    def _make_pods(self, life: Life, created: str, only: frozenset[str] | None = None) -> None:
        work = life.work
        for pod in pods_of(work, created, work.scheduler or self._scheduler, grouped=work.is_grouped(self._grouped)):
            if only is None or pod.metadata.identity in only:
                self.cluster.put("Pod", pod)
                self._unplaced += work.measured

    # -- what the scheduler decided

    def _carry_out(self, decisions: Decisions) -> None:
        carry_out(self.cluster, decisions, self._origin + self.now, self._evict)
        self._began([(bind.task, self.now) for bind in decisions.binds])
        if self.habits.tells_reasons:
            self._reasons.take(decisions)
        if not self._settles and not self._anybody_waits:  # no cycle before the next event would set the phase
            for job in {bind.task.job: None for bind in decisions.binds if bind.task.job is not None}:
                self.cluster.set_phase(job, phase_of(job, unschedulable=False))
        if decisions.again_at < inf:
            self.look(max(self.now, decisions.again_at - self._origin - self.skew_s))
        if self.cluster.waiting and has_more_to_do(self.policy, decisions):
            self.look(self.now + PERIOD_S)

    def _began(self, starts: Iterable[tuple[Task, float]]) -> None:
        """Note that pods run, and since when."""
        together: dict[tuple[int, float, float], Run[Task]] = {}
        for task, since in starts:
            life = self._lives[job_of(task)]
            length = life.length(task.uid, task.name)
            run = together.get((life.number, length, since))
            if run is None:
                run = together[life.number, length, since] = Run(life, {}, since, length)
            run.tasks[task.uid] = task
        for run in together.values():
            life = run.life
            first = life.start is None
            if first:
                self._reasons.settle(self.cluster.jobs.get(life.uid))
                life.start = run.began
            life.runs.append(run)
            self._unplaced -= len(run.tasks) * life.work.measured
            self.record.started(life, run.tasks.values(), first=first)
            self.at(run.began + self._allowed(life, run.length), Rank.END, self._end, run)

    def _allowed(self, life: Life, length: float) -> float:
        estimate = life.work.estimate
        return min(length, estimate) if self.habits.kill_at_estimate and estimate is not None else length

    # -- runs end

    def _end(self, run: Run[Task]) -> None:
        """End a run. Nothing happens if all of its pods were evicted."""
        life = run.life
        if not run.tasks:
            return
        life.unfinished -= len(run.tasks)
        life.runs.remove(run)
        ends = "" if life.unfinished else "killed" if self._allowed(life, run.length) < run.length else "done"
        done = self.now - run.began
        self.record.stopped(life, run.tasks.values(), done, kept=done, ends=ends)
        for task in run.tasks.values():
            task.ended = self._origin + self.now
        if life.unfinished:
            for task in run.tasks.values():
                self.cluster.move(task, status.SUCCEEDED, -1)
            return
        life.end = self.now
        self._unfinished -= life.work.measured
        self._forget(life)
        self.record.ended(life)

    def _forget(self, life: Life) -> None:
        cluster, job = self.cluster, self.cluster.jobs.get(life.uid)
        del self._lives[life.uid]
        if job is not None:
            cluster.remove_job(job)
            return
        for index in range(life.pods):
            cluster.remove("Pod", f"{life.uid}-{index}")

    # -- evictions

    def _evict(self, eviction: Evict, gone: frozenset[str] = frozenset()) -> None:
        """Evict a pod, or its whole job if that cannot go on without it. `gone` are the uids of pods that need no time to end."""
        life = self._lives[job_of(eviction.task)]
        if life.run_of(eviction.task.uid) is None:
            return  # it was evicted with another pod of its job
        victims = [task for each in life.runs for task in each.tasks.values()] if life.work.restarts_whole else [eviction.task]
        for task in victims:
            self._interrupt(life, task)
        self._evicted += len(victims)
        self.record.evicted(life, victims, eviction.action, eviction.beneficiary)
        leaves_s = 0.0 if all(task.uid in gone for task in victims) else self.habits.grace_s
        self.at(self.now + leaves_s, Rank.GONE, self._gone, (life, victims))

    def _interrupt(self, life: Life, task: Task) -> None:
        run = life.run_of(task.uid)
        assert run is not None
        done, kept = life.interrupt(run, task.uid, self.now)
        self.record.stopped(life, [task], done, kept=kept)
        if task.status != status.RELEASING:
            self.cluster.move(task, status.RELEASING, task.node)

    def _gone(self, gone: tuple[Life, list[Task]]) -> None:
        """Remove evicted pods, and create them again, to wait."""
        life, victims = gone
        for task in victims:
            self.cluster.remove("Pod", task.key)
        self.record.returned(life)
        self._make_pods(life, instant_text(self._origin + self.now), frozenset(task.uid for task in victims))

    # -- what goes wrong

    @property
    def goes_on(self) -> bool:
        """Whether anything still happens apart from faults."""
        ahead = any(rank in (Rank.GONE, Rank.ARRIVAL) for _, rank, *_ in self._heap)
        return ahead or any(life.runs for life in self._lives.values())

    def end_work(self) -> Callable[[], None] | None:
        """Let the scheduler decide nothing until the returned function is called. None if it is away already."""
        if self._away:
            return None
        self._away = True
        return self._return

    def _return(self) -> None:
        self._away = False

    def join(self, node: Node) -> None:
        self.cluster.put("Node", node)
        self.record.node("node-join", node.metadata.name, self.cluster)

    def fail(self, name: str) -> None:
        """Remove a node. Its pods are lost with it, at once."""
        row = self.cluster.nodes.rows.get(name)
        if row is None:
            return
        lost = [*self.cluster.nodes.tasks[row].values()]
        gone = frozenset(task.uid for task in lost)
        for task in lost:
            self._evict(Evict(task, name, "", "node-fail"), gone)
        self.cluster.remove("Node", name)
        self.record.node("node-fail", name, self.cluster)


def not_in_order(work: Work) -> InputError:
    return InputError(f"job {work.name} was submitted at {work.submit:g}, before one that stands above it; sort the jobs by submission")


def has_more_to_do(policy: Policy, decisions: Decisions) -> bool:
    """Whether another cycle might find something to do although nothing happens."""
    if all(action.settles for action in policy.actions):
        return any(bind.task.job is not None and bind.task.job.pending for bind in decisions.binds)
    return bool(decisions.binds or decisions.evictions)


def _nothing(subject: Any) -> None:
    """Do nothing: only the cycle that follows is wanted."""
