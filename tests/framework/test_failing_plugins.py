"""A plugin that fails, or answers what cannot be an answer, is named, refuses what it was asked about, and spoils nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.scheduler.engine.rules import Filter, Reason, Refused, Scorer
from pumice.scheduler.engine.view import View
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.hooks import HOOKS
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.plugin_guard import Guard
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.plugins.volcano.gang import Gang
from pumice.testing import cluster, node, pod, podgroup, queue
from pumice.testing.scene import policy

ACTIONS = "enqueue, allocate, backfill, preempt, reclaim, shuffle"
AROUND = ("priority", "gang", "proportion", "predicates", "nodeorder")


def scene() -> Cluster:
    """A gang that runs in another queue, one that waits for it to go, two that fit: all hooks are asked."""
    made = cluster(
        *(node(name).cpu(4).pods(10) for name in ("a", "b")),
        queue("other"),
        podgroup("old", 1).queue("other").phase("Running"),
        *(pod("old").cpu(3).gang("old").times(2)[number].on(name) for number, name in enumerate("ab")),
        *(podgroup(name, 1) for name in ("one", "two", "big")),
        pod("one").cpu(1).gang("one"),
        pod("two").cpu(1).gang("two"),
        pod("big").cpu(4).gang("big"),
    )
    made.forget_changes()
    return made


def decided(made: Cluster, *plugins: Any) -> Decisions:
    found = cycle(made, policy(ACTIONS, (*plugins, *AROUND)), 100.0)
    made.check()
    return found


def plugin_with(hook: str, answer: Any) -> type[Plugin]:
    def method(self: Plugin, *question: Any) -> Any:
        return answer(*question) if callable(answer) else answer

    return type("Odd", (Plugin,), {"name": "odd", hook: method})


def fails(*question: Any) -> Any:
    raise ZeroDivisionError("of the author")


ODD_ANSWERS = [fails, float("nan"), True, "x", [None]]


@pytest.mark.parametrize("hook", [hook for hook in HOOKS if hook != "open"])
@pytest.mark.parametrize("answer", ODD_ANSWERS, ids=lambda value: type(value).__name__)
def test_no_hook_and_no_answer_ends_a_cycle(hook: str, answer: Any) -> None:
    made = scene()
    found = decided(made, plugin_with(hook, answer))
    for failure in found.failures:
        assert (failure.plugin, failure.file) == ("odd", __file__)
        assert str(failure).startswith("plugin odd failed in ")


class NodeByNode(Plugin):
    name = "node-by-node"
    answers: Any = None

    def filter_node(self, task: Any, node: Any) -> Any:
        return self.answers() if task.name == "one" else None


class Scored(Plugin):
    name = "scored"
    answers: Any = None

    def score_node(self, task: Any, node: Any) -> Any:
        return self.answers() if task.name == "one" else 1.0


@pytest.mark.parametrize("answers", [fails, lambda: True, lambda: 3, lambda: ["x"]], ids=["raises", "True", "3", "list"])
def test_a_filter_that_fails_refuses_that_pod_and_its_reason_names_it(answers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NodeByNode, "answers", staticmethod(answers))
    found = decided(scene(), NodeByNode)
    assert {bind.task.name for bind in found.binds} == {"two"}
    (failure,) = found.failures
    assert (failure.plugin, failure.hook, failure.file) == ("node-by-node", "filter_node", __file__)
    (why,) = (waiting.message for waiting in found.waiting if waiting.task.name == "one")
    assert f"plugin node-by-node failed in filter_node (test_failing_plugins.py:{failure.line})" in why


@pytest.mark.parametrize("answers", [fails, lambda: None, lambda: float("nan"), lambda: True, lambda: "7", lambda: float("inf")])
def test_a_scorer_that_fails_refuses_that_pod_and_its_reason_names_it(answers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scored, "answers", staticmethod(answers))
    found = decided(scene(), Scored)
    assert {bind.task.name for bind in found.binds} == {"two"}
    (failure,) = found.failures
    assert (failure.plugin, failure.hook) == ("scored", "score_node")
    (why,) = (waiting.message for waiting in found.waiting if waiting.task.name == "one")
    assert "plugin scored failed in score_node (test_failing_plugins.py:" in why


class Whole(Filter, Scorer):
    """A rule of a plugin's own; `answer` is what it does, `at` where."""

    name = "whole"

    def __init__(self, at: str, answer: Any) -> None:
        self.at, self.answer = at, answer
        self.normalizes = at == "normalize"

    def _answered(self, at: str, otherwise: Any) -> Any:
        return (self.answer() if callable(self.answer) else self.answer) if at == self.at else otherwise

    def prepare(self, task: Any) -> Any:
        return self._answered("prepare", task)

    def key(self, task: Any) -> Any:
        return self._answered("key", None)

    def refuse(self, state: Any, nodes: Any) -> Any:
        return self._answered("refuse", [])

    def score(self, state: Any, nodes: Any) -> Any:
        return self._answered("score", np.ones(len(nodes)))

    def normalize(self, scores: Any) -> Any:
        return self._answered("normalize", scores)


@pytest.mark.parametrize("side", ["filters", "scorers"])
@pytest.mark.parametrize(
    ("at", "answer"),
    [
        ("prepare", fails),
        ("key", fails),
        ("key", list),
        ("refuse", fails),
        ("refuse", lambda: None),
        ("refuse", lambda: [Refused(np.zeros(7, bool), Reason("x"))]),
        ("refuse", lambda: [Refused(np.zeros(2), Reason("x"))]),
        ("refuse", lambda: [Refused(np.zeros(2, bool), "x")]),  # type: ignore[arg-type]
        ("score", fails),
        ("score", lambda: np.full(2, np.nan)),
        ("score", lambda: np.zeros(7)),
        ("score", lambda: [1.0, 2.0]),
        ("score", lambda: np.array(["a", "b"])),
        ("normalize", fails),
        ("normalize", lambda: np.zeros(7)),
    ],
)
def test_rules_of_a_plugin_are_contained_as_well(side: str, at: str, answer: Any) -> None:
    made = scene()
    found = decided(made, plugin_with(side, lambda: [Whole(at, answer)]))
    asked = at in ("prepare", "key") or (at == "refuse") == (side == "filters")
    assert {failure.hook for failure in found.failures} == ({at} if asked else set())
    assert {bind.task.name for bind in found.binds} == (set() if asked and at != "key" else {"one", "two"})


def test_a_plugin_that_cannot_open_refuses_all_pods_and_a_slip_in_the_others_spoils_nothing() -> None:
    found = decided(scene(), plugin_with("open", fails))
    assert found.binds == []
    (failure,) = found.failures
    assert (failure.hook, failure.message) == ("open", "ZeroDivisionError: of the author")


def test_own_plugin_that_fails_ends_the_cycle_once_and_a_guarded_cycle_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a fault stood in gang: the cycle is undone. Guarded, it is named, refuses the job, and nothing is lost or done twice."""
    ready, asked = Gang.job_ready, []

    def job_ready(self: Gang, job: Any) -> bool:
        if job.name == "two":
            asked.append(job)
            raise KeyError("a fault")
        return ready(self, job)

    monkeypatch.setattr(Gang, "job_ready", job_ready)
    made = scene()
    chosen, jobs = policy(ACTIONS, AROUND), made.jobs
    before = {job.uid: (job.phase, job.waiting_since, dict(job.counts)) for job in jobs.values()}
    with pytest.raises(KeyError):
        cycle(made, chosen, 100.0)
    made.check()
    assert {job.uid: (job.phase, job.waiting_since, dict(job.counts)) for job in jobs.values()} == before and len(asked) == 1
    found = cycle(made, chosen, 100.0, guarded=True)
    assert [bind.task.name for bind in found.binds] == ["one"]
    assert [(failure.plugin, failure.hook, failure.message) for failure in found.failures] == [("gang", "job_ready", "KeyError: 'a fault'")]
    assert made.jobs["default/two"].phase == "Inqueue"
    monkeypatch.undo()
    assert [bind.task.name for bind in decided(made).binds] == ["two"]


def told(of: str, name: str) -> str:
    """How a plugin's failure reads that asks what it is shown for such an attribute."""
    made, failures = scene(), list[str]()
    shown = {"task": made.tasks["default/one"], "job": made.jobs["default/one"], "queue": made.queues["other"], "nodes": View(made.nodes)}
    guard = Guard(Plugin(), lambda failure, about: failures.append(failure.message))
    guard.hook("job_valid", lambda subject: getattr(subject, name))(shown[of])
    return failures[0]


@pytest.mark.parametrize(
    ("of", "written", "meant"),
    [
        ("job", "min_available", "min_member"),
        ("job", "minAvailable", "min_member"),
        ("job", "readyCount", "ready_count"),
        ("job", "tsks", "tasks"),
        ("task", "requests", "template.request"),
        ("queue", "wieght", "weight"),
        ("nodes", "allocatabel", "allocatable"),
    ],
)
def test_an_attribute_of_another_name_is_answered_with_the_right_one(of: str, written: str, meant: str) -> None:
    assert told(of, written).endswith(f'has no attribute {written!r}; did you mean "{meant}"?')


def test_an_attribute_that_nothing_is_like_is_just_not_there() -> None:
    assert told("job", "xyzzy") == "AttributeError: Job has no attribute 'xyzzy'"
