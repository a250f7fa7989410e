"""Jobs for which there is certainly too little room are at rest: no action looks at them, and what is said of them is true all the same."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.inputs.cluster_from_files import advance
from pumice.scheduler.config.volcano_conf import DEFAULT, read_policy
from pumice.scheduler.framework import at_rest, startable_jobs
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.job_status import conclude
from pumice.scheduler.framework.observer import Observer, ReasonReader, Stage, Together
from pumice.scheduler.framework.past_evictions import PAST_EVICTIONS, EvictedFor, LastEviction
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.startable_jobs import StartableJobs
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.task import Task
from pumice.scheduler.placement.lazy_heap import LazyHeap
from pumice.scheduler.registry import PLUGINS
from pumice.testing import NOW, cluster, node, pod, podgroup, priority_class, queue
from tests.all_events import all_events
from tests.calls import calls

WITH_ACTIONS = """\
actions: "enqueue, {}"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: {}
  - name: nodeorder
"""
POLICY = read_policy(DEFAULT, PLUGINS)[0]


def evicting(actions: str, shares: str = "proportion") -> Policy:
    return read_policy(WITH_ACTIONS.format(actions, shares), PLUGINS)[0]


class Tried(Observer):
    """The jobs for whose pods a node was looked for."""

    needs_full_cycles = False

    def __init__(self) -> None:
        self.jobs: list[str] = []

    def turn(self, task: Task) -> None:
        if task.job is not None and task.job.name not in self.jobs:
            self.jobs.append(task.job.name)


def gang(name: str, size: int, cpu: int, least: int = 0, of: str = "default") -> list[object]:
    return [podgroup(name, least or size).queue(of).phase("Inqueue"), *pod(name).gang(name).cpu(cpu).times(size)]


def full(*more: object, policy: Policy = POLICY) -> Cluster:
    """Two nodes of 4 CPUs, taken by two jobs; a gang of 3 and one of 5 that wait; one cycle has seen them."""
    runs = [
        podgroup("a").phase("Running"),
        pod("a").gang("a").cpu(4).on("n0"),
        podgroup("b").phase("Running"),
        pod("b").gang("b").cpu(4).on("n1"),
    ]
    made = cluster(node("n0").cpu(4), node("n1").cpu(4), queue("default"), *runs, *gang("three", 3, 1), *gang("five", 5, 2), *more)
    cycle(made, policy, NOW)
    return made


def phases(decisions: Decisions) -> list[tuple[str, str, str]]:
    assert decisions.conclusion is not None
    return [(job.uid, phase, hypernode) for job, phase, hypernode in decisions.conclusion.phases()]


def test_after_a_pod_has_ended_only_jobs_that_may_fit_are_looked_at() -> None:
    made, tried = full(), Tried()
    made.remove("Pod", "default/a")
    decisions = cycle(made, POLICY, NOW + 1, observer=tried)
    assert tried.jobs == ["three"]
    assert {bind.task.job.name for bind in decisions.binds if bind.task.job is not None} == {"three"}


def test_what_is_said_of_a_job_at_rest_is_what_a_cycle_says_that_looks_at_each_job() -> None:
    made, other = full(), full()
    for each in (made, other):
        each.remove("Pod", "default/a")
    said = cycle(made, POLICY, NOW + 1)
    expected = cycle(other, replace(POLICY, shortcuts=False), NOW + 1)
    assert len(said.waiting) == len(expected.waiting) == 5
    before = made.revision
    assert [(each.task.key, each.message) for each in said.waiting] == [(each.task.key, each.message) for each in expected.waiting]
    assert [(each.job.uid, each.condition) for each in said.groups] == [(each.job.uid, each.condition) for each in expected.groups]
    assert made.revision == before
    assert {task.node_name for task in made.jobs["default/three"].tasks.values()} == {"n0"}
    assert said.conclusion is not None and expected.conclusion is not None
    assert [(job.uid, *rest) for job, *rest in said.conclusion.phases()] == [
        (job.uid, *rest) for job, *rest in expected.conclusion.phases()
    ]
    made.check()


def test_of_a_cycle_that_changed_nothing_only_what_cannot_be_found_out_again_is_kept() -> None:
    """What is remembered of such a cycle has no statuses of jobs that are like no other, and no session; what it says is the same."""
    alike = [*gang("six", 6, 3), *gang("also-six", 6, 3)]
    made = full(*alike, *(podgroup("outside").needs(cpu=10**6), *pod("outside").gang("outside").cpu(1).times(2)))
    first = cycle(made, POLICY, NOW + 1)
    recalled = cycle(made, POLICY, NOW + 2)
    assert first.conclusion is not None and recalled.conclusion is not None
    assert [[member.job.name for member in outcome.members] for outcome in recalled.conclusion.outcomes] == [["also-six", "six"]]
    assert {job.name for job in recalled.conclusion.at_rest.jobs} == {"three", "five", "outside"}
    assert len(recalled.waiting) == len(first.waiting)
    said = [(each.task.key, each.message) for each in first.waiting], [(each.job.uid, each.condition) for each in first.groups]
    assert ([(e.task.key, e.message) for e in recalled.waiting], [(e.job.uid, e.condition) for e in recalled.groups]) == said
    assert [(event.job.name, event.message) for event in all_events(recalled)] == [(e.job.name, e.message) for e in all_events(first)]
    assert cycle(made, POLICY, NOW + 3) is recalled
    made.check()


def test_nothing_is_kept_of_a_session_that_has_ended() -> None:
    ended: list[weakref.ref[Session]] = []

    class Seen(Tried):
        def begins(self, stage: Stage, subject: Any) -> None:
            if stage is Stage.SESSION:
                ended.append(weakref.ref(subject))

    made = full()
    made.remove("Pod", "default/five-4")
    cycle(made, POLICY, NOW + 1, observer=Seen())
    gc.collect()
    assert len(ended) == 1 and ended[0]() is None


def test_if_the_cluster_has_changed_since_it_is_what_is_true_now() -> None:
    made = full()
    made.remove("Pod", "default/a")
    said = cycle(made, POLICY, NOW + 1)
    advance(made, said, NOW + 1)
    made.put(*node("n2").cpu(1).build())
    assert "0/3 nodes are unavailable: 3 Insufficient cpu." in {each.message for each in said.waiting}
    made.check()


def test_whoever_reads_all_reasons_after_each_cycle_has_them_made_in_it() -> None:
    made, tried = full(), Tried()
    made.remove("Pod", "default/a")
    decisions = cycle(made, POLICY, NOW + 1, observer=Together([tried, ReasonReader()]))
    assert set(tried.jobs) == {"three", "five"}
    assert decisions.of_those_looked_at() is decisions


def test_the_decisions_of_those_looked_at_leave_out_the_others() -> None:
    made = full()
    made.remove("Pod", "default/a")
    decisions = cycle(made, POLICY, NOW + 1)
    assert {each.job.name for each in decisions.groups} > {each.job.name for each in decisions.of_those_looked_at().groups}


def test_a_job_is_not_looked_at_whose_queue_may_not_be_given_enough() -> None:
    limited = queue("small").capability(cpu=1)
    made, tried = full(limited, *gang("poor", 2, 1, of="small")), Tried()
    made.remove("Pod", "default/a")
    cycle(made, POLICY, NOW + 1, observer=tried)
    assert tried.jobs == ["three"]


def test_after_a_job_that_found_no_room_the_others_are_compared_again() -> None:
    made, tried = full(*gang("four", 4, 1), *gang("pair", 2, 2)), Tried()
    made.remove("Pod", "default/a")
    cycle(made, POLICY, NOW + 1, observer=tried)
    assert len(tried.jobs) == 1


def test_with_too_many_nodes_and_jobs_to_compare_each_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startable_jobs, "QUICK", 0)
    made, tried = full(*gang("wide", 1, 4)), Tried()
    made.remove("Pod", "default/a")
    made.remove("Pod", "default/b")
    cycle(made, POLICY, NOW + 1, observer=tried)
    assert set(tried.jobs) == {"three", "wide"}


def test_a_job_whose_queue_is_gone_is_nobodys() -> None:
    made, tried = full(queue("other"), *gang("left", 2, 1, of="other")), Tried()
    made.remove("Queue", "other")
    made.remove("Pod", "default/a")
    decisions = cycle(made, POLICY, NOW + 1, observer=tried)
    assert "left" not in tried.jobs
    assert "left" not in {each.job.name for each in decisions.groups}


def test_a_job_is_looked_at_if_the_least_that_its_pods_request_would_fit() -> None:
    mixed = [podgroup("mixed", 2).phase("Inqueue"), pod("m0").gang("mixed").cpu(4), pod("m1").gang("mixed").cpu(1).memory("1Gi")]
    made, tried = full(*mixed), Tried()
    made.remove("Pod", "default/a")
    cycle(made, POLICY, NOW + 1, observer=tried)
    assert tried.jobs == ["mixed", "three"]


def test_a_job_at_rest_that_an_action_changes_is_reported() -> None:
    made = full()
    with Session(made, POLICY, NOW + 1) as session:
        assert StartableJobs(session, lambda job: True).of() == [] and session.alike == []
        woken = session.together({"default/three": made.jobs["default/three"]})
        assert [alike.first.name for alike in woken] == ["three"] and woken[0].passed_over
        assert session.together({"default/three": made.jobs["default/three"]}) == woken


def test_pods_are_counted_also_of_a_job_at_rest_that_changed_and_was_not_looked_at() -> None:
    made = full()
    with Session(made, POLICY, NOW + 1) as session:
        assert StartableJobs(session, lambda job: True).of() == []
        made.report_again(made.jobs["default/three"])
        at_rest = conclude(session).at_rest
    assert sorted(job.name for job in at_rest.jobs) == ["five", "three"] and at_rest.pods == 8


def test_what_is_said_is_true_though_pods_were_evicted_in_the_cycle() -> None:
    policy = evicting("allocate, preempt")

    def made() -> Cluster:
        low = [podgroup("low", 0).phase("Running"), pod("low").gang("low").cpu(4).preemptable(True).on("n0")]
        high = [podgroup("high").phase("Inqueue").priority_class("high"), pod("high").gang("high").cpu(4)]
        found = cluster(node("n0").cpu(4), node("n1").cpu(1), queue("default"), priority_class("high", 9), *low, *gang("five", 5, 2))
        cycle(found, policy, NOW)
        for each in high:
            found.put(*each.build())
        return found

    kept, other = made(), made()
    said, expected = cycle(kept, policy, NOW + 1), cycle(other, replace(policy, shortcuts=False), NOW + 1)
    assert [each.task.key for each in said.evictions] == [each.task.key for each in expected.evictions] == ["default/low"]
    assert [(each.task.key, each.message) for each in said.waiting] == [(each.task.key, each.message) for each in expected.waiting]
    assert kept.tasks["default/low"].disrupted
    kept.check()


def test_what_is_said_is_true_though_an_eviction_of_the_cycle_was_the_second_of_its_pair() -> None:
    policy = evicting("preempt, allocate")

    def made() -> Cluster:
        low = [podgroup("low", 0).phase("Running"), pod("low").gang("low").cpu(4).on("n0")]
        high = [podgroup("high").phase("Inqueue").priority_class("high"), pod("high").gang("high").cpu(2)]
        found = cluster(node("n0").cpu(4), node("n1").cpu(1), queue("default"), priority_class("high", 9), *low, *gang("wide", 1, 6))
        found.memory[PAST_EVICTIONS] = {EvictedFor("default/low", "default/high", "preempt"): LastEviction(NOW - 60, 0, came_back=True)}
        cycle(found, policy, NOW)
        for each in high:
            found.put(*each.build())
        return found

    kept, other = made(), made()
    said, expected = cycle(kept, policy, NOW + 1), cycle(other, replace(policy, shortcuts=False), NOW + 1)
    assert said.conclusion is not None and [job.name for job in said.conclusion.at_rest.jobs] == ["wide"]
    assert [each.task.key for each in said.evictions] == [each.task.key for each in expected.evictions] == ["default/low"]
    assert [(each.task.key, each.message) for each in said.waiting] == [(each.task.key, each.message) for each in expected.waiting]


def test_jobs_come_and_go_while_others_are_at_rest() -> None:
    made = full()
    for number in range(70):
        for each in gang(f"more-{number}", 2, 3 + number % 3):
            made.put(*each.build())  # type: ignore[attr-defined]
    cycle(made, POLICY, NOW + 1)
    for number in range(70):
        made.remove("PodGroup", f"default/more-{number}")
    made.remove("Pod", "default/a")
    tried = Tried()
    cycle(made, POLICY, NOW + 2, observer=tried)
    assert tried.jobs == ["three"]


def test_in_a_tree_of_queues_jobs_without_hope_have_their_turns_in_vain() -> None:
    policy = read_policy(WITH_ACTIONS.format("allocate", "capacity\n    enableHierarchy: true"), PLUGINS)[0]
    queues = [queue("root"), *(queue(name).parent("root") for name in "ab"), queue("inner").parent("root"), queue("leaf").parent("inner")]
    waits = [each for name in ("a", "b", "leaf") for each in (*gang(f"wide-{name}", 2, 4, of=name), *gang(f"more-{name}", 3, 4, of=name))]
    tried, (binds, *_) = tried_after(policy, [*queues, *waits], gone="default/a")
    assert tried == ["three"] and len(binds) == 3
    tried, (binds, *_) = tried_after(policy, [*queues, *waits], gang("late", 1, 1, of="leaf"), "default/a")
    assert tried == ["late", "three"] and len(binds) == 4


def test_in_a_tree_of_queues_a_job_that_comes_in_vain_gives_no_turn_to_all_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy = read_policy(WITH_ACTIONS.format("allocate", "capacity\n    enableHierarchy: true"), PLUGINS)[0]
    names = [f"q{number}" for number in range(8)]
    queues = [queue("root"), *(queue(name).parent("root") for name in names)]
    waits = [each for name in names for each in gang(f"wide-{name}", 2, 4, of=name)]
    served, pop = list[object](), LazyHeap.pop
    monkeypatch.setattr(LazyHeap, "pop", lambda heap: served.append(pop(heap)) or served[-1])
    made = full(*queues, *waits, policy=policy)
    made.remove("Pod", "default/a")
    for each in gang("late", 2, 4, of="q7"):
        made.put(*each.build())  # type: ignore[attr-defined]
    served.clear()
    decisions, tried = cycle(made, policy, NOW + 1, observer=(seen := Tried())), seen.jobs
    assert sorted(tried) == ["late", "three"] and len(decisions.binds) == 3
    assert len(served) < len(names)
    tried, _ = tried_after(policy, [*queues, *waits], gang("late", 2, 4, of="q7"), "default/a")
    assert tried == ["late", "three"]


# -- actions that evict

ACTIONS = ["allocate, preempt, reclaim, backfill", "reclaim, preempt, allocate", "allocate, gangpreempt, gangreclaim"]
Said = tuple[list[tuple[str, ...]], ...]


def decided(said: Decisions) -> Said:
    return (
        [(each.task.key, each.node) for each in said.binds],
        [(each.task.key, each.beneficiary) for each in said.evictions],
        [(each.task.key, each.node) for each in said.pipelined],
        sorted((task.key, node) for task, node in said.nominations.items()),
    )


def tried_after(policy: Policy, waits: Sequence[object], comes: Sequence[Any] = (), gone: str = "") -> tuple[list[str], Said]:
    """The jobs that are looked at after a change, and what is decided: the same as by a cycle that looks at each."""
    made, other, tried = full(*waits, policy=policy), full(*waits, policy=policy), Tried()
    for each in (made, other):
        if gone:
            each.remove("Pod", gone)
        for builder in comes:
            each.put(*builder.build())
    said = decided(cycle(made, policy, NOW + 1, observer=tried))
    assert said == decided(cycle(other, replace(policy, shortcuts=False), NOW + 1))
    made.check()
    return sorted(tried.jobs), said


@pytest.mark.parametrize("actions", ["allocate, preempt, reclaim", "reclaim, allocate", "allocate, gangpreempt, gangreclaim"])
def test_actions_that_evict_do_not_look_at_jobs_for_which_no_room_can_be_made(actions: str) -> None:
    tried, (binds, evictions, _, nominated) = tried_after(evicting(actions), gang("wide", 3, 4), gone="default/a")
    assert tried == ["three"]
    assert len(binds) == 3 and not evictions and not nominated


def test_a_job_for_which_one_action_made_no_room_rests_again() -> None:
    served = list[tuple[str, str]]()  # actions with the jobs for whose pods they look for a node

    class Serves(Tried):
        def begins(self, stage: Stage, subject: Any) -> None:
            self.action = getattr(subject, "name", "")

        def turn(self, task: Task) -> None:
            assert task.job is not None
            served.append((self.action, task.job.name))

    policy, high = evicting("allocate, preempt, reclaim"), priority_class("high", 9)
    hard = podgroup("hard", 2).phase("Inqueue").priority_class("high")
    rubber = [node("n2").cpu(4), node("n3").cpu(4), podgroup("rubber", 6).phase("Running")]
    rubber += [each.on(f"n{2 + number // 4}") for number, each in enumerate(pod("rubber").gang("rubber").cpu(1).times(8))]
    waits = [hard, *pod("hard").gang("hard").cpu(2).times(2)]
    made, other = (full(high, *waits, *rubber, policy=policy) for _ in range(2))
    for each in (made, other):
        each.put(*node("n4").cpu("500m").build())
    said = cycle(made, policy, NOW + 1, observer=Serves())
    anew = cycle(other, replace(policy, shortcuts=False), NOW + 1)
    assert decided(said) == decided(anew)
    assert "rubber" not in {group.job.name for group in anew.groups}  # its pods were evicted only in a try
    assert served == [("preempt", "hard")] * 2  # one for each pod, and none within the job or by reclaim
    assert said.conclusion is not None and "hard" in {job.name for job in said.conclusion.at_rest.jobs}


@pytest.mark.parametrize("actions", ["allocate, preempt, reclaim", "reclaim, allocate"])
def test_a_job_rests_whose_pods_have_a_nominated_node_that_is_of_no_use(actions: str) -> None:
    noted = [each.having("status", "nominatedNodeName", value="n0") for each in pod("noted").gang("noted").cpu(4).times(3)]
    tried, said = tried_after(evicting(actions), [podgroup("noted", 3).phase("Inqueue"), *noted], gone="default/a")
    assert tried == ["three"] and len(said[0]) == 3


def test_gangreclaim_looks_at_a_job_only_if_its_queue_may_take_room_for_all_its_pods() -> None:
    policy = evicting("allocate, gangreclaim", "capacity")
    made = full(queue("poor").capability(cpu=2), *gang("few", 2, 1, of="poor"), *gang("many", 3, 1, 1, of="poor"), policy=policy)
    made.put(*queue("poor").capability(cpu=2).deserves(cpu=2).build())
    with Session(made, policy, NOW + 1) as session:
        all_may_go = session.nodes.allocatable - session.nodes.future_idle
        found = StartableJobs(session, lambda job: True, evictable=all_may_go, takes_for_all=True).of(made.queues["poor"])
        assert [alike.first.name for alike in found] == ["few"]


def test_in_a_tree_of_queues_a_job_that_lacks_pods_has_no_turn() -> None:
    text = WITH_ACTIONS.format("allocate", "capacity\n    enableHierarchy: true")
    policy, tried = read_policy(text, PLUGINS)[0], Tried()
    lame = [podgroup("lame", 3).queue("leaf").phase("Inqueue"), *pod("lame").gang("lame").cpu(1).times(2)]
    made = full(queue("leaf").parent("root"), *lame, *gang("pair", 2, 1, of="leaf"), policy=policy)
    made.remove("Pod", "default/a")
    cycle(made, policy, NOW + 1, observer=tried)
    assert tried.jobs == ["three"]


def test_many_nodes_and_jobs_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_rest, "BLOCK", 1)
    tried, _ = tried_after(POLICY, [*gang("four", 4, 1), node("n2").cpu(1), node("n3").cpu(1)], gone="default/a")
    assert tried == ["four"]


def test_preempt_looks_at_jobs_that_might_give_up_pods_of_their_own_for_others_of_theirs() -> None:
    part = [node("n2").cpu(1), podgroup("part", 2).phase("Running"), pod("part-0").gang("part").cpu(1).on("n2")]
    tried, _ = tried_after(evicting("allocate, preempt"), [*part, pod("part-1").gang("part").cpu(5)], gone="default/a")
    assert tried == ["part", "three"]


def test_preempt_looks_at_jobs_of_which_one_pod_could_wait_for_room_alone() -> None:
    tried, (_, _, pipelined, _) = tried_after(evicting("preempt"), [*gang("wide", 3, 5), *gang("two", 2, 3)], gone="default/a")
    assert tried == ["three"]  # which leaves nothing for the others
    assert len(pipelined) == 3


def test_only_the_jobs_of_a_loop_of_evictions_are_always_looked_at() -> None:
    policy, seen = evicting("allocate, preempt"), Tried()
    of_both, waits = list[Decisions](), [*gang("held", 3, 1), *gang("wide", 2, 4)]
    for each, observer in ((policy, seen), (replace(policy, shortcuts=False), Tried())):
        made = full(*waits, policy=each)
        pair = EvictedFor("default/held", "default/wide", "preempt")
        made.memory[PAST_EVICTIONS] = {pair: LastEviction(NOW, 0, came_back=True, rounds=2)}
        made.remove("Pod", "default/a")
        of_both.append(cycle(made, each, NOW + 1, observer=observer))
    assert decided(of_both[0]) == decided(of_both[1])
    assert {bind.task.job.name for bind in of_both[0].binds if bind.task.job} == {"three"}
    assert sorted(seen.jobs) == ["three", "wide"]  # "held" is like "three", but waits for "wide"; "five" rests


LOW = priority_class("low", -9)


def elastic() -> list[Any]:
    """A node with an unimportant job of two pods that may lose one of them."""
    job = podgroup("rubber", 1).priority_class("low").phase("Running")
    return [node("n2").cpu(4), job, *(pod(f"rubber-{n}").gang("rubber").cpu(2).on("n2") for n in "01")]


@pytest.mark.parametrize("actions", ACTIONS)
def test_actions_that_evict_look_at_jobs_for_which_room_might_be_made(actions: str) -> None:
    tried, (_, evictions, _, _) = tried_after(evicting(actions), [LOW, *gang("one", 1, 2), *gang("wide", 1, 5)], elastic())
    assert "one" in tried and "wide" not in tried
    assert [beneficiary.partition("-")[0] for _, beneficiary in evictions] == ["default/one"]


def test_a_job_has_no_turn_if_plugins_would_let_nobody_go_for_it() -> None:
    same = [podgroup("same", 1).priority_class("low").phase("Inqueue"), pod("same").gang("same").cpu(2)]
    tried, (_, evictions, _, _) = tried_after(evicting("allocate, preempt"), [LOW, *gang("one", 1, 2), *same], elastic())
    assert "one" in tried and "same" not in tried and len(evictions) == 1
    tried, _ = tried_after(evicting("preempt"), [LOW, *same], [node("n2").cpu(2)])
    assert "same" in tried  # it needs no eviction


def test_where_too_many_jobs_and_nodes_are_not_compared_the_decisions_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    same = [podgroup("same", 1).priority_class("low").phase("Inqueue"), pod("same").gang("same").cpu(2)]
    comes = [*elastic(), node("n3").cpu(1)]
    _, said = tried_after(evicting("allocate, preempt"), [LOW, *same], comes)
    monkeypatch.setattr(startable_jobs, "QUICK", 0)
    assert said == tried_after(evicting("allocate, preempt"), [LOW, *same], comes)[1]


@pytest.mark.parametrize("shares", ["proportion", "capacity"])
@pytest.mark.parametrize("actions", ACTIONS)
def test_reclaim_looks_at_jobs_of_queues_that_may_take_room_from_others(actions: str, shares: str) -> None:
    waits = [LOW, queue("poor").capability(cpu=0), *gang("poor", 1, 2, of="poor"), *gang("wide", 1, 5, of="poor")]
    tried, _ = tried_after(evicting(actions, shares), waits, [queue("poor").capability(cpu=8).deserves(cpu=8), *elastic()])
    assert "poor" in tried and "wide" not in tried


def test_of_many_kinds_that_rest_nothing_is_kept_that_is_quickly_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_rest, "FEW_KINDS", 1)
    pods = [[podgroup(f"g{cpu}").phase("Inqueue"), pod(f"p{cpu}").cpu(cpu).gang(f"g{cpu}")] for cpu in (8, 9, 10)]
    made = cluster(node("n").cpu(4), queue("default"), *(each for both in pods for each in both))
    for number in range(2):  # a job is at rest after its first cycle
        cycle(made, POLICY, NOW + number)
    assert [dict(vars(task.template)) for task in made.tasks.values()] == [{}, {}, {}]
    assert [float(task.template.request[0]) for task in made.tasks.values()] == [8000, 9000, 10000]


def test_a_gang_that_wants_more_pods_than_can_be_counted_waits_like_any_other() -> None:
    huge = [podgroup("huge", 2**63 - 1).phase("Inqueue"), pod("huge").gang("huge").cpu(1)]
    tried, _ = tried_after(POLICY, [*gang("one", 1, 2), *huge], [node("n2").cpu(2)])
    assert "one" in tried and "huge" not in tried


def test_in_a_tree_of_queues_a_job_of_a_large_burst_costs_no_more_than_one_of_a_small_burst() -> None:
    policy = read_policy(WITH_ACTIONS.format("allocate", "capacity\n    enableHierarchy: true"), PLUGINS)[0]

    def cost(jobs: int) -> float:
        queues = [queue("root"), *(queue(name).parent("root") for name in "ab")]
        made = cluster(*(node(f"n{number}").cpu(64) for number in range(3)), *queues, *gang("waits", 1, 65, of="a"))
        cycle(made, policy, NOW)
        for number in range(jobs):
            for each in gang(f"j{number}", 1, 1, of="ab"[number % 2]):
                made.put(*each.build())  # type: ignore[attr-defined]
        count = calls(lambda: cycle(made, policy, NOW + 1))
        assert len(made.waiting) == 1
        return count / jobs

    assert cost(160) < 1.1 * cost(40)
