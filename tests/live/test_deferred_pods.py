"""What the queue is told of pods that are bound or have grown. A running pod whose resize is deferred waits in the queue until it asks for
something else, and leaves it once it has grown."""

from __future__ import annotations

from typing import Any

from pumice.live.scheduler.event_translation import EventTranslation, PodSnapshot
from pumice.scheduler.framework.cycle import cycle
from tests.kube_scheduler.native import cluster, policy
from tests.kube_scheduler.stage import NOW, existing, machine, waiting
from tests.kube_scheduler.test_deferred_resizes import GATE, growing
from tests.live.crowds import terms


def test_labels_that_a_pod_lost_before_it_was_bound_wake_nobody() -> None:
    chosen = policy()
    red = terms("podAntiAffinity", "red", "kubernetes.io/hostname", spaces=False)["affinity"]
    waits = waiting("waits").having("spec", "affinity", value=red)
    made = cluster(chosen, machine("n1", cpu=4), existing("red", "n1").label("colour", "red"), waits)
    translation = EventTranslation(made)
    translation.adopt(chosen)
    queue = translation.scheduling_queue
    assert queue is not None
    cycle(made, chosen, NOW, queue=queue)
    made.put("Pod", waiting("other").scheduler("other").label("colour", "red").build()[1])
    before = PodSnapshot.at(made.tasks["default/other"])
    made.put("Pod", existing("other", "n1").scheduler("other").label("colour", "blue").build()[1])
    translation.pod(before, made.tasks["default/other"])
    assert queue.place_of(made.tasks["default/waits"]) == "unschedulable"


def test_what_becomes_of_a_deferred_pod_in_the_queue() -> None:
    chosen = policy(GATE)
    made = cluster(chosen, machine("n1", cpu=4), growing(5))
    translation = EventTranslation(made)
    translation.adopt(chosen)
    queue = translation.scheduling_queue
    assert queue is not None
    cycle(made, chosen, NOW, queue=queue)

    def place(pod: Any) -> str:
        before = PodSnapshot.at(made.tasks["default/big"])
        made.put("Pod", pod.build()[1])
        translation.pod(before, made.tasks["default/big"])
        return queue.place_of(made.tasks["default/big"])

    assert place(growing(5).label("x", "y")) == "unschedulable"
    assert place(growing(4)) == "backoff"
    assert place(existing("big", "n1", 4, 9)) == ""
