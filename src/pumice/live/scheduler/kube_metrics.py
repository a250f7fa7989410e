"""kube-scheduler's metrics of groups, preemption and the scheduling queue, under upstream's names, labels and buckets.

Counts come from the decisions of each cycle, durations from the stages of the cycle (`took`), gauges from the queue when somebody scrapes.
Upstream counts no CompositePodGroup among the entities of its queue. Some families are there without a count, since this engine has no such
step: equal pods are planned together, so that no kept list of nodes gets a node back, and no hint is asked before the hints of each pod.
"""

from collections import Counter as Counts
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pumice.api.kinds import NATIVE_POD_GROUP
from pumice.http.metrics import Declared, counter, exponential, gauge, histogram
from pumice.scheduler.framework.decisions import Decisions, GroupTry, HeldBack, PlacementTries, PreemptionTry
from pumice.scheduler.framework.observer import Stage
from pumice.scheduler.model import Cluster, Task, status

if TYPE_CHECKING:
    from pumice.scheduler.kube.scheduling_queue import SchedulingQueue

FROM_MILLISECOND, FROM_TENTH, FROM_10_US = exponential(0.001, 2, 15), exponential(0.0001, 2, 12), exponential(0.00001, 2, 12)  #: seconds
PREEMPTION, VICTIMS, VICTIMS_OF_GROUPS = exponential(0.001, 2, 16), exponential(1, 2, 7), exponential(1, 2, 11)
POD, POD_GROUP = "pod", "podgroup"


class KubeMetrics(Declared):
    _both = ("result", "profile")
    _tries = counter("scheduler_podgroup_schedule_attempts_total", "Attempts to schedule PodGroups.", *_both)
    _attempts = histogram("scheduler_podgroup_scheduling_attempt_duration_seconds", "Duration of an attempt.", FROM_MILLISECOND, *_both)
    _algorithm = histogram("scheduler_podgroup_scheduling_algorithm_duration_seconds", "Of it, without preemption.", FROM_MILLISECOND)
    _preemptions = counter("scheduler_workload_preemption_attempts_total", "Attempts to preempt for a PodGroup.", "result")
    _group_victims = histogram("scheduler_workload_preemption_victims", "Pods evicted for a PodGroup.", VICTIMS_OF_GROUPS)
    _victims = histogram("scheduler_preemption_victims", "Pods evicted for a single pod.", VICTIMS)
    _disruptions = histogram("scheduler_preemption_workload_disruptions", "Units of groups evicted.", VICTIMS_OF_GROUPS, "preemptor")
    _whose = ("preemptor", "result")
    _evaluations = histogram("scheduler_preemption_evaluation_duration_seconds", "Search for victims.", PREEMPTION, *_whose)
    _executions = histogram("scheduler_preemption_execution_duration_seconds", "Decision to evict them.", PREEMPTION, *_whose)
    _violations = counter("scheduler_preemption_pdb_violations_total", "Disruption budgets violated.", "preemptor")
    _generated = counter("scheduler_generated_placements_total", "Placements generated for PodGroups.", "profile")
    _evaluated = counter("scheduler_placement_evaluations_total", "Placements evaluated for PodGroups.", *_both)
    _placements = histogram("scheduler_placement_evaluation_duration_seconds", "Evaluation of a placement.", FROM_MILLISECOND, *_both)
    _point = ("extension_point", "status", "profile")
    _points = histogram("scheduler_framework_extension_point_duration_seconds", "All plugins of a point.", FROM_TENTH, *_point)
    _entities = gauge("scheduler_queued_entities", "Pods and PodGroups that are queued.", "queue", "type")
    _incoming = counter("scheduler_queue_incoming_entities_total", "Pods and PodGroups added to a queue.", "queue", "event", "type")
    _pending = gauge("scheduler_pending_pods", "Pods without a node.", "queue")
    _rescored = counter("scheduler_batch_rescore_attempts_total", "Nodes scored again for the next of equal pods.", "profile")
    _rescoring = histogram("scheduler_batch_rescore_duration_seconds", "Scoring of such a node.", FROM_10_US, "profile")
    _hints = counter("scheduler_pre_queueing_hint_evaluations_total", "Hints that choose the pods to ask about.", "plugin", "result")

    def __init__(self) -> None:
        super().__init__()
        self.queue: SchedulingQueue | None = None
        self._held: dict[Task, HeldBack] = {}  #: the pods that the last cycle held back

    # ---- what happens

    def observe(self, decisions: Decisions) -> None:
        self._held = decisions.held
        for group in decisions.group_tries:
            self._tries.add(group.result, group.profile)
        for placements in decisions.placement_tries:
            self._generated.add(placements.profile, by=placements.feasible + placements.infeasible)
            for result, number in _results(placements):
                self._evaluated.add(result, placements.profile, by=number)
        for preemption in decisions.preemption_tries:
            self._observe_preemption(preemption)

    def _observe_preemption(self, tried: PreemptionTry) -> None:
        is_pod = tried.preemptor == POD
        if not is_pod:
            self._preemptions.add(tried.result)
        if tried.victims is not None:
            (self._victims if is_pod else self._group_victims).observe(tried.victims)
            if tried.disruptions:
                self._disruptions.observe(tried.disruptions, tried.preemptor)
            if tried.violations:
                self._violations.add(tried.preemptor, by=tried.violations)

    def took(self, stage: Stage, subject: Any, seconds: float) -> None:
        """Take in the duration of a stage, with the subject that it ended with."""
        known = _TAKEN.get(stage)
        if known is not None:
            known(self, subject, seconds)

    def _of_placements(self, tried: PlacementTries, seconds: float) -> None:
        each = seconds / (tried.feasible + tried.infeasible)
        for result, number in _results(tried):
            self._placements.observe(each, result, tried.profile, times=number)

    def _of_group(self, tried: GroupTry, seconds: float) -> None:
        self._attempts.observe(seconds, tried.result, tried.profile)

    def _of_algorithm(self, _: Any, seconds: float) -> None:
        self._algorithm.observe(seconds)

    def _of_evaluation(self, tried: PreemptionTry, seconds: float) -> None:
        self._evaluations.observe(seconds, POD if tried.preemptor == POD else POD_GROUP, tried.result)

    def _of_execution(self, tried: PreemptionTry, seconds: float) -> None:
        self._executions.observe(seconds, tried.preemptor, "success")

    def _of_point(self, labels: tuple[str, str, str], seconds: float) -> None:
        self._points.observe(seconds, *labels)

    # ---- the queue

    def measure(self, cluster: Cluster) -> None:
        """Set the gauges, and the counts of what came into the queue."""
        if self.queue is None:
            return
        waiting = (*cluster.without_job.values(), *(task for job in cluster.waiting.values() for task in job.pending.values()))
        places = [(task, place) for task in waiting if task.status == status.PENDING and (place := self._place_of(task))]
        pods, entities = Counts(place for _, place in places), Counts(_entities(cluster, places))
        self._pending.replace({(place,): float(pods[place]) for place in (*PLACES, "incomplete", "pending")})
        self._entities.replace({(place, kind): float(entities[place, kind]) for place in PLACES for kind in (POD, POD_GROUP)})
        self._incoming.replace({key: float(number) for key, number in self.queue.incoming.items() if key[-1] in (POD, POD_GROUP)})

    def _place_of(self, task: Task) -> str:
        assert self.queue is not None
        if task not in self._held:
            return self.queue.place_of(task)
        state = self._held[task].state
        return state if state == "incomplete" else "gated"


PLACES = ("active", "backoff", "unschedulable", "gated")


def _entities(cluster: Cluster, places: Iterable[tuple[Task, str]]) -> Iterable[tuple[str, str]]:
    """The pods without a group, and the PodGroups without a parent, with the queue in which each is."""
    groups = cluster.of(NATIVE_POD_GROUP)
    found: dict[str, tuple[str, str]] = {}
    for task, place in places:
        group = groups.get(task.group) if task.group else None
        if group is None or not group.spec.parent_composite_pod_group_name:
            found[task.group or task.uid] = (place, POD_GROUP if task.group else POD)
    return found.values()


def _results(tried: PlacementTries) -> list[tuple[str, int]]:
    return [(result, number) for result, number in (("feasible", tried.feasible), ("infeasible", tried.infeasible)) if number]


_TAKEN: dict[Stage, Callable[[KubeMetrics, Any, float], None]] = {
    Stage.GROUP: KubeMetrics._of_group,
    Stage.GROUP_ALGORITHM: KubeMetrics._of_algorithm,
    Stage.PLACEMENTS: KubeMetrics._of_placements,
    Stage.EVALUATION: KubeMetrics._of_evaluation,
    Stage.EXECUTION: KubeMetrics._of_execution,
    Stage.POINT: KubeMetrics._of_point,
}
