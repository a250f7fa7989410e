"""What a session promises: gangs whole or not at all, statements undone to the bit, closing leaves only decisions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.extensions import of_folder
from pumice.scheduler.engine.rules import Reason, Refused
from pumice.scheduler.engine.view import View
from pumice.scheduler.framework import folds
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.hook_answers import Vote
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import Action, PluginOption
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.task import Task
from pumice.testing import cluster, node, pod, podgroup, queue, schedule, session
from pumice.testing.scene import policy, scores


def two_nodes() -> Cluster:
    return cluster(node("a").cpu(2), node("b").cpu(2), podgroup("train", 3), *pod("train").cpu(1).gang("train").times(4))


def snapshot(made: Cluster) -> tuple[bytes, ...]:
    nodes = made.nodes
    return tuple(array.tobytes() for array in (nodes.used, nodes.releasing, nodes.pipelined, nodes.nonzero_used, nodes.used_for_filters))


def test_a_gang_is_placed_and_its_elastic_rest_too() -> None:
    outcome = schedule(two_nodes(), "enqueue, allocate", "gang", "predicates", "nodeorder")
    assert outcome.binds == {"default/train-0": "a", "default/train-1": "b", "default/train-2": "a", "default/train-3": "b"}
    assert outcome.phases == {"default/train": "Inqueue"}


def test_a_gang_that_lacks_one_place_leaves_the_cluster_as_it_was() -> None:
    made = cluster(node("a").cpu(2), podgroup("train", 3), *pod("train").cpu(1).gang("train").times(3))
    before = snapshot(made)
    outcome = schedule(made, "enqueue, allocate", "gang", "predicates")
    assert outcome.binds == {}
    assert snapshot(made) == before
    assert outcome.waiting["default/train-0"] == "Pod default/train-0 can possibly be assigned to a, once minAvailable is satisfied"
    made.check()


def test_a_statement_undoes_allocation_pipelining_and_eviction_exactly() -> None:
    made = cluster(
        node("a").cpu(4), podgroup("run"), podgroup("new"), pod("old").cpu(2).gang("run").on("a"), *pod("new").cpu(2).gang("new").times(2)
    )
    tasks = made.tasks
    with session(made, "gang") as opened:
        before = snapshot(made)
        with opened.statement() as statement:
            statement.allocate(tasks["default/new-0"], 0)
            mark = statement.mark()
            statement.evict(tasks["default/old"], "test")
            statement.pipeline(tasks["default/new-1"], 0, evicted=True)
            made.check()
            statement.rollback(mark)
            assert tasks["default/old"].status == status.RUNNING
            assert tasks["default/new-0"].status == status.ALLOCATED
        assert snapshot(made) == before
        assert [task.status for task in tasks.values()] == [status.RUNNING, status.PENDING, status.PENDING]
    made.check()


def test_what_is_kept_but_not_decided_is_undone_when_the_session_closes() -> None:
    made = cluster(node("a").cpu(1), podgroup("g"), pod("p").cpu(1).gang("g"))
    before = snapshot(made)
    with session(made, "gang") as opened:
        with opened.statement() as statement:
            statement.allocate(made.tasks["default/p"], 0)
            statement.keep()
        assert snapshot(made) != before
    assert snapshot(made) == before
    assert made.waiting


def test_a_committed_wait_for_room_lasts_until_the_session_closes_and_an_eviction_stays() -> None:
    made = cluster(node("a").cpu(2), podgroup("run"), podgroup("new"), pod("old").cpu(2).gang("run").on("a"), pod("new").cpu(2).gang("new"))
    old, new = (made.tasks[f"default/{name}"] for name in ("old", "new"))
    with session(made, "gang") as opened:
        with opened.statement() as statement:
            statement.evict(old, "test", "default/new")
            statement.pipeline(new, 0, evicted=True)
            statement.commit()
        assert (old.status, new.status, new.node) == (status.RELEASING, status.PIPELINED, 0)
        assert [eviction.task for eviction in opened.decisions.evictions] == [old]
    assert (old.status, new.status, new.node) == (status.RELEASING, status.PENDING, -1)
    made.check()


def test_a_committed_bind_stays_and_is_not_placed_again() -> None:
    made = cluster(node("a").cpu(1), podgroup("g"), pod("p").cpu(1).gang("g"))
    assert schedule(made, "enqueue, allocate", "gang").binds == {"default/p": "a"}
    assert schedule(made, "enqueue, allocate", "gang").binds == {}
    assert made.tasks["default/p"].status == status.BINDING


class Broken(Action):
    """It fails with a pod taken off its node."""

    name = "broken"

    def run(self, session: Session) -> None:
        with session.statement() as statement:
            statement.evict(session.decisions.binds[-1].task, self.name)
            raise RuntimeError("boom")


def memories(made: Cluster) -> list[tuple[str, float | None]]:
    return [(job.phase, job.waiting_since) for job in made.jobs.values()]


def test_action_of_ours_that_fails_leaves_no_trace_of_what_was_decided_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Broken, "__module__", "pumice.scheduler.actions.broken")
    made = two_nodes()
    before = snapshot(made), memories(made)
    ordinary = policy("enqueue, allocate", ("gang", "predicates"))
    with pytest.raises(RuntimeError, match="boom"):
        cycle(made, replace(ordinary, actions=(*ordinary.actions, Broken())), 0.0)
    assert (snapshot(made), memories(made)) == before
    made.check()
    assert cycle(made, ordinary, 0.0).binds, "and it is decided as if nothing had been"


def test_action_from_outside_that_fails_is_named_and_undone_and_the_others_go_on() -> None:
    made, ordinary = two_nodes(), policy("enqueue, allocate", ("gang", "predicates"))
    found = cycle(made, replace(ordinary, actions=(*ordinary.actions, Broken(), Broken())), 0.0)
    assert len(found.binds) == 4 and not found.evictions
    (failure,) = found.failures
    assert str(failure).startswith("action broken failed in run (test_session.py:") and str(failure).endswith("RuntimeError: boom")
    made.check()


class Forgetful(Plugin):
    """It fails after all was decided, while the session closes."""

    name = "forgetful"

    def close(self, session: Session) -> None:
        raise RuntimeError("at the end")


def test_plugin_of_ours_that_fails_at_the_end_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Forgetful, "__module__", "pumice.scheduler.plugins.volcano.forgetful")
    made = two_nodes()
    before = snapshot(made), memories(made)
    with pytest.raises(RuntimeError, match="at the end"):
        cycle(made, policy("enqueue, allocate", ("gang", "predicates", Forgetful)), 0.0)
    assert (snapshot(made), memories(made)) == before
    made.check()


class Stubborn(Plugin):
    """It fails when a reserved place is taken back, at the very end."""

    name = "stubborn"

    def on_deallocate(self, task: Task) -> None:
        raise RuntimeError("not back")


def test_plugin_of_ours_that_fails_while_places_are_taken_back_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stubborn, "__module__", "pumice.scheduler.plugins.volcano.stubborn")
    made = two_nodes()
    before = snapshot(made), memories(made)
    with pytest.raises(RuntimeError, match="not back"), Session(made, policy("allocate", ("gang", Stubborn)), 0.0) as opened:
        with opened.statement() as statement:
            statement.allocate(made.tasks["default/train-0"], 0)
            statement.keep()
        opened.close()
    assert (snapshot(made), memories(made)) == before
    made.check()


def test_a_method_that_is_nearly_a_hook_is_a_slip() -> None:
    with pytest.raises(TypeError, match='did you mean "job_ready"'):

        class Slip(Plugin):
            name = "slip"

            def job_redy(self, job: object) -> bool:
                return True


def test_plugins_may_look_at_all_nodes_or_at_one() -> None:
    class Arrays(Plugin):
        name = "arrays"

        def filter(self, task: Task, nodes: object) -> np.ndarray:
            return np.array([name != "a" for name in nodes.names])

        def score(self, task: Task, nodes: object) -> np.ndarray:
            return nodes.allocatable[nodes.column("cpu")]

    class Single(Plugin):
        name = "single"

        def filter_node(self, task: Task, node: object) -> str | None:
            return "too small" if node.idle("cpu") < 2000 or node.idle("nvidia.com/gpu") < 0 else None

        def score_node(self, task: Task, node: object) -> float:
            return 1.0 if node.labels["kubernetes.io/hostname"] == "c" and not list(node.tasks) else 0.0

    def made() -> Cluster:
        return cluster(node("a").cpu(8), node("b").cpu(4), node("c").cpu(2), node("d").cpu(1), podgroup("g"), pod("p").cpu(1).gang("g"))

    assert schedule(made(), "enqueue, allocate", Arrays).binds == {"default/p": "b"}
    assert schedule(made(), "enqueue, allocate", Single).binds == {"default/p": "c"}
    big = cluster(node("d").cpu(1), podgroup("g"), pod("p").cpu(1).gang("g"))
    assert schedule(big, "enqueue, allocate", Single).waiting == {"default/p": "0/1 nodes are unavailable: 1 too small."}
    assert schedule(big, "enqueue, allocate", PluginOption(Single, off=frozenset(["enablePredicate"]))).binds == {"default/p": "d"}


def tasks_named(*names: str) -> list[Task]:
    made = cluster(*(pod(name) for name in names))
    return [made.tasks[f"default/{name}"] for name in names]


class Says(Plugin):
    """Always the same of victims, and remembers of whom it was asked."""

    name = "says"

    def __init__(self, answer: list[Task] | Vote | None, *, sees_refused_victims: bool = False) -> None:
        super().__init__()
        self.answer = answer
        self.sees_refused_victims = sees_refused_victims  # type: ignore[misc]
        self.asked_about: list[Task] = []

    def preemptable(self, evictor: Any, candidates: list[Task]) -> list[Task] | Vote | None:
        self.asked_about = candidates
        return self.answer


def test_victims_are_those_that_every_voter_of_the_first_voting_tier_accepts() -> None:
    a, b, c = tasks_named("a", "b", "c")
    everyone, nobody, veto, abstains = [a, b, c], [], Vote.REJECT, None

    def victims(*tiers: list[list[Task] | Vote | None]) -> list[Task]:
        return folds.intersect_by_tier([[Says(answer).preemptable for answer in tier] for tier in tiers], None, everyone)[0]

    assert victims([[b, a], [a, b]]) == [b, a]
    assert victims([abstains, [c]], [everyone]) == [c]
    assert victims([[a], [b], everyone], [[c]]) == [c]
    assert victims([everyone, veto], [[a]]) == [a]
    assert victims([nobody, everyone]) == []
    assert victims([], []) == []


def test_whom_one_refuses_the_next_is_not_asked_about_unless_it_counts_them_too() -> None:
    a, b, c = tasks_named("a", "b", "c")
    first, second, all_seeing = Says([a, b]), Says([b, c]), Says([b], sees_refused_victims=True)
    assert folds.intersect_by_tier([[first.preemptable, second.preemptable, all_seeing.preemptable]], None, [a, b, c])[0] == [b]
    assert [plugin.asked_about for plugin in (first, second, all_seeing)] == [[a, b, c], [a, b], [a, b, c]]


def test_the_first_with_an_opinion_decides_and_nobody_after_it_is_asked() -> None:
    def unasked() -> int:
        raise AssertionError("asked")

    assert folds.first_decided([lambda: 0, lambda: -2, unasked]) == -2
    assert folds.first_decided([lambda: 0, lambda: 0]) == folds.first_decided([]) == 0


def test_a_veto_ends_a_vote_and_a_permit_ends_its_tier() -> None:
    yes, no, silent = (lambda: Vote.PERMIT), (lambda: Vote.REJECT), (lambda: Vote.ABSTAIN)
    assert folds.vote_by_tier([[silent], []])
    assert folds.vote_by_tier([[yes, silent], [no]])
    assert not folds.vote_by_tier([[yes, no]])
    assert not folds.vote_by_tier([[silent], [no]])


def test_the_first_tier_with_a_voice_says_who_starves() -> None:
    assert not folds.agree_in_first_tier([[], []])
    assert folds.agree_in_first_tier([[], [lambda: True], [lambda: False]])
    assert not folds.agree_in_first_tier([[lambda: True, lambda: False]])


def test_victims_named_by_anybody_of_the_first_naming_tier_go() -> None:
    a, b = tasks_named("a", "b")
    assert folds.union_in_first_tier([[list, list], [lambda: [a], lambda: [b, a]], [lambda: [b]]]) == [a, b]
    assert folds.union_in_first_tier([[list]]) == []


def test_running_tasks_are_listed_only_if_a_plugin_looks_for_victims_among_them() -> None:
    class Untold(dict[str, Any]):
        def values(self) -> Any:
            raise AssertionError("all jobs were gone through")

    class Lazy(Plugin):
        name = "lazy"

        def victim_tasks(self, candidates: Iterable[Task]) -> list[Task]:
            return []

    class Mover(Plugin):
        name = "mover"

        def victim_tasks(self, candidates: Iterable[Task]) -> list[Task]:
            return [task for task in candidates if task.name.endswith("1")]

    tasks = [one.on("a") for one in pod("p").cpu(1).gang("g").times(2)]
    made = cluster(node("a").cpu(4), podgroup("g"), *tasks, pod("q").cpu(1).gang("g"))
    assert schedule(made, "shuffle", Lazy, Mover).evictions == ["default/p-1"]
    made.jobs = Untold(made.jobs)
    assert schedule(made, "shuffle", Lazy).evictions == []
    assert schedule(made, "shuffle", "gang").evictions == []


def test_plugins_are_told_who_came_to_hold_a_place_and_who_ceased_to_and_of_nobody_else() -> None:
    told: list[str] = []

    class Listener(Plugin):
        name = "listener"

        def on_allocate(self, task: Task) -> None:
            told.append(f"+{task.name}")

        def on_deallocate(self, task: Task) -> None:
            told.append(f"-{task.name}")

    existing = [pod(name).gang("g").on("a") for name in ("old", "lost")]
    lost = existing[1].having("status", "phase", value="Unknown")
    made = cluster(node("a").cpu(4), podgroup("g"), existing[0], lost, pod("new").gang("g"), pod("free"))
    tasks = {task.name: task for task in made.tasks.values()}
    with session(made, Listener) as opened, opened.statement() as statement:
        statement.evict(tasks["old"], "test")
        statement.evict(tasks["lost"], "test")
        statement.pipeline(tasks["new"], 0)
        statement.allocate(tasks["free"], 0)
        statement.displace(tasks["new"])
        statement.allocate(tasks["new"], 0)
        assert told == ["-old", "+new", "-new", "+new"]
        told.clear()
        statement.rollback()
        assert told == ["-new", "+new", "-new", "+old"]


def test_a_plugin_listed_twice_is_told_once_and_scores_twice() -> None:
    told: list[str] = []

    class Counter(Plugin):
        name = "counter"

        def open(self, session: Session) -> None:
            told.append("open")

        def on_allocate(self, task: Task) -> None:
            told.append(task.name)

        def score(self, task: Task, nodes: View) -> Any:
            return np.ones(len(nodes))

    made = cluster(node("a").cpu(4), podgroup("g"), pod("new").gang("g"))
    with session(made, Counter, "gang", Counter) as opened, opened.statement() as statement:
        assert scores(opened, "new") == {"a": 2.0}
        statement.allocate(made.tasks["default/new"], 0)
        assert told == ["open", "new"]


def test_a_plugin_may_name_the_node_itself_or_leave_it_to_the_scores() -> None:
    class Chooser(Plugin):
        name = "chooser"

        def best_node(self, task: Task, scores: np.ndarray) -> int | None:
            return 2 if task.name == "p-0" else None

    made = cluster(*(node(name).cpu(4) for name in "abc"), podgroup("g"), *pod("p").cpu(1).gang("g").times(2))
    assert schedule(made, "enqueue, allocate", Chooser).binds == {"default/p-0": "c", "default/p-1": "a"}


def test_a_filter_over_all_nodes_may_give_its_reasons() -> None:
    class Picky(Plugin):
        name = "picky"

        def filter(self, task: Task, nodes: View) -> list[Refused]:
            small = nodes.allocatable[nodes.column("cpu")] < 4000
            return [Refused(small, Reason("too small")), Refused(~small, Reason("too dear", final=True))]

    made = cluster(node("a").cpu(4), node("b").cpu(2), podgroup("g"), pod("p").cpu(1).gang("g"))
    outcome = schedule(made, "enqueue, allocate", Picky)
    assert outcome.waiting == {"default/p": "0/2 nodes are unavailable: 1 too dear, 1 too small."}


def test_a_class_without_a_name_is_no_plugin_but_may_be_what_several_share(tmp_path: Path) -> None:
    text = """
from pumice.scheduler.framework.plugin import Plugin

class Ordered(Plugin):
    def job_ordering(self):
        return 1

    def job_order(self, job):
        return self.job_ordering()

class First(Ordered):
    name = "first"
"""
    (tmp_path / "shared.py").write_text(text)
    assert {name: plugin.hooks() for name, plugin in of_folder(str(tmp_path), Plugin).items()} == {"first": ["job_order"]}


def test_a_plugin_that_does_not_tell_whom_it_answers_alike_is_asked_for_each() -> None:
    class Silent(Plugin):
        name = "silent"

        def preemptable(self, evictor: Task, candidates: list[Task]) -> list[Task]:
            return candidates

    class Telling(Silent):
        name = "telling"

        def eviction_cache_key(self, evictor: Task) -> str:
            return "any"

    made = cluster(node("a").cpu(4), podgroup("g"), pod("one").gang("g"), pod("two").gang("g"))
    one, two = made.tasks.values()
    with session(made, Silent) as opened:
        assert opened.evictable.eviction_cache_key("preemptable", one) != opened.evictable.eviction_cache_key("preemptable", two)
    with session(made, Telling) as opened:
        assert opened.evictable.eviction_cache_key("preemptable", one) == opened.evictable.eviction_cache_key("preemptable", two)


def test_actions_of_others_ask_for_orders_and_victims_by_the_names_in_the_documentation() -> None:
    made = cluster(node("a").cpu(4), queue("q"), podgroup("g").queue("q"), pod("one").gang("g"), pod("runs").gang("g").on("a"))
    (job,) = made.jobs.values()
    waits, runs = made.tasks["default/one"], made.tasks["default/runs"]
    with session(made, "gang", "priority") as opened:
        assert opened.job_key(job) == opened.orders.job_key(job) and opened.task_key(waits) == opened.orders.task_key(waits)
        assert opened.queue_key(made.queues["q"]) == opened.orders.queue_key(made.queues["q"])
        assert opened.preemptable(waits, [runs]) == opened.evictable.permitted("preemptable", waits, [runs])
        assert opened.reclaimable(waits, [runs]) == opened.evictable.permitted("reclaimable", waits, [runs])
    with session(made, "gang") as opened:
        assert opened.unified_evictable(None, [runs]) == [runs]
