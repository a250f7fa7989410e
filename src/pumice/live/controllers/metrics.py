"""What the controllers measure: the PodGroups of each queue, under Volcano's names, and metrics of our own."""

from collections import Counter as Count

from pumice.api import kinds, name_of, spec_of, status_of
from pumice.http.metrics import Declared, Family, Gauge, Labels, gauge, render
from pumice.live.controllers.loop import Controllers

CONTROLLERS = "controllers"  #: the label of the program
PHASES = ("Inqueue", "Pending", "Running", "Unknown", "Completed")


class ControllerMetrics(Declared):
    leading = gauge("pumice_leading", "1 while this replica leads, or needs no lead.", "program")
    clock = gauge("pumice_clock_seconds", "The time of this program's clock, in seconds since 1970.", "program")
    _objects = gauge("pumice_controllers_objects", "Objects known, by kind.", "kind")
    _waiting = gauge("pumice_controllers_waiting", "Keys that wait, also those behind another key of their object.")
    _dropped = gauge("pumice_events_dropped", "Events that were not sent.")

    def __init__(self) -> None:
        super().__init__()
        self._groups = {
            phase: Gauge(f"volcano_queue_pod_group_{phase.lower()}_count", f"PodGroups that are {phase}.", ("queue_name",))
            for phase in PHASES
        }
        self.leading.set(0, CONTROLLERS)

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
        counts = Count(
            (spec_of(group).get("queue") or "", status_of(group).get("phase") or "Pending") for group in cache.all(kinds.POD_GROUP)
        )
        queues = [name_of(queue) for queue in cache.all(kinds.QUEUE)]
        for phase, groups in self._groups.items():
            values: dict[Labels, float] = {(queue,): float(counts[queue, phase]) for queue in queues}
            groups.replace(values)
