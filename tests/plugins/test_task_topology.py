"""task-topology: annotations become relations of roles, relations become buckets, buckets are placed together."""

from __future__ import annotations

import pytest
from scene import Thing, binds, cycle_on, only, opened as open_session

from pumice.scheduler.framework.session import Session
from pumice.scheduler.plugins.volcano.task_topology.buckets import Buckets
from pumice.scheduler.plugins.volcano.task_topology.relations import Relations, read_relations
from pumice.testing import Builder, PodBuilder, cluster, node, pod, podgroup, scores

ROLES = {"ps", "worker", "chief", "evaluator"}


def wishes(affinity: str | None = None, anti: str | None = None, order: str | None = None) -> dict[str, str]:
    given = {"affinity": affinity, "anti-affinity": anti, "task-order": order}
    return {f"volcano.sh/task-topology-{key}": text for key, text in given.items() if text is not None}


@pytest.mark.parametrize(
    ("annotations", "attracts", "avoids"),
    [
        (wishes("ps,worker"), {"ps": {"worker"}, "worker": {"ps"}}, {}),
        (wishes("worker"), {"worker": {"worker"}}, {}),
        (wishes("ps,worker;ps,evaluator"), {"ps": {"worker", "evaluator"}, "worker": {"ps"}, "evaluator": {"ps"}}, {}),
        (wishes(anti="ps;worker,chief"), {}, {"ps": {"ps"}, "worker": {"chief"}, "chief": {"worker"}}),
        (wishes("worker", "ps", "ps,worker"), {"worker": {"worker"}}, {"ps": {"ps"}}),
        (wishes(order="chief,worker"), {}, {}),
    ],
)
def test_annotations_tell_who_attracts_and_who_avoids_whom(annotations: Thing, attracts: Thing, avoids: Thing) -> None:
    relations = read_relations(annotations, ROLES)
    assert relations is not None
    assert (relations.attracts, relations.avoids) == (attracts, avoids)


@pytest.mark.parametrize(
    "annotations",
    [
        {},
        wishes("ps,stranger"),
        wishes("ps,ps"),
        wishes("ps", anti="stranger"),
        wishes("ps", order="ps,stranger"),
        wishes("ps", order="ps,worker,ps"),
        wishes(""),
        wishes("ps,worker;"),
    ],
)
def test_a_wrong_name_makes_the_whole_topology_void(annotations: Thing) -> None:
    assert read_relations(annotations, ROLES) is None


def test_roles_are_ranked_by_wish_then_by_their_strongest_relation() -> None:
    relations = Relations([["b", "c"], ["d"]], [["a"], ["d", "e"], ["b", "e"]], ["e"])
    assert sorted("abcdef", key=lambda role: (relations.rank(role), role)) == ["e", "a", "b", "c", "d", "f"]
    assert [relations.rank(role) for role in "eacdf"] == [(-1, -1), (0, -4), (0, -3), (0, -2), (0, 0)]


def test_attraction_counts_heads_and_avoidance_takes_them_off() -> None:
    relations = Relations([["a", "b"], ["a"]], [["a", "c"]])
    company = {"a": 2, "b": 3, "c": 4, "d": 5}
    assert relations.pull("a", company) == 2 + 3 - 4
    assert relations.push("a", company) == -4
    assert relations.pull("d", company) == 0


def member(role: str, index: int, on: str = "", cpu: str = "1") -> PodBuilder:
    return pod(f"j-{role}-{index}").gang("j").on(on).cpu(cpu).role(role)


def opened(annotations: Thing, *things: Builder, weight: int = 1) -> Session:
    made = cluster(*things, podgroup("j").annotations(annotations).admitted())
    return open_session(made, only("task-topology", {"task-topology.weight": weight}))


def buckets_of(session: Session) -> Buckets:
    found: Buckets = session.plugin("task-topology").buckets(next(iter(session.cluster.jobs["default/j"].tasks.values())))
    return found


def names(session: Session) -> list[list[str]]:
    """The tasks of each bucket."""
    buckets = buckets_of(session)
    by_bucket: list[list[str]] = [[] for _ in buckets.buckets]
    for uid, bucket in buckets.of.items():
        by_bucket[bucket.index].append(uid.removeprefix("default-j-"))
    return [sorted(tasks) for tasks in by_bucket]


def test_friends_share_a_bucket_and_strangers_have_none() -> None:
    session = opened(wishes("ps,worker"), node("n").cpu(8), member("ps", 0), member("worker", 0), member("worker", 1), member("chief", 0))
    assert names(session) == [["ps-0", "worker-0", "worker-1"]]


def test_those_who_avoid_one_another_get_a_bucket_each() -> None:
    assert names(opened(wishes(anti="ps"), node("n").cpu(8), member("ps", 0), member("ps", 1))) == [["ps-0"], ["ps-1"]]


def test_neither_attracted_nor_repelled_a_task_joins_the_bucket_that_asks_for_least() -> None:
    things = [member("ps", 0, cpu="3"), member("ps", 1), member("worker", 0)]
    session = opened(wishes("worker", "ps"), node("n").cpu(8), *things)
    assert names(session) == [["ps-0"], ["ps-1", "worker-0"]]


def test_tasks_on_a_node_are_its_bucket_and_draw_others() -> None:
    placed = [member("ps", 0, "n2"), member("ps", 1, "n1"), member("ps", 2, "n2"), member("ps", 3, "gone")]
    session = opened(wishes("ps,worker"), node("n1").cpu(8), node("n2").cpu(8), *placed, member("worker", 0))
    assert names(session) == [["ps-3"], ["ps-1"], ["ps-0", "ps-2", "worker-0"]]
    assert buckets_of(session).widest == 3


def test_a_job_without_pending_tasks_or_without_wishes_is_left_alone() -> None:
    session = opened(wishes("ps,worker"), node("n").cpu(8), member("ps", 0, "n"), member("worker", 0, "n"), pod("single").cpu(1))
    assert session.plugin("task-topology")._managed == {}
    single = session.cluster.tasks["default/single"]
    assert session.plugin("task-topology").task_order(single) == (1, 0, 0, 0, 0)
    for nothing in ({}, wishes("ps,stranger")):
        session = opened(nothing, node("n").cpu(8), member("ps", 0))
        assert session.plugin("task-topology")._managed == {}
    with session.statement() as statement:
        statement.allocate(session.cluster.tasks["default/j-ps-0"], 0)


def test_the_fullest_bucket_is_served_first_and_the_strongest_role_in_it() -> None:
    things = [
        member("chief", 0),
        member("evaluator", 0),
        member("ps", 0),
        member("worker", 0),
        member("worker", 1),
        pod("j-x-0").gang("j").cpu(1),
    ]
    session = opened(wishes("ps,worker;evaluator", "evaluator,worker;ps,evaluator"), node("n").cpu(8), *things)
    tasks = sorted(session.cluster.jobs["default/j"].pending.values(), key=session.orders.task_key)
    assert [task.name for task in tasks] == ["j-ps-0", "j-worker-0", "j-worker-1", "j-evaluator-0", "j-chief-0", "j-x-0"]


def test_a_node_is_worth_the_bucket_mates_it_has_or_can_take() -> None:
    things = [member("ps", 0, "b"), member("worker", 0), member("worker", 1), member("worker", 2), member("chief", 0)]
    nodes = [node("a").cpu(2), node("b").cpu(2), node("c").cpu(8), node("d").cpu("500m")]
    session = opened(wishes("ps,worker"), *nodes, *things, weight=2)
    # of four in the bucket, b has one and room for one more, a room for two, c for all three, d for none
    assert scores(session, "j-worker-0") == {"a": 2 * 100 * 2 / 4, "b": 2 * 100 * (1 + 1) / 4, "c": 2 * 100 * 3 / 4, "d": 0}
    assert set(scores(session, "j-chief-0").values()) == {0}


def test_room_that_pods_are_leaving_counts_as_room() -> None:
    going = pod("old").gang("o").on("a").cpu(2).leaving()
    staying = pod("new").gang("o").on("b").cpu(2)
    things = [node("a").cpu(2), node("b").cpu(2), podgroup("o").admitted(), going, staying, member("ps", 0), member("worker", 0)]
    assert scores(opened(wishes("ps,worker"), *things), "j-ps-0") == {"a": 100, "b": 0}


def test_rating_takes_all_resources_and_unequal_tasks_into_account() -> None:
    big = member("worker", 1, cpu="3")
    session = opened(wishes("ps,worker"), node("a").cpu(4), node("b").cpu(3), member("ps", 0), member("worker", 0), big)
    # for ps-0 worker-0 goes out first, then worker-1: a has room once the first is out, b for neither
    assert scores(session, "j-ps-0") == pytest.approx({"a": 100 * 2 / 3, "b": 100 * 1 / 3})


def test_placing_and_taking_back_leaves_no_trace() -> None:
    things = [member("ps", 0), member("ps", 1), member("worker", 0), member("chief", 0)]
    session = opened(wishes("ps,worker", "ps"), node("a").cpu(8), node("b").cpu(8), *things)
    before = scores(session, "j-ps-1")
    made, rows = session.cluster, session.nodes.rows
    with session.statement() as statement:
        statement.allocate(made.tasks["default/j-ps-0"], rows["a"])
        statement.pipeline(made.tasks["default/j-chief-0"], rows["a"])
        after = scores(session, "j-ps-1")
        assert after["a"] < before["a"]
        assert after["a"] < after["b"]
    assert scores(session, "j-ps-1") == before


def test_an_evicted_mate_no_longer_draws_and_draws_again_if_it_stays() -> None:
    session = opened(wishes("ps,worker"), node("a").cpu(8), node("b").cpu(8), member("ps", 0, "a"), member("worker", 0))
    ps = session.cluster.tasks["default/j-ps-0"]
    assert scores(session, "j-worker-0") == {"a": 100, "b": 50}
    with session.statement() as statement:
        statement.evict(ps, "test")
        assert scores(session, "j-worker-0") == {"a": 50, "b": 50}
    assert scores(session, "j-worker-0") == {"a": 100, "b": 50}


def test_a_job_with_a_topology_is_like_no_other_job() -> None:
    twins = [each for name in "ab" for each in (podgroup(name, 1).annotations(wishes("ps,worker")).admitted(), pod(f"{name}-0").gang(name))]
    session = opened({}, *twins, podgroup("plain", 1).admitted(), pod("plain-0").gang("plain"))
    keys = [session.plugin("task-topology").class_key(session.cluster.jobs[f"default/{name}"]) for name in ("a", "b", "plain")]
    assert "" not in keys[:2] and keys[0] != keys[1] and keys[2] == ""


def test_mates_go_to_one_node_where_spreading_would_part_them() -> None:
    things = [node(name).has(cpu=4, memory="8Gi") for name in "ab"] + [member("ps", 0), member("worker", 0), member("worker", 1)]
    made = cluster(*things, podgroup("j", 3).annotations(wishes("ps,worker")).admitted())
    assert len(set(binds(cycle_on(made, only("task-topology"))).values())) == 1
