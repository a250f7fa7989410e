"""Which jobs are placed the short way, without a session, and which are not. The decisions are those of a session in any case."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.api.annotations import ESTIMATE
from pumice.api.times import Duration
from pumice.inputs.cluster_from_files import advance
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.job_classes import MEMORY as JOB_CLASSES
from pumice.scheduler.framework.newcomer import Newcomer
from pumice.scheduler.framework.observer import SILENT, Observer, ReasonReader, Silent, Stage
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import PluginOption, Policy
from pumice.scheduler.model.past_shares import PastUsageArgs
from pumice.scheduler.plugins.volcano.drf import Drf
from pumice.scheduler.plugins.volcano.overcommit import Overcommit, OvercommitArgs
from pumice.testing import NOW, Builder, cluster, node, pod, podgroup, queue
from pumice.testing.scene import policy
from tests.properties.test_waiting import said

TIGHT = PluginOption(Overcommit, OvercommitArgs(factor=1.0))
PLUGINS = "priority", "gang", "conformance", TIGHT, "drf", "predicates", "proportion", "nodeorder"
VOLCANO = policy("enqueue, allocate, backfill", PLUGINS)


class Watching(Silent):
    """An observer that is told when a session begins."""

    def begins(self, stage: Stage, subject: object) -> None: ...


class FarSeeing(Plugin):
    """A plugin with a hook that could concern a newcomer, of which it does not say what it means for one."""

    name = "far-seeing"
    reads_only_state = True

    def overused(self, queue: object) -> bool:
        return False


def job(name: str, pods: int = 1) -> list[Builder]:
    return [podgroup(name, pods).needs(cpu=pods), *pod(name).gang(name).cpu(1).times(pods)]


def job_of(name: str, cpus: int) -> list[Builder]:
    return [podgroup(name).needs(cpu=cpus), pod(name).gang(name).cpu(cpus)]


def decided(then: Iterable[Builder], by: Policy = VOLCANO, observer: Observer = SILENT, *, promised: int = 1) -> tuple[Decisions, bool]:
    """The decisions about what comes when a first job runs, and whether they were made without a session. `promised`: the CPUs that the
    first job may have in all."""
    outcomes = []
    for shortcuts in (True, False):
        kept = node("kept").cpu(9).pods(9).taint("kept")
        made = cluster(node("a").cpu(4).pods(9), node("b").cpu(4).pods(9), kept, *job("first"), podgroup("first").needs(cpu=promised))
        chosen = replace(by, shortcuts=shortcuts)
        advance(made, cycle(made, chosen, NOW, observer=observer), NOW)
        for each in then:
            made.put(*each.build())
        outcomes.append((made, cycle(made, chosen, NOW + 1, observer=observer)))
    (kept, decisions), (_, expected) = outcomes
    assert said(decisions, in_order=True) == said(expected, in_order=True)
    kept.check()
    return decisions, JOB_CLASSES not in kept.memory


def test_a_newcomer_that_waits_alone_is_placed_without_a_session() -> None:
    decisions, is_short = decided(job("second"))
    assert [bind.task.name for bind in decisions.binds] == ["second-0"]
    assert is_short
    assert [(group.job.name, group.phase) for group in decisions.groups] == [("first", "Running"), ("second", "Inqueue")]


def test_newcomers_that_come_together_are_placed_in_the_order_of_their_turns() -> None:
    short = [podgroup("third").annotation(ESTIMATE, "1m"), pod("third").gang("third").cpu(1)]
    decisions, is_short = decided([*job("second"), *short], policy("in-order", ["gang", "shortest-first"]))
    assert [bind.task.job.name for bind in decisions.binds if bind.task.job] == ["third", "second"]
    assert is_short


@pytest.mark.parametrize("by", [policy("in-order", ["gang", "shortest-first"]), policy("allocate", ["predicates"])])
def test_so_it_is_by_other_policies(by: Policy) -> None:
    assert decided(job("second"), by)[1]


def test_a_node_that_is_kept_for_others_is_no_better_when_something_happens_there() -> None:
    decisions, is_short = decided([pod("x").cpu(1).on("kept"), *job("second")])
    assert [bind.node for bind in decisions.binds] == ["b"]
    assert is_short


def test_a_session_says_why_no_node_has_room() -> None:
    full = [pod("x").cpu(4).on("a"), pod("y").cpu(4).on("b")]
    decisions, is_short = decided([*full, *job("second")], policy("allocate", ["gang", "predicates"]))
    assert [waits.task.name for waits in decisions.waiting] == ["second-0"]
    assert not is_short


def test_where_jobs_wait_in_a_line_no_session_is_needed_for_that() -> None:
    full = [pod("x").cpu(4).on("a"), pod("y").cpu(4).on("b")]
    decisions, is_short = decided([*full, *job("second")], policy("in-order", ["gang", "predicates"]))
    assert [waits.task.name for waits in decisions.waiting] == ["second-0"]
    assert is_short


SESSIONS: dict[str, list[Builder]] = {
    "its queue has a limit": [queue("default").capability(cpu=1), *job("second")],
    "another queue has a guarantee": [queue("other").guarantees(cpu=16), *job("second")],
    "its queue has no weight": [queue("default").weight(0), *job("second")],
    "its queue is closed": [queue("default").state("Closed"), *job("second")],
    "others were promised the room": [podgroup("promised").needs(cpu=16).admitted(), *job("second")],
    "it takes the last of a resource": [pod("x").cpu(3).on("a"), pod("y").cpu(3).on("b"), pod("z").cpu(9).on("kept"), *job("second")],
    "a pod is on a node that is not known": [podgroup("far").admitted(), pod("far").gang("far").cpu(16).on("c"), *job("second")],
    "another job is a gang": [*job("second"), *job("third", 2)],
    "another job is in another queue": [
        queue("other"),
        *job("second"),
        podgroup("third").queue("other"),
        pod("third").gang("third").cpu(1),
    ],
    "there are many": [each for number in range(33) for each in job(f"other-{number}")],
    "there is no room for the third": [each for name in ("second", "third", "fourth") for each in job_of(name, 3)],
    "another job may be let in": [podgroup("without-pods").needs(cpu=1), *job("second")],
    "a pod waits for a group": [pod("alone").gang("missing").cpu(1), *job("second")],
    "a pod without a group waits": [pod("alone").cpu(1), *job("second")],
    "it is a gang": job("second", 2),
    "it is one pod of a gang": [podgroup("second", 2), pod("second").gang("second").cpu(1)],
    "it needs a topology": [podgroup("second").topology(1), pod("second").gang("second").cpu(1)],
    "it needs a port": [
        podgroup("second"),
        pod("second").gang("second").cpu(1).having("spec", "containers", 0, "ports", value=[{"hostPort": 80}]),
    ],
    "there is no such pod yet": [podgroup("second"), pod("second").gang("second").cpu("900m")],
    "nodes have no room": [pod("x").cpu(4).on("a"), pod("y").cpu(4).on("b"), *job("second")],
    "it needs nothing": [podgroup("second"), pod("second").gang("second")],
    "another job has lost a pod": [pod("first-0").gang("first").cpu(1).on("a").phase("Failed"), *job("second")],
}


@pytest.mark.parametrize("what", SESSIONS)
def test_a_session_decides_if(what: str) -> None:
    assert not decided(SESSIONS[what])[1]


@pytest.mark.parametrize("plugins", [PLUGINS, ["gang", TIGHT]])
def test_a_session_decides_if_the_room_was_promised_to_a_job_that_has_just_started(plugins: Sequence[Any]) -> None:
    assert not decided(job("second"), policy("enqueue, allocate", plugins), promised=17)[1]


def test_a_session_decides_for_an_observer_that_sees_it() -> None:
    assert decided(job("second"), observer=ReasonReader())[1]
    assert not decided(job("second"), observer=Watching())[1]


@pytest.mark.parametrize(
    "by",
    [
        policy("enqueue, allocate, preempt", PLUGINS),
        policy("enqueue, backfill", PLUGINS),
        policy("allocate", ["gang", "capacity"]),
        policy("allocate", ["gang", FarSeeing]),
        replace(VOLCANO, gathering_s=1.0),
    ],
    ids=["preempt", "nobody is placed", "capacity", "a hook", "gathering"],
)
def test_a_session_decides_by_other_policies(by: Policy) -> None:
    assert not decided(job("second"), by)[1]


def test_a_session_decides_in_which_order_newcomers_come_if_past_usage_counts() -> None:
    by = policy("allocate", ["gang", PluginOption(Drf, PastUsageArgs(half_life=Duration(3600)))])
    assert decided(job("second"), by)[1]
    assert not decided([*job("second"), *job("third")], by)[1]


def test_a_session_decides_after_one_of_another_policy() -> None:
    made, other = cluster(node("a").cpu(4).pods(9), *job("first")), policy("allocate", PLUGINS)
    advance(made, cycle(made, VOLCANO, NOW), NOW)
    for each in job("second"):
        made.put(*each.build())
    assert cycle(made, other, NOW + 1).binds
    assert JOB_CLASSES in made.memory


def test_a_newcomer_that_has_waited_before_keeps_the_time_since_when() -> None:
    made = cluster(node("n").cpu(4), podgroup("g").needs(cpu=1), pod("p").gang("g").cpu(1))
    (waits,) = made.jobs.values()
    waits.phase, waits.waiting_since = "Pending", NOW - 5
    newcomer = Newcomer(made, waits)
    newcomer.place(0, NOW)
    assert (waits.phase, waits.waiting_since) == ("Inqueue", NOW - 5)
    newcomer.take_back()
    assert (waits.phase, waits.waiting_since) == ("Pending", NOW - 5)
    made.check()


def test_a_cluster_that_never_had_a_node_has_no_short_way() -> None:
    made = cluster(*job("a"))
    for name in ("b", "c"):
        assert cycle(made, VOLCANO, NOW).binds == []
        for builder in job(name):
            made.put(*builder.build())


def test_the_last_word_on_each_job_is_what_is_said_of_its_last_pod() -> None:
    made = cluster(node("n").cpu(1), *job("a", 2), *job("b", 3), pod("lost").gang("none").cpu(1))
    conclusion = cycle(made, VOLCANO, NOW).conclusion
    assert conclusion is not None
    last = {waiting.task.name.rstrip("0123456789-"): waiting for waiting in conclusion.waiting()}
    assert {waiting.task.name: waiting for waiting in conclusion.last_words()} == {each.task.name: each for each in last.values()}
