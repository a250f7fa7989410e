"""When does a job start? P50 and P90 of a forecast's rollouts, corrected by what became of earlier forecasts.

A `Forecast` rolls the scheduler forward from a state, several times. Each time running jobs end, and new jobs come, as the past suggests.
Nothing is random: how long a job runs in a rollout follows from its name and the rollout's number. The jobs that came recently come
again, in each rollout from another hour on.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from math import inf
from typing import NamedTuple
from zlib import crc32

from msgspec import Struct, structs

from pumice.answers.past_forecasts import past_forecasts
from pumice.answers.pod_quota import withdraw_refused
from pumice.answers.pods_to_come import promise, roles_to_come
from pumice.answers.rollout import Coming, PodBatch, Rollout
from pumice.answers.run_times import SERVICE, WINDOW_S, Guess, Past, RunTimes, owner_of
from pumice.answers.subject import NAMESPACED, find, who_waits
from pumice.answers.trial_cluster import TrialCluster
from pumice.api import rfc3339
from pumice.api.annotations import GROUP_NAME, OF_PLACES, USER
from pumice.api.defaults import DEFAULT_QUEUE
from pumice.api.volcano import PodGroupStatus
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import Cluster, Job, Task, status
from pumice.simulate.workload import Role, Work

ROLLOUTS = 9  #: with a chance of one in ten, a further rollout would come after all of these
HORIZON_S = 7 * 86_400.0
ALIKE = 0.5  #: the part of an owner's jobs that run equally long in a rollout

STANDS = status.BINDING | status.BOUND | status.RUNNING
WAITS = status.PENDING | status.PIPELINED


class PlacedForecast(NamedTuple):
    """An existing job, or a pod without a job: its pods that hold nodes, and how long it is expected to run."""

    name: str
    seed: str  #: its run times in the rollouts follow from it
    batches: list[PodBatch]
    guess: Guess
    promised: Work | None  #: the job with the pods that it will have, if none exists yet


class Forecast:
    """Forecasts when jobs start, by several rollouts of the same state."""

    def __init__(self, cluster: Cluster, policy: Policy, now: float, past: Past | None = None) -> None:
        self._cluster, self._policy, self._now = cluster, policy, now
        jobs = sorted((job for job in cluster.jobs.values() if job.group is not None), key=lambda job: job.created)
        works = {job.uid: _work(cluster, job, list(job.tasks.values())) for job in jobs}
        past = past or past_of(works, cluster)
        there = [(works[job.uid], tasks) for job in jobs if (tasks := _active(job)) or job.is_pending]
        plain = [task for task in cluster.tasks.values() if _is_plain(cluster, task) and task.status & (STANDS | WAITS)]
        there += [(_lone_work(task), [task]) for task in plain]
        stand = [(work, tasks, _batches(tasks, now)) for work, tasks in there]
        running = ((work, _first(batches)) for work, tasks, batches in stand if batches and not _is_service(tasks))
        run_times = RunTimes(past, now, running)
        self.placed = [self._placed(work, tasks, batches, run_times) for work, tasks, batches in stand]
        self._recent = [(_fresh(work), run_times.guess(work)) for work in past.recent(now)]

    @property
    def sources(self) -> Counter[str]:
        """The sources from which run times were guessed, each with its number of jobs."""
        return Counter(each.guess.source for each in self.placed)

    @property
    def arrivals(self) -> int:
        """The number of jobs that come again each day."""
        return len(self._recent)

    def starts(self, wanted: set[str]) -> dict[str, list[float]]:
        """By job, in how many seconds its first pods start: one value per rollout, in ascending order; inf if not before the horizon."""
        found = [self.rollout(number, wanted) for number in range(ROLLOUTS)]
        return {name: sorted(each.get(name, inf) - self._now for each in found) for name in wanted}

    def rollout(self, number: int, wanted: set[str]) -> dict[str, float]:
        """The instants at which the wanted jobs start in one rollout. Jobs that do not start before the horizon are left out."""
        runs = {each.name: each.guess.run(_share(each.seed, number)) for each in self.placed}
        batches = (batch for each in self.placed for batch in each.batches)
        promised = [Coming(each.promised, runs[each.name]) for each in self.placed if each.promised is not None]
        rollout = Rollout(self._cluster, self._policy, self._now, runs, batches)
        return rollout.starts(wanted, promised, self._arrivals(number), self._now + HORIZON_S)

    def _arrivals(self, number: int) -> Iterator[Coming]:
        """The jobs that came within the window, which come again in every window up to the horizon."""
        shift = WINDOW_S * number / ROLLOUTS
        turns = sorted(((work.submit - self._now - shift) % WINDOW_S, n) for n, (work, _) in enumerate(self._recent))
        for day in range(int(HORIZON_S // WINDOW_S)):
            for after, n in turns:
                work, guess = self._recent[n]
                again = replace(work, name=f"{work.name}-again-{day}", submit=self._now + day * WINDOW_S + after)
                yield Coming(again, guess.run(_share(_seed(again), number)))

    def _placed(self, work: Work, tasks: list[Task], batches: list[PodBatch], run_times: RunTimes) -> PlacedForecast:
        elapsed = self._now - _first(batches) if batches else 0.0
        guess = SERVICE if _is_service(tasks) else run_times.guess(work, elapsed)
        return PlacedForecast(f"{work.namespace}/{work.name}", _seed(work), batches, guess, None if tasks else work)


def past_of(works: dict[str, Work], cluster: Cluster) -> Past:
    """The past as far as the state shows it: the jobs whose pods have ended, and when all jobs came."""
    past = Past()
    over: list[tuple[float, float, str]] = []
    for uid, work in works.items():
        job = cluster.jobs[uid]
        past.came(work)
        times = [
            (task.ended, task.ended - task.started) for task in job.tasks.values() if task.ended is not None and task.started is not None
        ]
        if times and not job.count(STANDS | WAITS):
            over.append((max(at for at, _ in times), max(run for _, run in times), uid))
    for at, run, uid in sorted(over):
        past.ended(works[uid], run, at)
    return past


def _fresh(work: Work) -> Work:
    """The job as it was when it came."""
    return work if work.group is None else replace(work, group=structs.replace(work.group, status=PodGroupStatus(phase="Pending")))


def _seed(work: Work) -> str:
    """The seed of a job's run times: its name, or for some jobs their owner, since jobs of one owner often run equally long."""
    name = f"{work.namespace}/{work.name}"
    return owner_of(work) if _hashed(name) < ALIKE else name


def _share(seed: str, number: int) -> float:
    """A number from 0 to below 1, which differs from rollout to rollout."""
    return _hashed(f"{number}/{seed}")


def _hashed(text: str) -> float:
    return crc32(text.encode()) * 2654435761 % 2**32 / 2**32


def _is_plain(cluster: Cluster, task: Task) -> bool:
    """Whether the pod belongs to this scheduler and to no job."""
    return task.job is None and task.template.scheduler_name in cluster.schedulers


def _active(job: Job) -> list[Task]:
    return [task for task in job.tasks.values() if task.status & (STANDS | WAITS)]


def _is_service(tasks: list[Task]) -> bool:
    return bool(tasks and tasks[0].controller)


def _batches(tasks: list[Task], now: float) -> list[PodBatch]:
    """The tasks that hold nodes, grouped by their start."""
    since: dict[float, list[Task]] = {}
    for task in tasks:
        if task.status & STANDS:
            since.setdefault(_since(task, now), []).append(task)
    return [PodBatch(those, when) for when, those in since.items()]


def _first(batches: list[PodBatch]) -> float:
    """The instant at which the first batch began."""
    return min(batch.since for batch in batches)


def _since(task: Task, now: float) -> float:
    since = task.started if task.started is not None else task.placed_at
    return now if since is None else min(since, now)


def _work(cluster: Cluster, job: Job, tasks: list[Task]) -> Work:
    """A job with these tasks, as work. If it has no tasks yet: with the pods that its controller will make."""
    assert job.group is not None
    spec = job.group.spec
    alike = groupby(tasks, key=lambda task: task.template)
    roles = tuple(_role(list(equal)) for _, equal in alike) or roles_to_come(cluster, job)
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
    """A pod without a job, as work."""
    return Work(
        task.name,
        task.created,
        inf,
        (_role([task]),),
        user=task.annotations.get(USER, ""),
        namespace=task.namespace,
        scheduler=task.template.scheduler_name,
    )


def _role(equal: list[Task]) -> Role:
    """Equal tasks as a role. Labels and annotations are those of the first task."""
    task = equal[0]
    annotations = {key: value for key, value in task.annotations.items() if key != GROUP_NAME and key not in OF_PLACES}
    return Role(len(equal), structs.replace(task.template.spec, node_name=None), annotations, dict(task.labels))


class Eta(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """When a subject starts, in seconds from now on; None if not within the horizon."""

    subject: str
    state: str = "waits"  #: "runs" if the subject does not wait
    p50: float | None = None
    p90: float | None = None
    p50_at: str | None = None
    p90_at: str | None = None
    run_times: dict[str, int] = {}  #: the sources from which they were guessed, each with its number of jobs
    arrivals: int = 0  #: jobs that came within the last day, and come again
    past_forecasts: int = 0  #: the number of earlier forecasts by which P90 was corrected

    @property
    def moments(self) -> tuple[tuple[str, float | None, str | None], ...]:
        return ("P50", self.p50, self.p50_at), ("P90", self.p90, self.p90_at)


def eta(cluster: Cluster, policy: Policy, now: float, subject: str, past: Past | None = None) -> Eta:
    """When `job/x`, `podgroup/x` or `pod/x` starts. The cluster is afterwards as it was. Raises InputError."""
    asked = find(cluster, subject, kinds=NAMESPACED)
    waits = who_waits(cluster, asked)
    job = waits.job
    if not waits.tasks and (job is None or job.tasks):
        return Eta(str(asked), "runs")
    name = job.uid if job is not None else waits.tasks[0].key
    return _etas(cluster, policy, now, {name: str(asked)}, past)[name]


def etas(cluster: Cluster, policy: Policy, now: float) -> dict[str, Eta]:
    """When each waiting PodGroup starts, by "namespace/name"."""
    waiting = {**cluster.waiting, **cluster.not_enqueued}
    return _etas(cluster, policy, now, {uid: f"podgroup/{uid}" for uid, job in waiting.items() if job.group is not None}, None)


def _etas(cluster: Cluster, policy: Policy, now: float, wanted: dict[str, str], past: Past | None) -> dict[str, Eta]:
    with TrialCluster(cluster) as trial:
        for job in [job for job in cluster.jobs.values() if job.group is not None and 0 < job.valid_count < job.min_member]:
            promise(trial, job)  # the rest of its pods: those that quotas allow by now
        withdraw_refused(trial)
        forecast, past_ones = Forecast(cluster, policy, now, past), past_forecasts(cluster)
        sources = dict(forecast.sources)
        return {
            name: Eta(wanted[name], "waits", *_moments(past_ones.quantiles(starts, now), now), sources, forecast.arrivals, len(past_ones))
            for name, starts in forecast.starts(set(wanted)).items()
        }


def _moments(quantiles: tuple[float, float], now: float) -> tuple[float | None, float | None, str | None, str | None]:
    seconds = [None if each == inf else each for each in quantiles]
    at = [None if each is None else rfc3339(now + each) for each in seconds]
    return seconds[0], seconds[1], at[0], at[1]
