"""Resources get columns as they are first named: with too many, all vectors become longer."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.model.resources import WIDTH
from pumice.testing import cluster, node, pod, podgroup, queue
from pumice.testing.scene import NOW, policy


def test_more_resource_names_than_a_vector_is_wide_make_all_vectors_longer() -> None:
    made = cluster(node("a").cpu(4), podgroup("g").needs(cpu=1), pod("p").cpu(1).gang("g").on("a"), pod("w").cpu(1).gang("g"))
    made.refresh_sums()
    rich = node("b").cpu(4)
    for number in range(WIDTH + 4):
        rich = rich.resource(f"example.com/r{number}", 1)
    made.put(*rich.build())
    made.put(*pod("special").cpu(1).request(f"example.com/r{WIDTH}", 1).gang("g").build())
    made.check()
    assert made.dimensions.width == 2 * WIDTH
    binds = cycle(made, policy("enqueue, allocate", ["gang", "proportion", "predicates", "nodeorder"]), NOW).binds
    assert {bind.task.name: bind.node for bind in binds}["special"] == "b"
    made.check()


MANY = {f"example.com/r{number}": "1" for number in range(WIDTH)}


@pytest.mark.parametrize(
    "bringer",
    [
        pod("p").gang("g").having("spec", "containers", 0, "resources", "requests", value=MANY),
        pod("p").gang("new").having("spec", "containers", 0, "resources", "requests", value=MANY).on("n"),
        podgroup("g").needs(**MANY),
        podgroup("g").needs(**MANY).queue("new"),
        podgroup("new").needs(**MANY).queue("new"),
        queue("default").capability(**MANY),
        queue("default").having("spec", "guarantee", "resource", value=MANY),
        queue("new").deserves(**MANY),
        node("n").having("status", "allocatable", value={"cpu": "4", **MANY}),
        node("new").having("status", "allocatable", value=MANY),
    ],
)
def test_whatever_brings_a_resource_name_too_many_makes_all_vectors_longer_at_once(bringer: Any) -> None:
    made = cluster(node("n").cpu(4), podgroup("g").needs(cpu=1), *pod("r").cpu(1).gang("g").on("n").times(2), pod("w").cpu(1).gang("g"))
    made.refresh_sums()
    made.put(*bringer.build())
    made.refresh_sums()
    made.check()
    assert made.dimensions.width == 2 * WIDTH
    assert {len(queue.held) for queue in made.queues.values()} == {len(made.nodes.used)} == {2 * WIDTH}
    cycle(made, policy("enqueue, allocate", ["gang", "capacity", "predicates", "nodeorder"]), NOW)
    made.check()


def test_a_pod_that_is_taken_back_may_name_more_resources_than_vectors_were_wide() -> None:
    made = cluster(node("n").cpu(4), podgroup("g"), pod("p").cpu(1).gang("g"))
    made.restore(pod("p").gang("g").having("spec", "containers", 0, "resources", "requests", value=MANY).build()[1])
    made.check()
    assert len(made.queues["default"].pending) == len(made.nodes.used) == 2 * WIDTH
