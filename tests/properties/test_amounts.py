"""Amounts that no cluster has: whatever users write, sums stay exact, and are as before once it is gone."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

from pumice.api.structs import KINDS, convert
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.resources import MOST_OF_ONE, Vector, as_vector
from pumice.scheduler.model.task import Task
from pumice.testing import cluster, node, pod, podgroup, queue
from pumice.testing.scene import policy
from tests.samples import times

POLICIES = [
    policy("enqueue, allocate, backfill", ("priority", "gang", "drf", "proportion", "predicates", "nodeorder", "overcommit")),
    policy("enqueue, allocate, preempt, reclaim", ("priority", "gang", "capacity", "predicates", "binpack", "sla")),
]

PLAIN = ["0", "1", "3", "7e3", "-5", "1n", "2Gi"]
GREAT = ["50000000000000000", "9007199254740993", "63Ti", "64Ti", "8Ei", "1e30", "1e400"]
LONG = ["9" * 400, "0." + "0" * 9000 + "1", "1e-" + "9" * 400, "1e" + "9" * 400, "7" * 100_000]
amounts = st.one_of(
    st.sampled_from(PLAIN + GREAT),
    st.sampled_from(LONG),
    st.integers(-(2**70), 2**70).map(str),
    st.integers(2**39, 2**47).map(str),
)
resources = st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/card", "ephemeral-storage", "hugepages-2Mi"]), amounts)
Told = tuple[str, Any]


def a_pod(number: int, requests: dict[str, str], where: str | None, gang: str) -> Told:
    annotations = {"scheduling.k8s.io/group-name": gang} if gang else {}
    containers = [{"name": "c", "resources": {"requests": requests}}]
    return "Pod", {
        "metadata": {"name": f"p{number}", "namespace": "default", "annotations": annotations},
        "spec": {"schedulerName": "volcano", "nodeName": where, "containers": containers},
        "status": {"phase": "Running" if where else "Pending"},
    }


def a_group(number: int, least: int, needs: dict[str, str]) -> Told:
    return "PodGroup", {"metadata": {"name": f"g{number}", "namespace": "default"}, "spec": {"minMember": least, "minResources": needs}}


def a_queue(number: int, some: dict[str, str], weight: int) -> Told:
    spec = {"weight": weight, "capability": some, "deserved": some, "guarantee": {"resource": some}}
    return "Queue", {"metadata": {"name": f"q{number}"}, "spec": spec, "status": {"state": "Open"}}


def a_node(number: int, some: dict[str, str]) -> Told:
    return "Node", {"metadata": {"name": f"n{number}"}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"} | some}}


pods = st.builds(a_pod, st.integers(0, 5), resources, st.sampled_from([None, None, "n0", "n1"]), st.sampled_from(["", "g0", "g1"]))
others = st.one_of(
    st.builds(a_group, st.integers(0, 1), st.sampled_from([0, 1, -1, 2**31 - 1, 2**63 - 1]), resources),
    st.builds(a_queue, st.integers(0, 1), resources, st.sampled_from([1, 2**31 - 1])),
    st.builds(a_node, st.integers(0, 2), resources),
)
GONE = [("Node", "n0"), ("PodGroup", "default/g0"), *(("Pod", f"default/p{number}") for number in range(6))]
steps = st.one_of(
    pods,
    pods,
    others,
    st.tuples(st.just("cycle"), st.integers(0, len(POLICIES) - 1)),
    st.tuples(st.just("remove"), st.sampled_from(GONE)),
)
CLASSES = {kind: struct for (_, kind), struct in KINDS.items()}


def scene() -> Cluster:
    made = cluster(
        *(node(name).cpu(4).memory("8Gi").pods(10) for name in ("n0", "n1")),
        queue("default"),
        podgroup("g", 1).phase("Running"),
        pod("old").cpu("1500m").memory("1000000001").gang("g").on("n0"),
    )
    made.forget_changes()
    return made


def sums(made: Cluster) -> dict[str, Any]:
    made.refresh_sums()
    table, default = made.nodes, made.queues["default"]
    found: dict[str, Any] = {
        name: [each[:, table.rows[name]].tolist()[:3] for each in (table.used, table.idle, table.used_for_filters, table.nonzero_used)]
        for name in ("n0", "n1")
    }
    promised = as_vector(default.promised)
    found["default"] = [each.tolist()[:3] for each in (default.held, default.pending, default.inqueue, default.elastic, promised)]
    return found


def counted(task: Task) -> Vector:
    """Its request, without what no node can ever have."""
    taken = task.template.taken
    return np.where(taken < MOST_OF_ONE, taken, 0.0)


@settings(max_examples=times(15), deadline=None)
@given(st.lists(steps, max_size=14))
def test_sums_are_exact_whatever_comes_and_as_before_once_it_is_gone(story: list[tuple[str, Any]]) -> None:
    made = scene()
    before = sums(made)
    for verb, what in story:
        if verb == "cycle":
            for bind in cycle(made, POLICIES[what], 100.0).binds:
                assert not bind.task.template.beyond
        elif verb == "remove":
            made.remove(*what)
        else:
            made.put(verb, convert(what, CLASSES[verb]))
        made.check()
        for job in made.jobs.values():
            assert job.asked.tolist() == sum((counted(task) for task in job.pending.values()), made.dimensions.zeros()).tolist()
    for number in range(6):
        made.remove("Pod", f"default/p{number}")
    for kind, key in (("PodGroup", "default/g0"), ("PodGroup", "default/g1"), ("Queue", "q0"), ("Queue", "q1"), ("Node", "n2")):
        made.remove(kind, key)
    for name in ("n0", "n1"):
        made.put(*node(name).cpu(4).memory("8Gi").pods(10).build())
    made.forget_changes()
    made.check()
    if made.tasks["default/old"].status == status.RUNNING:  # it was nobody's victim
        assert sums(made) == before
