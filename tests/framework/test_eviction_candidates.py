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
