"""What the scheduler measures: Volcano's metrics under their names (`volcano_`), with their labels and buckets, then our own (`pumice_`).
Those of kube-scheduler's half (`scheduler_`) are in kube_metrics.py.

`observe_*` are called where things happen; the gauges of queues and waiting jobs are computed when somebody scrapes (`measure`), between
two cycles.
"""

import time
from collections import Counter as Counts
from collections.abc import Iterable

import numpy as np

from pumice.http.metrics import Declared, Family, counter, exponential, gauge, histogram, render
from pumice.live.scheduler.kube_metrics import KubeMetrics
from pumice.live.scheduler.queue_metrics import QueueMetrics
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.held_places import GIVEN_BACK, MOVED, held_places
from pumice.scheduler.framework.hook_answers import UNSCHEDULABLE
from pumice.scheduler.framework.past_evictions import EVICTION_LOOP
from pumice.scheduler.framework.plugin_guard import Failure
from pumice.scheduler.model import Cluster, Job, Task, dominant_share

SCHEDULER = "scheduler"  #: the label of the program
MILLIS = exponential(5, 2, 10)
KEPT_JOBS = 100  #: of so many jobs that are gone something may be kept until the next scrape
JOB_MILLIS = exponential(32, 2, 10)


class LiveMetrics(Declared):
    """All metrics of one scheduler."""

    cycles = histogram("volcano_e2e_scheduling_latency_milliseconds", "Duration of a cycle.", MILLIS)
    jobs = histogram("volcano_e2e_job_scheduling_latency_milliseconds", "From a job's creation to its start.", JOB_MILLIS)
    _whose = ("queue", "job_namespace")
    _per_job = ("job_name", *_whose)
    job_duration = gauge("volcano_e2e_job_scheduling_duration", "From a job's creation to its last bind, ms.", *_per_job)
    job_start = gauge("volcano_e2e_job_scheduling_start_time", "When a job was first looked at.", *_per_job)
    job_last = gauge("volcano_e2e_job_scheduling_last_time", "When a pod of a job was last bound.", *_per_job)
    openings = histogram("volcano_open_session_duration_milliseconds", "Duration of a session's opening.", MILLIS)
    actions = histogram("volcano_action_scheduling_latency_milliseconds", "Duration of an action.", MILLIS, "action")
    plugins = histogram(
        "volcano_plugin_scheduling_latency_milliseconds", "Duration of a plugin's opening and closing.", MILLIS, "plugin", "OnSession"
    )
    tasks = histogram("volcano_task_scheduling_latency_milliseconds", "From a pod's creation to a stage.", MILLIS, "stage")
    stages = histogram("volcano_scheduling_stage_duration_milliseconds", "Duration of a stage.", MILLIS, "stage")
    attempts = counter("volcano_schedule_attempts_total", "Attempts to schedule a pod.", "result")
    victims = gauge("volcano_pod_preemption_victims", "Victims of the last cycle that evicted.")
    preemptions = counter("volcano_total_preemption_attempts", "Cycles that evicted.")
    transactions = counter("volcano_eviction_transactions_total", "Evictions for a pod or group, by their cause.", "action")
    unscheduled_tasks = gauge("volcano_unschedule_task_count", "Pods that a job lacks to start.", "job_id")
    unscheduled_jobs = gauge("volcano_unschedule_job_count", "Jobs that cannot start.")
    job_share = gauge("volcano_job_share", "Dominant share of a job.", "job_ns", "job_id")
    retries = counter("volcano_job_retry_counts", "Cycles in which a job could not start.", "job_id")
    config_ok = gauge("pumice_config_last_reload_successful", "1 if the configuration in the file is the one in force.")
    config_at = gauge("pumice_config_last_reload_success_timestamp_seconds", "When the configuration was taken over.")
    waiting_pods = gauge("pumice_waiting_pods", "Pods without a node.")
    binds = counter("pumice_binds_total", "Binds by how they ended.", "result")
    evictions = counter("pumice_evictions_total", "Evictions by how they ended.", "result")
    waiting_because = gauge("pumice_jobs_waiting", "Jobs that wait, by why, as far as they were asked about.", "because", *_whose)
    never_fit = gauge("pumice_jobs_never_fit", "Jobs that can never run here, of those that wait.", *_whose)
    expected = gauge(
        "pumice_expected_start_timestamp_seconds",
        "When a waiting job is expected to start, by rollouts of its forecast.",
        *_per_job,
        "rollout",
    )
    loops = counter("pumice_eviction_loops_total", "Jobs that were evicted again for one that had not started by it.")
    moves = counter("pumice_moves_total", "Pods that were moved to make room for others.")
    held_places = gauge("pumice_held_places", "Places that are held for pods that were moved, and for those that they made room for.")
    given_back = counter("pumice_held_places_given_back_total", "Held places that no pod took in time.")
    writes = counter("pumice_status_writes_total", "Writes of statuses.", "kind", "result")
    refused = counter("pumice_objects_passed_over_total", "Objects that could not be understood.", "kind")
    faults = counter("pumice_requests_amiss_total", "Requests that failed by a fault of ours.", "request")
    failures = counter("pumice_plugin_failures_total", "Cycles in which a plugin failed.", "plugin", "hook")
    failed_cycles = counter("pumice_failed_cycles_total", "Cycles that came to nothing by a fault.")
    state_checks = counter("pumice_state_checks_total", "Recounts of the kept state; one that differs ends the program.")
    leading = gauge("pumice_leading", "1 while this replica leads.", "program")
    clock = gauge("pumice_clock_seconds", "The time of this program's clock, in seconds since 1970.", "program")
    deciding = gauge("pumice_cycle_under_way_seconds", "How long the cycle under way has been deciding; 0 between cycles.")
    silent_extenders = gauge("pumice_extender_silent", "1 while an extender does not answer and is left alone.", "extender")
    expired = counter("pumice_assumptions_expired_total", "Binds and evictions that were granted but not seen in time.")
    events_dropped = gauge("pumice_events_dropped", "Events that were not sent.")

    def __init__(self) -> None:
        super().__init__()
        self.spent = {"Predicate": 0.0, "Scoring": 0.0}  #: seconds of the cycle that filters and scorers took
        self.queues = QueueMetrics()
        self.kube = KubeMetrics()
        self._started: dict[str, tuple[str, str, str]] = {}  #: by uid: the metric labels of jobs whose gang got its nodes
        self._expected: dict[str, tuple[str, str, str]] = {}  #: by uid: the metric labels of jobs with a forecast
        self._began: float | None = None  #: when the cycle began, until its session is open
        self.config_ok.set(1)
        self.leading.set(0, SCHEDULER)

    # ---- what happens

    def cycle_begins(self) -> None:
        self._began = time.perf_counter()

    def session_is_open(self) -> None:
        """Measure the opening of the session. Called at the beginning of each action; the first call in a cycle counts."""
        if self._began is not None:
            self.openings.observe((time.perf_counter() - self._began) * 1000)
            self._began = None

    def observe_cycle(self, decisions: Decisions, now: float, took_s: float) -> None:
        self.cycles.observe(took_s * 1000)
        for stage, seconds in self.spent.items():
            if seconds:
                self.stages.observe(seconds * 1000, stage)
            self.spent[stage] = 0.0
        self.observe_failures(decisions.failures)
        self.attempts.add("scheduled", by=len(decisions.binds))
        self.attempts.add("unschedulable", by=len(decisions.waiting))
        for bind in decisions.binds:
            self.observe_stage(bind.task, "Assumed", now)
        for job in {bind.task.job.uid: bind.task.job for bind in decisions.binds if bind.task.job is not None}.values():
            if job.is_ready:
                self._observe_start(job, now)
        for outcome in decisions.conclusion.outcomes if decisions.conclusion is not None else ():
            if outcome.condition is not None and outcome.condition.type == UNSCHEDULABLE:
                for member in outcome.members:
                    self.retries.add(member.uid)
        for job in decisions.conclusion.at_rest.jobs if decisions.conclusion is not None else ():
            if not job.is_ready:
                self.retries.add(job.uid)
        self.kube.observe(decisions)
        if decisions.evictions:
            self.victims.set(len(decisions.evictions))
            self.preemptions.add()
            for _, action in {(eviction.beneficiary, eviction.action) for eviction in decisions.evictions}:
                self.transactions.add(action)
        by_reason = Counts(event.reason for event in decisions.events)
        for number, reason in ((self.loops, EVICTION_LOOP), (self.moves, MOVED), (self.given_back, GIVEN_BACK)):
            number.add(by=by_reason[reason])

    def observe_failures(self, failures: Iterable[Failure]) -> None:
        for plugin, hook in {(failure.plugin, failure.hook) for failure in failures}:
            self.failures.add(plugin, hook)

    def observe_stage(self, task: Task, stage: str, now: float) -> None:
        """Measure how long after its creation a pod has reached a stage."""
        self.tasks.observe(max(0.0, now - task.created) * 1000, stage)

    def _observe_start(self, job: Job, now: float) -> None:
        """Measure how long after its creation a job's gang, or a further pod of it, got nodes."""
        labels = _labels(job)
        waited_ms = max(0.0, now - job.created) * 1000
        if job.uid not in self._started:
            self.jobs.observe(waited_ms)
            self.job_start.set(job.waiting_since or now, *labels)
        self._started[job.uid] = labels
        self.job_duration.set(waited_ms, *labels)
        self.job_last.set(now, *labels)

    def expect(self, job: Job, median: float, slowest: float) -> None:
        """Take in a forecast of a job's start, in seconds since 1970. What is beyond the forecast is infinite, and not told."""
        self._expected[job.uid] = labels = _labels(job)
        for rollout, at in (("median", median), ("slowest", slowest)):
            if at < np.inf:
                self.expected.set(at, *labels, rollout)

    def keep_few(self, cluster: Cluster) -> None:
        """Drop the metrics of jobs that are gone if these are many: nobody may ever scrape."""
        if max(len(self._started), len(self._expected), len(self.retries)) > 2 * len(cluster.jobs) + KEPT_JOBS:
            self._forget_jobs(cluster)

    def _forget_jobs(self, cluster: Cluster) -> None:
        """Drop the metrics of jobs that are gone, and the forecasts of those that have started."""
        for uid in [uid for uid in self._expected if uid not in cluster.jobs or cluster.jobs[uid].ready_count]:
            labels = self._expected.pop(uid)
            for rollout in ("median", "slowest"):
                self.expected.drop(*labels, rollout)
        for uid in [uid for uid in self._started if uid not in cluster.jobs]:
            labels = self._started.pop(uid)
            for per_job in (self.job_duration, self.job_start, self.job_last):
                per_job.drop(*labels)
        self.retries.keep(lambda labels: labels[0] in cluster.jobs)

    def measure(self, cluster: Cluster) -> None:
        """Set the gauges of jobs and queues."""
        self._forget_jobs(cluster)
        short = [job for job in cluster.waiting.values() if not job.is_ready]
        self.unscheduled_tasks.replace({(job.uid,): float(job.min_member - job.ready_count) for job in short})
        self.unscheduled_jobs.set(len(short))
        self.waiting_pods.set(len(cluster.without_job) + sum(len(job.pending) for job in cluster.waiting.values()))
        total = cluster.nodes.total()
        live = [job for job in cluster.jobs.values() if job.held.any()]
        self.job_share.replace({(job.namespace, job.name): dominant_share(job.held, total) for job in live})
        self.held_places.set(sum(len(held_places(job)) for job in cluster.expecting.values()))
        self.queues.measure(cluster)
        self.kube.measure(cluster)

    def families(self) -> list[Family]:
        return [*self.declared, *self.queues.families, *self.kube.declared]

    def page(self) -> str:
        return render(self.families())


def _labels(job: Job) -> tuple[str, str, str]:
    return job.name, *of_job(job)


def of_job(job: Job) -> tuple[str, str]:
    """The metric labels of a job's queue and namespace."""
    return job.queue.name if job.queue is not None else "", job.namespace
