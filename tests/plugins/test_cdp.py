"""cdp: a pod that was scheduled within its cooldown time is nobody's victim."""

from __future__ import annotations

import pytest
from queued import cluster, evicted, job, node, outcome, pod, priority_class
from scene import Thing

YOUNG, OLD = "2026-01-01T11:55:00Z", "2026-01-01T11:40:00Z"
TEN = {"volcano.sh/cooldown-time": "10m"}
ROWS = [
    ("young, by label", {"labels": TEN}, "Running", YOUNG, False),
    ("young, by annotation", {"notes": TEN}, "Running", YOUNG, False),
    ("old enough", {"labels": TEN}, "Running", OLD, True),
    ("old enough just now", {"labels": TEN}, "Running", "2026-01-01T11:50:00Z", True),
    ("a second too young", {"labels": TEN}, "Running", "2026-01-01T11:50:01Z", False),
    ("no time", {"labels": {"volcano.sh/cooldown-time": "a while"}}, "Running", YOUNG, True),
    ("nobody knows since when", {"labels": TEN}, "Running", None, True),
    ("not running yet", {"labels": TEN}, "Pending", YOUNG, True),
    ("without the mark", {}, "Running", YOUNG, True),
]


@pytest.mark.parametrize(("what", "marks", "phase", "placed", "goes"), ROWS, ids=[row[0] for row in ROWS])
def test_who_may_be_preempted(what: str, marks: Thing, phase: str, placed: str | None, goes: bool) -> None:
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": placed}] if placed else []
    victim = pod("victim", "low", "n", cpu=1, status={"phase": phase, "conditions": conditions}, **marks)
    jobs = [priority_class("high", 10), job("low", least=0), job("high", priorityClassName="high")]
    made = cluster(node("n", cpu=1), jobs, victim, pod("p", "high", cpu=1))
    result = outcome(made, "priority, gang, cdp", "predicates", actions="preempt")
    assert evicted(result) == (["victim"] if goes else [])
