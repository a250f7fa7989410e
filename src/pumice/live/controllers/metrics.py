"""What the controllers measure: Jobs, and the PodGroups of each queue, under Volcano's names, and metrics of our own."""

from collections import Counter as Count

from pumice.api import Object, instant, key_of, kinds, name_of, namespace_of, spec_of, status_of
from pumice.api.annotations import JOB_NAME
from pumice.api.json_objects import labels_of
from pumice.http.metrics import Declared, Family, Gauge, Labels, counter, exponential, gauge, histogram, render
from pumice.live.controllers.loop import Controllers
from pumice.live.object_cache import ObjectCache

CONTROLLERS = "controllers"  #: the label of the program
TO_POD_MS = exponential(50, 1200 ** (1 / 29), 30)  #: up to a minute, as Volcano's
PHASES = ("Inqueue", "Pending", "Running", "Unknown", "Completed")


class ControllerMetrics(Declared):
    leading = gauge("pumice_leading", "1 while this replica leads, or needs no lead.", "program")
    clock = gauge("pumice_clock_seconds", "The time of this program's clock, in seconds since 1970.", "program")
    _objects = gauge("pumice_controllers_objects", "Objects known, by kind.", "kind")
    _waiting = gauge("pumice_controllers_waiting", "Keys that wait, also those behind another key of their object.")
    _dropped = gauge("pumice_events_dropped", "Events that were not sent.")
    _to_pod = histogram("volcano_controller_job_to_pod_creation_latency_milliseconds", "From a Job to each of its pods.", TO_POD_MS)
    _completed = counter("volcano_job_completed_phase_count", "1 for a Job that completed.", "job_name", "queue_name")
    _failed = counter("volcano_job_failed_phase_count", "1 for a Job that failed.", "job_name", "queue_name")

    def __init__(self) -> None:
        super().__init__()
        self._groups = {
            phase: Gauge(f"volcano_queue_pod_group_{phase.lower()}_count", f"PodGroups that are {phase}.", ("queue_name",))
            for phase in PHASES
        }
        self.leading.set(0, CONTROLLERS)

    def note_made(self, subject: Object, cache: ObjectCache) -> None:
        """Note an object that a controller has created."""
        job = cache.get(kinds.JOB, namespace_of(subject), labels_of(subject).get(JOB_NAME, ""))
        if subject.get("kind") == "Pod" and job is not None:
            self._to_pod.observe((_created(subject) - _created(job)) * 1000)

    def page(self, controllers: Controllers | None) -> str:
        """The text that a scrape gets."""
        if controllers is not None:
            self._measure(controllers)
        return render(self.families())

    def families(self) -> list[Family]:
        return [*self.declared, *self._groups.values()]

    def _measure(self, controllers: Controllers) -> None:
        cache = controllers.cache
        self._objects.replace({(kind,): float(cache.count(kind)) for kind in cache.kinds()})
        self._waiting.set(float(controllers.waiting))
        self._dropped.set(float(controllers.recorder.dropped))
        for phase, metric in (("Completed", self._completed), ("Failed", self._failed)):
            ended = (job for job in cache.all(kinds.JOB) if (status_of(job).get("state") or {}).get("phase") == phase)
            metric.replace({("/".join(key_of(job)), spec_of(job).get("queue") or ""): 1.0 for job in ended})
        counts = Count(
            (spec_of(group).get("queue") or "", status_of(group).get("phase") or "Pending") for group in cache.all(kinds.POD_GROUP)
        )
        queues = [name_of(queue) for queue in cache.all(kinds.QUEUE)]
        for phase, groups in self._groups.items():
            values: dict[Labels, float] = {(queue,): float(counts[queue, phase]) for queue in queues}
            groups.replace(values)


def _created(subject: Object) -> float:
    return instant(subject["metadata"]["creationTimestamp"])
