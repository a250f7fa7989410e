"""Where evictions could make room: what is known of everybody serves each queue, without its own."""

from __future__ import annotations

from pumice.scheduler.eviction.candidate_nodes import EvictionCandidates
from pumice.scheduler.model import status
from pumice.scheduler.model.task import Task
from pumice.testing import PodBuilder, cluster, node, pod, podgroup, queue, session


def running(name: str, group: str, on: str) -> PodBuilder:
    return pod(name).cpu(1).gang(group).on(on)


def test_what_others_hold_is_known_of_each_queue_as_if_it_were_counted_for_it_alone() -> None:
    made = cluster(
        *(node(name).cpu(4) for name in "abc"),
        *(queue(name) for name in ("one", "two")),
        *(podgroup(name).queue(name) for name in ("one", "two")),
        *(running(f"{where}-{group}", group, where) for where in "ab" for group in ("one", "two")),
        running("more", "one", "a"),
        pod("wanted").cpu(3).gang("two"),
        pod("larger").cpu(4).gang("two"),
    )

    def of_others(task: Task) -> bool:
        return bool(task.status & status.RUNNING) and task.job is not made.jobs["default/two"]

    with session(made, "gang") as opened, opened.statement() as statement:
        everybody = EvictionCandidates(opened, opened.evictable.exposed("reclaimable"), lambda task: bool(task.status & status.RUNNING))
        for gone in ("default/a-one", "default/a-two"):  # what happens meanwhile counts too
            statement.evict(made.tasks[gone], "test")
            shared = everybody.without([made.jobs["default/two"]], of_others)
            alone = EvictionCandidates(opened, {made.jobs["default/one"]}, of_others)
            for name in ("default/wanted", "default/larger"):
                task = made.tasks[name]
                assert (shared.rows(task) == alone.rows(task)).all()
        assert shared.rows(made.tasks["default/larger"]).tolist() == [True, False, True]


def test_what_a_gang_holds_that_would_fall_below_its_minimum_is_no_room_to_be_made() -> None:
    made = cluster(
        *(node(name).cpu(2) for name in "ab"),
        queue("default"),
        podgroup("at-minimum", 2),
        podgroup("above", 1),
        *(running(f"{name}-{number}", name, where) for name, where in (("at-minimum", "a"), ("above", "b")) for number in range(2)),
        pod("wanted").cpu(2),
    )

    def rows(*plugins: str) -> list[bool]:
        with session(made, *plugins) as opened:
            found = EvictionCandidates(opened, opened.evictable.exposed("preemptable"), lambda task: task.status == status.RUNNING)
            return found.rows(made.tasks["default/wanted"]).tolist()

    assert rows("gang") == [False, True]
    assert rows("conformance") == [True, True]


def test_a_row_is_asked_about_its_tasks_once_for_all_queues_until_a_queue_gains_a_task_there() -> None:
    made = cluster(
        *(node(name).cpu(4) for name in "ab"),
        *(queue(name).deserves(cpu=most) for name, most in (("fair", 3), ("greedy", 1), ("taker", 4))),
        *(podgroup(name, 1).queue(name).phase("Running") for name in ("fair", "greedy")),
        *(running(f"fair-{number}", "fair", "a") for number in range(3)),
        running("greedy-0", "greedy", "a"),
        *(running(f"greedy-{number}", "greedy", "b") for number in (1, 2)),
        *(podgroup(name, 1).queue(name).admitted().pods(1, cpu=2) for name in ("taker", "more")),
        podgroup("more", 1).queue("fair").admitted(),
    )
    with session(made, "gang", "capacity") as opened:
        everybody = EvictionCandidates(opened, set(made.jobs.values()), lambda task: task.status == status.RUNNING, "reclaimable")
        taker, more, row = made.tasks["default/taker-0"], made.tasks["default/more-0"], opened.nodes.rows["a"]
        assert everybody.unspared is not None and everybody.rows(taker)[row]
        assert [task.name for task in everybody.unspared.ask(taker, row)] == ["greedy-0"] and not everybody.rows(taker)[row]
        with opened.statement() as statement:
            statement.evict(made.tasks["default/greedy-2"], "test")
            assert not everybody.rows(taker)[row]
            statement.pipeline(more, opened.nodes.rows["b"])
            assert everybody.rows(taker)[row] and len(everybody.unspared.ask(taker, row)) == 4 and everybody.rows(taker)[row]


def test_who_has_pods_above_its_minimum_follows_evictions_and_their_undoing() -> None:
    made = cluster(
        node("a").cpu(4), queue("default"), podgroup("above", 1).phase("Running"), *(running(f"p{n}", "above", "a") for n in range(2))
    )
    with session(made, "gang") as opened:
        assert opened.evictable.exposed("preemptable") == {made.jobs["default/above"]}
        with opened.statement() as statement:
            statement.evict(made.tasks["default/p0"], "test")
            assert not opened.evictable.exposes_any("preemptable")
        assert opened.evictable.exposes_any("preemptable")
