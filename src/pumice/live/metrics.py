"""What the scheduler measures: Volcano's metrics under their names (`volcano_`), with their labels and buckets, then our own (`pumice_`).

`observe_*` are called where things happen; the gauges of queues and waiting jobs are computed when somebody scrapes (`measure`), between
two cycles.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TypeVar

from pumice.framework.containment import Failure
from pumice.framework.decisions import Decisions
from pumice.framework.verdict import UNSCHEDULABLE
from pumice.live.exposition import Counter, Family, Gauge, Histogram, exponential, render
from pumice.live.queue_metrics import QueueMetrics
from pumice.model.cluster import Cluster
from pumice.model.job import Job
from pumice.model.resources import dominant_share
from pumice.model.task import Task

F = TypeVar("F", bound=Family)
MILLIS = exponential(5, 2, 10)
JOB_MILLIS = exponential(32, 2, 10)


class LiveMetrics:
    """All metrics of one scheduler."""

    def __init__(self) -> None:
        self._families: list[Family] = []
        self.cycles = self._histogram("volcano_e2e_scheduling_latency_milliseconds", "Duration of a cycle.", MILLIS)
        self.jobs = self._histogram("volcano_e2e_job_scheduling_latency_milliseconds", "From a job's creation to its start.", JOB_MILLIS)
        per_job = ("job_name", "queue", "job_namespace")
        self.job_duration = self._gauge("volcano_e2e_job_scheduling_duration", "From a job's creation to its last bind, ms.", *per_job)
        self.job_start = self._gauge("volcano_e2e_job_scheduling_start_time", "When a job was first looked at.", *per_job)
        self.job_last = self._gauge("volcano_e2e_job_scheduling_last_time", "When a pod of a job was last bound.", *per_job)
        self.openings = self._histogram("volcano_open_session_duration_milliseconds", "Duration of a session's opening.", MILLIS)
        self.actions = self._histogram("volcano_action_scheduling_latency_milliseconds", "Duration of an action.", MILLIS, "action")
        self.plugins = self._histogram(
            "volcano_plugin_scheduling_latency_milliseconds", "Duration of a plugin's opening and closing.", MILLIS, "plugin", "OnSession"
        )
        self.tasks = self._histogram("volcano_task_scheduling_latency_milliseconds", "From a pod's creation to a stage.", MILLIS, "stage")
        self.stages = self._histogram("volcano_scheduling_stage_duration_milliseconds", "Duration of a stage.", MILLIS, "stage")
        self.spent = {"Predicate": 0.0, "Scoring": 0.0}  #: seconds of the cycle that rules took
        self.attempts = self._counter("volcano_schedule_attempts_total", "Attempts to schedule a pod.", "result")
        self.victims = self._gauge("volcano_pod_preemption_victims", "Victims of the last cycle that evicted.")
        self.preemptions = self._counter("volcano_total_preemption_attempts", "Cycles that evicted.")
        self.transactions = self._counter("volcano_eviction_transactions_total", "Evictions for a pod or group, by their cause.", "action")
        self.unscheduled_tasks = self._gauge("volcano_unschedule_task_count", "Pods that a job lacks to start.", "job_id")
        self.unscheduled_jobs = self._gauge("volcano_unschedule_job_count", "Jobs that cannot start.")
        self.job_share = self._gauge("volcano_job_share", "Dominant share of a job.", "job_ns", "job_id")
        self.retries = self._counter("volcano_job_retry_counts", "Cycles in which a job could not start.", "job_id")
        self.queues = QueueMetrics()
        self._started: dict[str, tuple[str, str, str]] = {}  #: jobs that hold their nodes, by uid, and the labels of their metrics
        self._began: float | None = None  #: when the cycle began, until its session is open
        self.config_ok = self._gauge("pumice_config_last_reload_successful", "1 if the configuration in the file is the one in force.")
        self.config_at = self._gauge("pumice_config_last_reload_success_timestamp_seconds", "When the configuration was taken over.")
        self.waiting_pods = self._gauge("pumice_waiting_pods", "Pods without a node.")
        self.binds = self._counter("pumice_binds_total", "Binds by how they ended.", "result")
        self.evictions = self._counter("pumice_evictions_total", "Evictions by how they ended.", "result")
        self.writes = self._counter("pumice_status_writes_total", "Writes of statuses.", "kind", "result")
        self.refused = self._counter("pumice_objects_passed_over_total", "Objects that could not be understood.", "kind")
        self.amiss = self._counter("pumice_requests_amiss_total", "Requests that failed by a fault of ours.", "request")
        self.failures = self._counter("pumice_plugin_failures_total", "Cycles in which a plugin failed.", "plugin", "hook")
        self.failed_cycles = self._counter("pumice_failed_cycles_total", "Cycles that came to nothing by a fault.")
        self.leading = self._gauge("pumice_leading", "1 while this replica leads.")
        self.deciding = self._gauge("pumice_cycle_under_way_seconds", "How long the cycle under way has been deciding; 0 between cycles.")
        self.silent_extenders = self._gauge("pumice_extender_silent", "1 while an extender does not answer and is left alone.", "extender")
        self.expired = self._counter("pumice_assumptions_expired_total", "Binds and evictions that were granted but not seen in time.")
        self.events_dropped = self._gauge("pumice_events_dropped", "Events that were not sent.")
        self.config_ok.set(1)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return self._kept(Counter(name, text, labels))

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return self._kept(Gauge(name, text, labels))

    def _histogram(self, name: str, text: str, bounds: tuple[float, ...], *labels: str) -> Histogram:
        return self._kept(Histogram(name, text, bounds, labels))

    def _kept(self, family: F) -> F:
        self._families.append(family)
        return family

    # ---- what happens

    def cycle_begins(self) -> None:
        self._began = time.perf_counter()

    def session_is_open(self) -> None:
        """Called by each action; the first one counts."""
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
        for group in decisions.groups:
            if group.condition is not None and group.condition.type == UNSCHEDULABLE:
                self.retries.add(group.job.uid)
        if decisions.evictions:
            self.victims.set(len(decisions.evictions))
            self.preemptions.add()
            for _, action in {(eviction.beneficiary, eviction.action) for eviction in decisions.evictions}:
                self.transactions.add(action)

    def observe_failures(self, failures: Iterable[Failure]) -> None:
        for plugin, hook in {(failure.plugin, failure.hook) for failure in failures}:
            self.failures.add(plugin, hook)

    def observe_stage(self, task: Task, stage: str, now: float) -> None:
        """A pod came so far since it was created."""
        self.tasks.observe(max(0.0, now - task.created) * 1000, stage)

    def _observe_start(self, job: Job, now: float) -> None:
        """A job's gang holds its nodes, or more of it does."""
        labels = job.name, job.queue.name if job.queue is not None else "", job.namespace
        waited_ms = max(0.0, now - job.created) * 1000
        if job.uid not in self._started:
            self.jobs.observe(waited_ms)
            self.job_start.set(job.waiting_since or now, *labels)
        self._started[job.uid] = labels
        self.job_duration.set(waited_ms, *labels)
        self.job_last.set(now, *labels)

    def _forget_jobs(self, cluster: Cluster) -> None:
        """Metrics of jobs that are gone go too."""
        for uid in [uid for uid in self._started if uid not in cluster.jobs]:
            labels = self._started.pop(uid)
            for gauge in (self.job_duration, self.job_start, self.job_last):
                gauge.drop(*labels)
        self.retries.keep(lambda labels: labels[0] in cluster.jobs)

    def measure(self, cluster: Cluster) -> None:
        """The gauges of jobs and queues."""
        self._forget_jobs(cluster)
        short = [job for job in cluster.waiting.values() if not job.is_ready]
        self.unscheduled_tasks.replace({(job.uid,): float(job.min_member - job.ready_count) for job in short})
        self.unscheduled_jobs.set(len(short))
        self.waiting_pods.set(len(cluster.loose) + sum(len(job.pending) for job in cluster.waiting.values()))
        total = cluster.nodes.total()
        live = [job for job in cluster.jobs.values() if job.held.any()]
        self.job_share.replace({(job.namespace, job.name): dominant_share(job.held, total) for job in live})
        self.queues.measure(cluster)

    def page(self) -> str:
        """The text of a scrape."""
        return render([*self._families, *self.queues.families])
