"""Questions to answers/ that are asked beside the cycles of a scheduler, in a small part of the time, so that they delay no cycle.

`FitQuestions`: can a job ever run? The admission webhook asks, and does not wait: it gets an answer at once, or none. A question costs a
rehearsed cycle, and the next cycle cannot reuse the last one. So questions may take only a part of the time, and a question that comes too
soon after another is not answered.

`Headlines`: why jobs wait, each in one line, as an event of its PodGroup and, in few words, as a metric. Between two cycles, every few
seconds, one job is asked about that has waited for a while, and again much later. So this costs a cycle now and then, however many jobs
wait, and a small part of the time where a cycle takes long. A job that can never run gets an event that says so. Conditions keep Volcano's
and kube-scheduler's texts, which other programs read. A fault of ours in asking is logged once, and that job gets no line.

`Forecasts`: now and then the starts of a few waiting jobs are forecast, and compared with their real starts; `pumice eta` corrects its P90
by that. One rollout is made between two cycles, and all rollouts take a small part of the time. Clusters in which a rollout could take long
are left out. A fault of ours in a forecast is logged once.
"""

import logging
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from math import inf
from typing import Any

import msgspec

from pumice.api import InputError
from pumice.api.kinds import JOBS, group_of
from pumice.api.manifests import WorkloadManifest
from pumice.api.meta import Wire
from pumice.api.pod import Pod
from pumice.api.structs import convert
from pumice.client.event_correlator import EventRecord
from pumice.http.messages import Request, Response
from pumice.live.fault_log import FaultLog
from pumice.live.scheduler.decisions_to_requests import about_group
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.metrics import of_job
from pumice.scheduler.model import Cluster, Job

log = logging.getLogger(__name__)
PATH = "/fits"
FIT_PART = 0.05  #: the part of the time that questions may take
LATER_S = 1.0
MOST_PODS = 1000  #: larger workloads are not looked at: they would delay the cycles


class FitQuestions:
    """Answers whether a job or a pod can ever run."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._free_at = 0.0

    def glance(self, obj: dict[str, Any]) -> str:
        """Why the object can never run; empty if it can, or if the question cannot be answered now."""
        return (self._scheduler.glance(partial(self._asked, obj)) or "") if self._is_free else ""

    async def answer(self, request: Request) -> Response:
        """The answer to an HTTP request that posts the object as JSON."""
        try:
            obj = msgspec.json.decode(request.body, type=dict[str, Any])
        except msgspec.DecodeError as error:
            return Response.text(str(error), 400)
        if not self._is_free:
            return Response.text("ask later", 503)
        self._free_at = inf
        try:
            return Response.text(await self._scheduler.look(partial(self._asked, obj)))
        finally:
            self._free_at = min(self._free_at, time.monotonic() + LATER_S)

    @property
    def _is_free(self) -> bool:
        return time.monotonic() >= self._free_at and self._scheduler.synced.is_set()

    def _asked(self, obj: dict[str, Any], cluster: Cluster) -> str:
        from pumice.answers.submission_check import never_fits  # answers are loaded once somebody asks

        began, now = time.monotonic(), self._scheduler.clock.now()
        try:
            why = never_fits(_pods_of(obj, cluster, now), cluster, self._scheduler.policy, now)
            return f"{obj['kind'].lower()} {obj['metadata']['name']} can never run here: {why}" if why else ""
        except (InputError, AttributeError, KeyError, TypeError, ValueError):
            return ""  # not an object that a server would accept
        except Exception:
            log.exception("whether a %s can ever run could not be found out", obj.get("kind"))
            return ""  # a fault of ours must keep no user from submitting
        finally:
            ended = time.monotonic()
            self._free_at = ended + (ended - began) / FIT_PART


def _pods_of(obj: dict[str, Any], cluster: Cluster, now: float) -> list[tuple[str, Wire]]:
    """The object itself if it is a pod, else the pods that its controller will make, and their PodGroup."""
    if obj["kind"] == "Pod":
        return [("Pod", convert(obj, Pod))]
    if (group_of(obj["apiVersion"]), obj["kind"]) != (JOBS.group, JOBS.kind):
        return []  # a server has filled fields of other workloads with the uid that it gave them
    from pumice.inputs.workloads import expanded, pods_asked  # controllers are loaded once somebody asks

    if pods_asked(obj) > MOST_PODS:
        return []
    queues = [("Queue", queue.wire) for queue in cluster.queues.values() if queue.wire is not None]
    return expanded([WorkloadManifest({**obj, "metadata": {**obj["metadata"], "uid": ""}}, "")], queues, now)


HEADLINES_PERIOD_S = 5.0
HEADLINES_PART = 0.005  #: the part of the time for it; the next cycle costs as much again, since it cannot reuse the last one
GRACE_S = 10.0  #: how long a job must have waited before it is asked about
ASKED_AGAIN_S = 600.0


class Headlines:
    """Asks between cycles why jobs wait, and reports the answers."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._faults = FaultLog(log)
        self._because: dict[str, tuple[float, str]] = {}  #: by uid of a waiting job: when it was asked about, and the answer
        self._never_fit: set[str] = set()  #: uids of those that can never run

    async def run(self) -> None:
        clock, pause_s = self._scheduler.clock, HEADLINES_PERIOD_S
        while True:
            await clock.sleep(pause_s)
            began = clock.now()
            for event in await self._scheduler.look(self._of_the_next):
                self._scheduler.tell(event)
            pause_s = max(HEADLINES_PERIOD_S, (clock.now() - began) / HEADLINES_PART)

    def _of_the_next(self, cluster: Cluster) -> list[EventRecord]:
        now = self._scheduler.clock.now()
        self._because = {uid: why for uid, why in self._because.items() if uid in cluster.waiting}
        job = min((job for job in cluster.waiting.values() if self._is_due(job, now)), key=self._asked_at, default=None)
        found = [] if job is None else self._contained(cluster, job, now)
        self._never_fit &= self._because.keys()
        metrics, jobs = self._scheduler.metrics, cluster.jobs
        counts = Counter((because, *of_job(jobs[uid])) for uid, (_, because) in self._because.items() if because)
        metrics.waiting_because.replace({labels: float(count) for labels, count in counts.items()})
        unfit = Counter(of_job(jobs[uid]) for uid in self._never_fit)
        metrics.never_fit.replace({labels: float(count) for labels, count in unfit.items()})
        return found

    def _contained(self, cluster: Cluster, job: Job, now: float) -> list[EventRecord]:
        try:
            return self._asked(cluster, job, now)
        except Exception as error:
            self._because[job.uid] = now, ""
            self._faults.exception(error, "why PodGroup %s waits could not be found out", job.uid)
            return []

    def _asked(self, cluster: Cluster, job: Job, now: float) -> list[EventRecord]:
        from pumice.answers.can_ever_run import fits  # answers are loaded once a job has waited long enough
        from pumice.answers.why import why

        policy, subject = self._scheduler.policy, f"podgroup/{job.uid}"
        headline = why(cluster, policy, now, subject).headline
        self._because[job.uid] = now, headline.because if headline is not None else ""
        if headline is None:
            return []
        fit = fits(cluster, policy, now, subject)
        (self._never_fit.discard if fit.bound is None else self._never_fit.add)(job.uid)
        if fit.bound is not None:
            return [EventRecord(about_group(job), "Warning", "NeverFits", fit.line)]
        return [EventRecord(about_group(job), "Normal", "Waits", headline.text)]

    def _is_due(self, job: Job, now: float) -> bool:
        return job.has_stored_group and now - job.created >= GRACE_S and now - self._asked_at(job) >= ASKED_AGAIN_S

    def _asked_at(self, job: Job) -> float:
        return self._because.get(job.uid, (0.0, ""))[0]


FORECASTS_PERIOD_S = 600.0
BREATH_S = 1.0  #: the shortest pause between two rollouts
FORECASTS_PART = 0.005  #: the part of the time that rollouts may take
LARGEST = 5_000  #: the most pods and nodes of a cluster with forecasts; a rollout takes 0.3 s there


class Forecasts:
    """Forecasts between cycles when some of the waiting jobs start."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._faults = FaultLog(log)

    async def run(self) -> None:
        while True:
            await self._scheduler.clock.sleep(FORECASTS_PERIOD_S)
            try:
                await self._forecast()
            except Exception as error:
                self._faults.exception(error, "it could not be forecast when jobs start")

    async def _forecast(self) -> None:
        clock, look = self._scheduler.clock, self._scheduler.look
        began = clock.now()
        if not (wanted := await look(_who_is_asked_about)):
            return
        from pumice.answers.eta import ROLLOUTS, Forecast  # the simulator is loaded only where jobs wait

        def rollout(number: int, cluster: Cluster) -> dict[str, float]:
            return Forecast(cluster, self._scheduler.policy, clock.now()).rollout(number, set(wanted))

        rollouts = list[dict[str, float]]()
        for number in range(ROLLOUTS):
            at = clock.now()
            rollouts.append(await look(partial(rollout, number)))
            await clock.sleep(max(BREATH_S, (clock.now() - at) / FORECASTS_PART))
        await look(partial(self._keep, began, {job: sorted(each.get(job, inf) - began for each in rollouts) for job in wanted}))

    def _keep(self, began: float, starts: dict[str, list[float]], cluster: Cluster) -> None:
        from pumice.answers.past_forecasts import past_forecasts

        known = {uid: found for uid, found in starts.items() if uid in cluster.jobs}
        past_forecasts(cluster).made(began, known)
        for uid, found in known.items():
            self._scheduler.metrics.expect(cluster.jobs[uid], began + found[len(found) // 2], began + found[-1])


def _who_is_asked_about(cluster: Cluster) -> Sequence[str]:
    """The uids of some jobs of which no pod has started and that were not forecast before. Notes which of the others have started."""
    from pumice.answers.past_forecasts import past_forecasts, some_of  # answers are loaded when they are due

    known = past_forecasts(cluster)
    for each in [each for each in known if each.started is None]:
        job = cluster.jobs.get(each.job)
        if job is None:
            known.forget(each.job)
        elif (started := _started(job)) is not None:
            known.started(each.job, started)
    if len(cluster.tasks) + len(cluster.nodes) > LARGEST:
        return []
    asked = {each.job for each in known}
    waiting = [uid for uid, job in {**cluster.waiting, **cluster.not_enqueued}.items() if job.group is not None and _started(job) is None]
    return some_of([uid for uid in waiting if uid not in asked])


def _started(job: Job) -> float | None:
    """When the first pod of a job got a node. None if none has one."""
    found = (task.started if task.placed_at is None else task.placed_at for task in job.tasks.values())
    return min((at for at in found if at is not None), default=None)
