"""nodegroup: which groups of nodes a queue's pods may use, which they prefer, and how much of each."""

from __future__ import annotations

import json

import pytest
from scene import Thing, binds, evicted, opened, outcome, per_job

from pumice.testing import QueueBuilder, cluster, node, pod, podgroup, priority_class, queue, refusals, scores

GROUP = "volcano.sh/nodegroup-name"
LIMITS = "volcano.sh/nodegroup-resource-limits"
NODES = [node("n0").cpu(4), *(node(f"n{number}").cpu(4).label(GROUP, f"g{number}") for number in (1, 2, 3))]

REQUIRED, PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"


def affinity(required: str = "", preferred: str = "", banned: str = "", avoided: str = "") -> Thing:
    near = {key: names.split() for key, names in ((REQUIRED, required), (PREFERRED, preferred)) if names}
    far = {key: names.split() for key, names in ((REQUIRED, banned), (PREFERRED, avoided)) if names}
    return {"nodeGroupAffinity": near, "nodeGroupAntiAffinity": far}


STRICT, LAX = "nodegroup", "{name: nodegroup, arguments: {strict: false}}"
ORDERED = "{name: nodegroup, arguments: {enablePreferredOrder: true}}"

ROWS: list[tuple[str, str, Thing | None, dict[str, float]]] = [
    ("required and preferred", STRICT, affinity("g1", "g2"), {"n1": 100, "n2": 50}),
    ("both at once", STRICT, affinity("g1", "g1"), {"n1": 150}),
    ("banned and avoided", STRICT, affinity(banned="g1", avoided="g2"), {"n2": -1}),
    ("banned wins over required", STRICT, affinity("g1 g2", banned="g1"), {"n2": 100}),
    ("banned wins over preferred", STRICT, affinity(preferred="g1 g2", banned="g1"), {"n2": 50}),
    ("avoided wins over banned", STRICT, affinity(banned="g1", avoided="g1 g2"), {"n1": -1, "n2": -1}),
    ("in all lists at once the last word is avoided", STRICT, affinity("g1", "g1", "g1", "g1"), {"n1": -1}),
    ("avoided is -1 though required", STRICT, affinity("g1", avoided="g1"), {"n1": -1}),
    ("all preferred alike", STRICT, affinity(preferred="g1 g2"), {"n1": 50, "n2": 50}),
    ("preferred in their order", ORDERED, affinity(preferred="g1 g2"), {"n1": 50, "n2": 25}),
    ("no affinity, strictly: nowhere", STRICT, None, {}),
    ("no affinity, not strictly: nodes without group", LAX, None, {"n0": 0}),
    ("empty affinity is none", LAX, affinity(), {"n0": 0}),
    ("with affinity never nodes without group", LAX, affinity("g3"), {"n3": 100}),
]


@pytest.mark.parametrize(("what", "plugin", "wanted", "expected"), ROWS, ids=[row[0] for row in ROWS])
def test_where_a_queue_may_go_and_likes_to(what: str, plugin: str, wanted: Thing | None, expected: dict[str, float]) -> None:
    q = queue("q").having("spec", "affinity", value=wanted) if wanted is not None else queue("q")
    with opened(cluster(NODES, q, podgroup("a").queue("q").admitted(), pod("p").gang("a").cpu(1)), plugin) as session:
        assert scores(session, "p") == expected
        assert set(refusals(session, "p").values()) <= {"node(s) were in no node group of the queue"}


def test_with_hierarchy_a_queue_has_the_affinity_of_its_nearest_ancestor() -> None:
    tree = [
        queue("top").having("spec", "affinity", value=affinity("g1")),
        queue("mid").parent("top").having("spec", "affinity", value=affinity("g2")),
        queue("leaf").parent("mid"),
    ]
    made = cluster(
        NODES,
        tree,
        queue("lone"),
        podgroup("a").queue("leaf").admitted(),
        pod("p").gang("a").cpu(1),
        podgroup("b").queue("lone").admitted(),
        pod("q").gang("b").cpu(1),
    )
    with opened(made, "{name: nodegroup, enableHierarchy: true}") as session:
        assert scores(session, "p") == {"n2": 100}
        assert scores(session, "q") == {}
    with opened(made, STRICT) as session:
        assert scores(session, "p") == {}


def test_a_circle_of_parents_has_no_affinity() -> None:
    made = cluster(NODES, queue("x").parent("y"), queue("y").parent("x"), podgroup("a").queue("x").admitted(), pod("p").gang("a").cpu(1))
    with opened(made, "{name: nodegroup, enableHierarchy: true}") as session:
        assert scores(session, "p") == {}


def limited(**limits: Thing) -> QueueBuilder:
    return queue("q").having("spec", "affinity", value=affinity("g1", "g2")).annotation(LIMITS, json.dumps(limits))


def test_a_queue_stops_at_its_limit_in_a_group_and_goes_on_in_the_next() -> None:
    made = cluster(
        NODES,
        limited(g1={"cpu": 3}, g2={"cpu": "1"}),
        podgroup("r").queue("q").admitted(),
        pod("r").gang("r").on("n1").cpu(1),
        pod("s").gang("r").on("n0").cpu(1),
        podgroup("a").queue("q").admitted().pods(5, cpu=1),
    )
    result = outcome(made, "gang", STRICT)
    assert sorted(binds(result).values()) == ["n1", "n1", "n2"]


def test_limits_of_unknown_resources_and_other_groups_do_not_bind() -> None:
    made = cluster(
        NODES, limited(g9={"cpu": 1}, g1={"example.com/never": 0, "memory": "4Gi"}), podgroup("a").queue("q").admitted().pods(2, cpu=1)
    )
    assert binds(outcome(made, "gang", STRICT)) == {"a-0": "n1", "a-1": "n1"}


@pytest.mark.parametrize("text", ["{", '{"g1": 4}', '{"g1": {"cpu": "many"}}'])
def test_limits_that_cannot_be_read_let_nobody_in(text: str) -> None:
    made = cluster(
        NODES,
        queue("q").having("spec", "affinity", value=affinity("g1")).annotation(LIMITS, text),
        podgroup("a").queue("q").admitted(),
        pod("p").gang("a").cpu(1),
    )
    result = outcome(made, "gang", STRICT)
    assert binds(result) == {}
    assert "annotation volcano.sh/nodegroup-resource-limits cannot be read" in result["pending"]["default/p"]["message"]


@pytest.mark.parametrize(
    ("notes", "wanted"), [({}, affinity("g1")), ({LIMITS: '{"g1": {"cpu": 0}}'}, affinity("g1")), ({LIMITS: "{"}, affinity("g1"))]
)
def test_no_eviction_opens_a_group_to_a_queue(notes: Thing, wanted: Thing) -> None:
    made = cluster(
        NODES,
        queue("q").having("spec", "affinity", value=wanted).annotations(notes),
        podgroup("a").queue("q").admitted(),
        pod("p").gang("a").cpu(1),
    )
    with opened(made, STRICT) as session:
        evaluation = session.evaluation(made.tasks["default/p"])
        rejected = evaluation.rejected is not None and evaluation.rejected.final
        opened_to = [made.nodes.names[row] for row in made.nodes if evaluation.resolvable[row] and not rejected]
        assert opened_to == (["n1"] if not notes else [])


def test_what_runs_counts_and_what_has_ended_does_not() -> None:
    ended = pod("old").gang("r").on("n1").cpu(3).phase("Failed")
    made = cluster(
        NODES,
        limited(g1={"cpu": 3}),
        podgroup("r").queue("q").admitted(),
        pod("s").gang("r").on("n1").cpu(1),
        ended,
        podgroup("a").queue("q").admitted().pods(2, cpu=1),
    )
    assert binds(outcome(made, "gang", STRICT)) == {"a-0": "n1", "a-1": "n1"}


def test_what_a_gang_gives_back_does_not_count() -> None:
    made = cluster(
        NODES,
        limited(g1={"cpu": 2}, g2={"cpu": 0}),
        podgroup("a", 3).queue("q").admitted().pods(3, cpu=1),
        podgroup("b").queue("q").admitted().created(9).pods(2, cpu=1),
    )
    assert per_job(outcome(made, "gang", STRICT)) == {"b": 2}


def test_evicted_pods_no_longer_count() -> None:
    jobs = [
        priority_class("high", 10),
        podgroup("low", 0).queue("q").admitted(),
        podgroup("high", 2).queue("q").priority_class("high").admitted(),
    ]
    made = cluster(
        NODES,
        limited(g1={"cpu": 5}, g2={"cpu": 0}),
        jobs,
        pod("low").gang("low").on("n1").cpu(1).times(4),
        pod("high").gang("high").cpu(1).times(2),
    )
    assert evicted(outcome(made, "priority, gang", STRICT, actions="preempt")) == ["low-2", "low-3"]


def test_pods_in_no_group_give_way_like_others() -> None:
    jobs = [priority_class("high", 10), podgroup("low", 0).admitted(), podgroup("high", 2).priority_class("high").admitted()]
    made = cluster(NODES[0], jobs, pod("low").gang("low").on("n0").cpu(1).times(4), pod("high").gang("high").cpu(1).times(2))
    assert evicted(outcome(made, "priority, gang", LAX, actions="preempt")) == ["low-2", "low-3"]


def test_a_pod_of_no_job_is_free() -> None:
    made = cluster(NODES, pod("p").cpu(1))
    with opened(made, STRICT) as session:
        assert set(scores(session, "p")) == {"n0", "n1", "n2", "n3"}


def test_other_queues_do_not_count() -> None:
    other = [queue("o").having("spec", "affinity", value=affinity("g1")), *podgroup("b").queue("o").admitted().created(9).pods(3, cpu=1)]
    made = cluster(NODES, limited(g1={"cpu": 1}, g2={"cpu": 0}), podgroup("a").queue("q").admitted().pods(2, cpu=1), other)
    assert per_job(outcome(made, "gang", STRICT)) == {"a": 1, "b": 3}
