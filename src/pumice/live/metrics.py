"""What the scheduler measures: Volcano's metrics under their names (`volcano_`), with their labels and buckets, then our own (`pumice_`).

`observe_*` are called where things happen; the gauges of queues and waiting jobs are computed when somebody scrapes (`page`).
"""

from __future__ import annotations

from typing import TypeVar

from pumice.framework.decisions import Decisions
from pumice.live.exposition import Counter, Family, Gauge, Histogram, exponential, render
from pumice.model.cluster import Cluster
from pumice.model.resources import CPU, MEMORY, dominant_share

F = TypeVar("F", bound=Family)
MILLIS = exponential(5, 2, 10)
JOB_MILLIS = exponential(32, 2, 10)
PHASES = ("Inqueue", "Pending", "Running", "Unknown")


class LiveMetrics:
    """All metrics of one scheduler."""

    def __init__(self) -> None:
        self._families: list[Family] = []
        self.cycles = self._histogram("volcano_e2e_scheduling_latency_milliseconds", "Duration of a cycle.", MILLIS)
        self.jobs = self._histogram("volcano_e2e_job_scheduling_latency_milliseconds", "From a job's creation to its start.", JOB_MILLIS)
        self.job_duration = self._gauge("volcano_e2e_job_scheduling_duration", "The same, per job.", "job_name", "queue", "job_namespace")
        self.actions = self._histogram("volcano_action_scheduling_latency_milliseconds", "Duration of an action.", MILLIS, "action")
        self.plugins = self._histogram(
            "volcano_plugin_scheduling_latency_milliseconds", "Duration of a plugin's opening and closing.", MILLIS, "plugin", "OnSession"
        )
        self.tasks = self._histogram("volcano_task_scheduling_latency_milliseconds", "From a pod's creation to a stage.", MILLIS, "stage")
        self.stages = self._histogram("volcano_scheduling_stage_duration_milliseconds", "Duration of a stage.", MILLIS, "stage")
        self.attempts = self._counter("volcano_schedule_attempts_total", "Attempts to schedule a pod.", "result")
        self.victims = self._gauge("volcano_pod_preemption_victims", "Victims of the last cycle that evicted.")
        self.preemptions = self._counter("volcano_total_preemption_attempts", "Cycles that evicted.")
        self.transactions = self._counter("volcano_eviction_transactions_total", "Evictions by their cause.", "action")
        self.unscheduled_tasks = self._gauge("volcano_unschedule_task_count", "Waiting pods of a job.", "job_id")
        self.unscheduled_jobs = self._gauge("volcano_unschedule_job_count", "Jobs with waiting pods.")
        self.job_share = self._gauge("volcano_job_share", "Dominant share of a job.", "job_ns", "job_id")
        self.retries = self._counter("volcano_job_retry_counts", "Failed binds of a job.", "job_id")
        self._queue_gauges()
        self.config_ok = self._gauge("pumice_config_last_reload_successful", "1 if the configuration in the file is the one in force.")
        self.config_at = self._gauge("pumice_config_last_reload_success_timestamp_seconds", "When the configuration was taken over.")
        self.binds = self._counter("pumice_binds_total", "Binds by how they ended.", "result")
        self.evictions = self._counter("pumice_evictions_total", "Evictions by how they ended.", "result")
        self.writes = self._counter("pumice_status_writes_total", "Writes of statuses.", "kind", "result")
        self.refused = self._counter("pumice_objects_passed_over_total", "Objects that could not be understood.", "kind")
        self.leading = self._gauge("pumice_leading", "1 while this replica leads.")
        self.expired = self._counter("pumice_assumptions_expired_total", "Binds and evictions that were granted but not seen in time.")
        self.events_dropped = self._gauge("pumice_events_dropped", "Events that were not sent.")
        self.config_ok.set(1)

    def _queue_gauges(self) -> None:
        def named(what: str, text: str) -> Gauge:
            return self._gauge(f"volcano_queue_{what}", text, "queue_name")

        self._per_queue = {
            f"{what}_{unit}": named(f"{what}_{unit}", f"{what.capitalize()} {unit.replace('_', ' ')}.")
            for what in ("allocated", "request", "deserved", "capacity", "inqueue")
            for unit in ("milli_cpu", "memory_bytes")
        }
        self._scalars = {
            what: self._gauge(f"volcano_queue_{what}_scalar_resources", f"{what.capitalize()} scalar resources.", "queue_name", "resource")
            for what in ("allocated", "request", "deserved", "capacity", "inqueue")
        }
        self._weight, self._share = named("weight", "Weight."), named("share", "Dominant share of what it deserves or may have.")
        self._overused = named("overused", "1 if it holds more than it deserves.")
        self._phases = {phase: named(f"pod_group_{phase.lower()}_count", f"PodGroups that are {phase}.") for phase in PHASES}

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

    def observe_cycle(self, decisions: Decisions, now: float, took_s: float) -> None:
        self.cycles.observe(took_s * 1000)
        self.attempts.add("scheduled", by=len(decisions.binds))
        self.attempts.add("unschedulable", by=len(decisions.waiting))
        for bind in decisions.binds:
            self.tasks.observe(max(0.0, now - bind.task.created) * 1000, "Assumed")
        if decisions.evictions:
            self.victims.set(len(decisions.evictions))
            self.preemptions.add()
            for eviction in decisions.evictions:
                self.transactions.add(eviction.action)

    def observe_started(self, name: str, namespace: str, queue: str, waited_s: float) -> None:
        """A job's gang holds its nodes for the first time."""
        self.jobs.observe(waited_s * 1000)
        self.job_duration.set(waited_s * 1000, name, queue, namespace)

    def forget_job(self, name: str, namespace: str, queue: str) -> None:
        self.job_duration.drop(name, queue, namespace)

    def page(self, cluster: Cluster) -> str:
        """The text of a scrape."""
        self.unscheduled_tasks.replace({(uid,): float(len(job.pending)) for uid, job in cluster.waiting.items()})
        self.unscheduled_jobs.set(len(cluster.waiting))
        total = cluster.nodes.total()
        live = [job for job in cluster.jobs.values() if job.held.any()]
        self.job_share.replace({(job.namespace, job.name): dominant_share(job.held, total) for job in live})
        self._measure_queues(cluster)
        return render(self._families)

    def _measure_queues(self, cluster: Cluster) -> None:
        queues = [queue for queue in cluster.queues.values() if queue.exists]
        parts = {
            "allocated": {q.name: q.held for q in queues},
            "request": {q.name: q.held + q.pending for q in queues},
            "deserved": {q.name: q.deserved for q in queues},
            "capacity": {q.name: q.capability for q in queues},
            "inqueue": {q.name: q.inqueue for q in queues},
        }
        names = cluster.dimensions.names
        for what, vectors in parts.items():
            for unit, column in (("milli_cpu", CPU), ("memory_bytes", MEMORY)):
                known: dict[tuple[str, ...], float] = {(n,): float(v[column]) for n, v in vectors.items() if v[column] != float("inf")}
                self._per_queue[f"{what}_{unit}"].replace(known)
            self._scalars[what].replace(
                {
                    (name, names[column]): float(vector[column])
                    for name, vector in vectors.items()
                    for column in range(MEMORY + 1, len(names))
                    if 0 < vector[column] < float("inf")
                }
            )
        self._weight.replace({(q.name,): float(q.weight) for q in queues})
        self._share.replace({(q.name,): dominant_share(q.held, q.deserved) for q in queues})
        self._overused.replace({(q.name,): float(bool((q.held[q.deserves] > q.deserved[q.deserves]).any())) for q in queues})
        for phase, gauge in self._phases.items():
            gauge.replace({(q.name,): float(sum(job.phase == phase for job in q.jobs.values())) for q in queues})
