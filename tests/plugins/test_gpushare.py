"""gpushare: cards cut by memory, who fits where, what is written on the pod, and that undoing undoes it all."""

from __future__ import annotations

from typing import Any

import pytest
from scene import binds, cycle_on, opened
from sharing import INDEX, gpu_node, picks, rules

from pumice.scheduler.framework.session import Session
from pumice.scheduler.plugins.volcano.deviceshare.cards import Card
from pumice.scheduler.plugins.volcano.deviceshare.gpushare import GpuRequest
from pumice.testing import NOW, NodeBuilder, cluster, node, pod, podgroup, refusals

SHARING = rules(GPUSharingEnable=True, GPUNumberEnable=True)


@pytest.mark.parametrize(
    ("memory", "number", "used", "chosen"),
    [
        (5, 0, (0, 0), [[0]]),
        (5, 0, (4, 0), [[1]]),
        (5, 0, (3, 0), [[0]]),  # the first that has it, not the emptiest
        (5, 0, (4, 4), "node(s) had no GPU card with 5 volcano.sh/gpu-memory idle"),
        (0, 2, (0, 0), [[0, 1]]),
        (0, 1, (1, 0), [[1]]),
        (0, 2, (1, 0), "node(s) had fewer than 2 unused GPU cards"),
    ],
)
def test_memory_goes_to_the_first_card_that_has_it_and_whole_cards_must_be_unused(
    memory: int, number: int, used: tuple[int, ...], chosen: Any
) -> None:
    cards = [Card(str(at), "", 0, 8, int(amount > 0), amount) for at, amount in enumerate(used)]
    assert picks(GpuRequest(memory, number, frozenset()), *cards) == chosen


def test_memory_of_two_cards_does_not_add_up() -> None:
    pods = [pod(f"p-x-{i}").gang("g").cpu(1).volcano(gpu_memory=5120) for i in range(3)]
    made = cluster(gpu_node("n"), podgroup("g").admitted(), *pods)
    decisions = cycle_on(made, SHARING)
    assert {bind.task.name: bind.annotations[INDEX] for bind in decisions.binds} == {"p-x-0": "0", "p-x-1": "1"}
    assert decisions.binds[0].annotations["volcano.sh/predicate-time"] == f"{int(NOW)}000000000"


@pytest.mark.parametrize(
    ("thing", "reason"),
    [
        (node("n").cpu(8), "node not initialized with device gpushare"),
        (node("n").cpu(8).volcano(gpu_number=0, gpu_memory=0), "node not initialized with device gpushare"),
        (node("n").cpu(8).volcano(gpu_number=10**12, gpu_memory=10**15), "node not initialized with device gpushare"),
        (gpu_node("n", gpu_unhealthy_ids="0, 1"), "node not initialized with device gpushare"),
        (gpu_node("n", gpu_unhealthy_ids="0"), None),
    ],
)
def test_a_node_without_healthy_cards_is_refused(thing: NodeBuilder, reason: str | None) -> None:
    session = opened(cluster(thing, podgroup("g").admitted(), pod("p").gang("g").cpu(1).volcano(gpu_memory=1024)), SHARING)
    assert refusals(session, "p").get("n") == reason


def test_running_pods_hold_the_cards_that_their_annotations_name() -> None:
    things = [
        pod("part").gang("g").on("n").cpu(1).volcano(gpu_memory=5120).annotation(INDEX, "0"),
        pod("whole").gang("g").on("n").cpu(1).volcano(gpu_number=2).annotation(INDEX, "1,2"),
        pod("nothing").gang("g").on("n").cpu(1).annotation(INDEX, "3"),
        pod("elsewhere").gang("g").on("n").cpu(1).volcano(gpu_memory=8192).annotation(INDEX, "9"),
        pod("small").gang("g").cpu(1).volcano(gpu_memory=3072),
        pod("large").gang("g").cpu(1).volcano(gpu_memory=4096),
        pod("card").gang("g").cpu(1).volcano(gpu_number=1),
        pod("cards").gang("g").cpu(1).volcano(gpu_number=2),
    ]
    session = opened(cluster(gpu_node("n", cards=4), podgroup("g").admitted(), *things), SHARING)
    assert [name for name in ("small", "large", "card", "cards") if refusals(session, name)] == ["cards"]
    for name, index in {"small": "0", "large": "3", "card": "3"}.items():
        assert placed(session, name, "n")[INDEX] == index


def placed(session: Session, name: str, where: str) -> dict[str, str]:
    """What would be written on the pod if it were placed there; it is not."""
    task = session.cluster.tasks[f"default/{name}"]
    with session.statement() as statement:
        statement.allocate(task, session.nodes.rows[where])
        written = dict(session.annotations.get(task.uid, {}))
    assert not session.annotations.get(task.uid)
    return written


@pytest.mark.parametrize(("switches", "refused"), [({}, []), ({"GPUSharingEnable": True}, ["part"]), ({"GPUNumberEnable": True}, ["card"])])
def test_only_what_is_switched_on_is_looked_at(switches: dict[str, bool], refused: list[str]) -> None:
    things = [
        node("n").cpu(8),
        podgroup("g").admitted(),
        pod("part").gang("g").cpu(1).volcano(gpu_memory=1),
        pod("card").gang("g").cpu(1).volcano(gpu_number=1),
        pod("plain").gang("g").cpu(1),
    ]
    session = opened(cluster(*things), rules(**switches))
    assert [name for name in ("part", "card", "plain") if refusals(session, name)] == refused


def test_what_a_rolled_back_statement_took_is_free_again() -> None:
    session = opened(
        cluster(
            gpu_node("n", 1),
            podgroup("g").admitted(),
            pod("a").gang("g").cpu(1).volcano(gpu_memory=5000),
            pod("b").gang("g").cpu(1).volcano(gpu_memory=5000),
        ),
        SHARING,
    )
    first = session.cluster.tasks["default/a"]
    with session.statement() as statement:
        statement.allocate(first, 0)
        assert refusals(session, "b") == {"n": "node(s) had no GPU card with 5000 volcano.sh/gpu-memory idle"}
    assert refusals(session, "b") == {}
    assert session.annotations.get(first.uid) == {}


def test_the_cards_of_an_evicted_pod_can_be_promised_but_free_ones_are_given_first() -> None:
    holder = pod("holder").gang("g").on("n").cpu(1).volcano(gpu_memory=8192).annotation(INDEX, "0")
    other = pod("other").gang("g").on("n").cpu(1).volcano(gpu_memory=3000).annotation(INDEX, "1")
    things = [
        holder,
        other,
        pod("small").gang("g").cpu(1).volcano(gpu_memory=4096),
        pod("large").gang("g").cpu(1).volcano(gpu_memory=8000),
        pod("late").gang("g").cpu(1).volcano(gpu_memory=8000),
    ]
    session = opened(cluster(gpu_node("n"), podgroup("g").admitted(), *things), SHARING)
    tasks = {task.name: task for task in session.cluster.tasks.values()}
    with session.statement() as statement:
        statement.evict(tasks["holder"], "preempt")
        assert refusals(session, "large") == {}
        assert placed(session, "small", "n")[INDEX] == "1"
        statement.pipeline(tasks["large"], 0)
        assert session.annotations[tasks["large"].uid][INDEX] == "0"
        assert "n" in refusals(session, "late")
    assert "n" in refusals(session, "large")


def test_a_pod_without_any_card_left_is_placed_without_annotations() -> None:
    """Whoever places it past the filter gets no card invented."""
    session = opened(
        cluster(gpu_node("n", 1), node("bare").cpu(8), podgroup("g").admitted(), pod("p").gang("g").cpu(1).volcano(gpu_memory=9000)),
        SHARING,
    )
    assert placed(session, "p", "n") == {}
    assert placed(session, "p", "bare") == {}


def test_decided_cards_stay_taken_until_the_pod_shows_them() -> None:
    made = cluster(gpu_node("n", 1), podgroup("g").admitted(), pod("a").gang("g").cpu(1).volcano(gpu_memory=5000))
    assert binds(cycle_on(made, SHARING)) == {"a": "n"}
    made.put(*pod("b").gang("g").cpu(1).volcano(gpu_memory=5000).build())
    assert binds(cycle_on(made, SHARING)) == {}
    assert made.memory["deviceshare"].keys() == {"default-a"}
    made.put(
        *pod("a")
        .gang("g")
        .on("n")
        .cpu(1)
        .volcano(gpu_memory=5000)
        .annotations({INDEX: "0", "volcano.sh/predicate-time": f"{int(NOW)}000000000"})
        .build()
    )
    assert binds(cycle_on(made, SHARING)) == {}
    assert made.memory["deviceshare"] == {}
    made.remove("Pod", "default/a")
    assert binds(cycle_on(made, SHARING)) == {"b": "n"}


def test_annotations_left_from_an_earlier_life_hold_nothing() -> None:
    stale = pod("a").gang("g").cpu(1).volcano(gpu_memory=5000).annotation(INDEX, "0")
    decisions = cycle_on(cluster(gpu_node("n"), podgroup("g").admitted(), stale), SHARING)
    assert decisions.binds[0].annotations[INDEX] == "0"
