"""cdp: a pod that was scheduled within its cooldown time is nobody's victim."""

from __future__ import annotations

import pytest
from scene import Thing, evicted, outcome

from pumice.testing import cluster, node, pod, podgroup, priority_class

YOUNG, OLD = "2025-12-31T23:55:00Z", "2025-12-31T23:40:00Z"
TEN = {"volcano.sh/cooldown-time": "10m"}
ROWS = [
    ("young, by label", TEN, {}, "Running", YOUNG, False),
    ("young, by annotation", {}, TEN, "Running", YOUNG, False),
    ("old enough", TEN, {}, "Running", OLD, True),
    ("old enough just now", TEN, {}, "Running", "2025-12-31T23:50:00Z", True),
    ("a second too young", TEN, {}, "Running", "2025-12-31T23:50:01Z", False),
    ("no time", {"volcano.sh/cooldown-time": "a while"}, {}, "Running", YOUNG, True),
    ("nobody knows since when", TEN, {}, "Running", None, True),
    ("not running yet", TEN, {}, "Pending", YOUNG, True),
    ("without the mark", {}, {}, "Running", YOUNG, True),
]


@pytest.mark.parametrize(("what", "labels", "notes", "phase", "placed", "goes"), ROWS, ids=[row[0] for row in ROWS])
def test_who_may_be_preempted(what: str, labels: Thing, notes: Thing, phase: str, placed: str | None, goes: bool) -> None:
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": placed}] if placed else []
    victim = (
        pod("victim")
        .gang("low")
        .on("n")
        .cpu(1)
        .labels(labels)
        .annotations(notes)
        .phase(phase)
        .having("status", "conditions", value=conditions)
    )
    jobs = [priority_class("high", 10), podgroup("low", 0).admitted(), podgroup("high").priority_class("high").admitted()]
    made = cluster(node("n").cpu(1), jobs, victim, pod("p").gang("high").cpu(1))
    result = outcome(made, "priority, gang, cdp", "predicates", actions="preempt")
    assert evicted(result) == (["victim"] if goes else [])
