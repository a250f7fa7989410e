"""What gang evictions leave standing that Volcano's would take: bundles that nobody needs gone, and dearer nodes and domains."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.testing import PodBuilder, cluster, node, pod, podgroup
from tests.topology.racks import gang, part, racks
from tests.topology.test_gang_eviction import CLASSES, claim, decide, high, low, owned, preempt, queues, rack_gang, result

Objects = list[Any]


def nodes(**cpus: int) -> Objects:
    return [node(name).cpu(cpu) for name, cpu in cpus.items()]


def singles(prefix: str, where: str, count: int, rank: str = "low") -> Objects:
    return [each for number in range(count) for each in low(f"{prefix}{number}", where, rank=rank)]


def both(*objects: Any) -> tuple[list[str], list[str]]:
    """Who goes with Volcano's rule, and who with ours."""
    return preempt(*objects, spare=False)[0], preempt(*objects)[0]


def test_of_pods_spread_over_nodes_only_those_of_one_node_go() -> None:
    spread = [each for number in range(8) for each in low(f"a{number}", "xy"[number % 2])]
    theirs, ours = both(*nodes(x=4, y=4), *spread, *high(1, cpu=4))
    assert theirs == [f"a{number}-0" for number in range(1, 8)]
    assert ours == ["a0-0", "a2-0", "a4-0", "a6-0"]


def test_the_node_goes_where_fewer_pods_do() -> None:
    """By name those of x come first."""
    theirs, ours = both(*nodes(x=4, y=4), *singles("a", "x", 4), *low("b", "y", cpu=4), *high(1, cpu=4))
    assert theirs == ours == ["b-0"]


def test_more_important_pods_stay_though_fewer_of_them_would_do() -> None:
    theirs, ours = both(*nodes(x=4, y=4), *singles("a", "x", 4), *low("b", "y", cpu=4, rank="mid"), *high(1, cpu=4))
    assert theirs == ours == ["a0-0", "a1-0", "a2-0", "a3-0"]


@pytest.mark.parametrize(("priority", "gone"), [(50, ["a0-0", "a1-0"]), (5, ["b-0"])])
def test_where_their_jobs_rank_alike_fewer_pods_go_only_if_they_are_no_more_important(priority: int, gone: list[str]) -> None:
    one = podgroup("b", 1).priority_class("low").phase("Running"), pod("b-0").cpu(2).gang("b").priority(priority).on("y")
    many = [each.priority(10) if isinstance(each, PodBuilder) else each for each in singles("a", "x", 2)]
    assert preempt(*nodes(x=2, y=2), *many, *one, *high(1, cpu=2))[0] == gone


def test_those_who_have_run_for_less_go() -> None:
    def since(name: str, minute: int) -> Objects:
        started = f"2025-12-31T23:{minute}:00Z"
        running = pod(f"{name}-0").cpu(2).gang(name).on(name).having("status", "startTime", value=started)
        return [podgroup(name, 1).priority_class("low").phase("Running"), running]

    theirs, ours = both(*nodes(a=2, b=2), *since("a", 10), *since("b", 50), *high(1, cpu=2))
    assert theirs == ours == ["b-0"]


def test_a_gang_that_is_broken_anyway_gives_more_than_two_would() -> None:
    """One pod of each node would do in sum, of two gangs. What is left of a broken gang is of no use and goes along."""
    pairs = [*low("a", "x", "y", least=2), *low("b", "x", "y", least=2), *low("c", "y", "z", "z", least=3)]
    theirs, ours = both(*nodes(x=2, y=3, z=2), *pairs, *high(1, cpu=2))
    assert theirs == ours == ["c-0", "c-1", "c-2"]
    rest = low("a", "x", "x", "y", least=2)
    assert preempt(*nodes(x=2, y=1), *rest, *high(1, cpu=2))[0] == ["a-0", "a-1", "a-2"]


def test_a_bundle_that_one_node_loses_counts_for_the_next() -> None:
    """Any node gives a gang two pods; those of y and z are of the same gangs."""
    spread = [*low("a", "x", "x", "v", least=3), *low("b", "y", "z", least=2), *low("c", "z", "y", least=2), *low("d", "x", "w", least=2)]
    assert preempt(*nodes(v=1, w=1, x=3, y=2, z=2), *spread, *high(2, cpu=2))[0] == ["b-0", "b-1", "c-0", "c-1"]


def test_a_node_that_will_not_do_is_no_gain_though_its_pods_go_along() -> None:
    wish = [podgroup("high", 1).priority_class("high").phase("Inqueue"), pod("high-0").cpu(2).gang("high").selector("zone", "east")]
    objects = [node("x").cpu(4), node("y").cpu(2).label("zone", "east"), *low("a", "x", "x", "x"), *low("b", "y", "x", "y", least=3)]
    assert preempt(*objects, *wish) == (["b-0", "b-1", "b-2"], {"high-0": "y"})


def test_pods_of_different_size_are_made_room_for_one_after_the_other() -> None:
    group = podgroup("high", 2).priority_class("high").phase("Inqueue")
    pods = pod("high-0").cpu(3).gang("high"), pod("high-1").cpu(1).gang("high")
    gone, waiting = preempt(*nodes(x=3, y=3, z=3), *singles("a", "x", 3), *low("b", "y", cpu=3), *singles("c", "z", 3), group, *pods)
    assert (gone, waiting) == (["a0-0", "b-0"], {"high-0": "y", "high-1": "x"})


# -- what numbers do not tell


def on_port(one: PodBuilder) -> PodBuilder:
    return one.having("spec", "containers", 0, "ports", value=[{"containerPort": 1, "hostPort": 80}])


def holders(rank: str, *where: str) -> Objects:
    """A pod on each node that holds the port, of a gang of its own, and another that does not."""
    objects: Objects = []
    for name in where:
        objects += [
            podgroup(f"p{name}", 1).priority_class(rank).phase("Running"),
            on_port(pod(f"p{name}-0").cpu(1)).gang(f"p{name}").on(name),
        ]
        objects += low(f"a{name}", name)
    return objects


def test_a_port_is_made_free_though_there_is_room_enough_without() -> None:
    group, wish = podgroup("high", 1).priority_class("high").phase("Inqueue"), on_port(pod("high-0").cpu(1)).gang("high")
    theirs, ours = both(*nodes(x=2, y=2), *holders("low", "x", "y"), group, wish)
    assert (theirs, ours) == (["py-0"], ["px-0"])
    assert both(*nodes(x=2, y=2), *holders("high", "x", "y"), group, wish) == ([], [])


def test_ever_more_go_at_a_time_until_enough_have() -> None:
    """Only the fifth in order holds the port: of jobs of the same age the last by name is first."""
    group, wish = podgroup("high", 1).priority_class("high").phase("Inqueue"), on_port(pod("high-0").cpu(1)).gang("high")
    holder = [podgroup("g", 1).priority_class("low").phase("Running"), on_port(pod("g-0").cpu(1)).gang("g").on("x")]
    crowd = [each for name in "abcdefhijk" for each in low(name, "x")]
    theirs, ours = both(*nodes(x=11), *crowd, *holder, group, wish)
    assert (theirs, ours) == ([f"{name}-0" for name in "ghijk"], ["g-0"])


# -- domains


@pytest.mark.parametrize(("second", "gone"), [("low", ["b-0"]), ("mid", ["a0-0", "a1-0"])])
def test_of_racks_that_would_do_the_cheaper_one_is_cleared(second: str, gone: list[str]) -> None:
    objects = [*racks(1, 1, cpu=2), *singles("a", "n1", 2), *low("b", "n2", cpu=2, rank=second), *rack_gang(2)]
    assert preempt(*objects)[0] == gone
    assert preempt(*objects, spare=False)[0] == ["a0-0", "a1-0"]
    assert preempt(*objects, domains=1)[0] == ["a0-0", "a1-0"]


def test_a_cheaper_spine_does_not_count_while_a_rack_would_do() -> None:
    kept = low("k", "n3", "n4", rank="high")
    objects = [*racks(2, 2, cpu=2), *singles("a", "n1", 2), *singles("b", "n2", 2), *low("c", "n3"), *low("d", "n4"), *kept]
    assert len(preempt(*objects, *rack_gang(3, tier=2))[0]) == 3


def test_parts_in_racks_of_their_own_spare_what_they_can() -> None:
    group = podgroup("high", 4).parts("part", 2, 2, 1).priority_class("high").phase("Inqueue")
    crowd = [each for number in range(1, 7) for each in low(f"a{number}", f"n{number}")]
    objects = [*racks(2, 2, 2, cpu=1), *crowd, group, *part("high", "0", 2), *part("high", "1", 2)]
    gone, waiting = preempt(*objects)
    assert (len(gone), len(waiting)) == (4, 4)


# -- from gang to gang


def test_gangs_that_follow_one_another_take_what_is_left() -> None:
    crowd = [each for number in range(8) for each in low(f"a{number}", "xy"[number % 2])]
    second = [podgroup("next", 1).priority_class("high").phase("Inqueue"), *gang("next", 1, 4)]
    gone, waiting = preempt(*nodes(x=4, y=4), *crowd, *high(1, cpu=4), *second)
    assert (len(gone), sorted(waiting.values())) == (8, ["x", "y"])


def test_gangs_of_different_importance_have_different_victims() -> None:
    objects = [*nodes(x=1, y=1), *low("a", "x"), *low("b", "y", rank="mid")]
    wishes = [podgroup("m", 1).priority_class("mid").phase("Inqueue"), *gang("m", 1)]
    gone, waiting = preempt(*objects, *high(1), *wishes)
    assert (gone, waiting) == (["a-0"], {"high-0": "x"})  # nobody is left for the other: b is as important
    least = [podgroup("l", 1).priority_class("low").phase("Inqueue"), *gang("l", 1)]
    assert preempt(*objects, *least) == ([], {})


def test_queues_take_back_from_one_another_no_more_than_they_need() -> None:
    victims = [each for number in range(8) for each in owned(f"a{number}", "other", "xy"[number % 2])]
    made = cluster(*CLASSES, *queues("mine", "other"), *nodes(x=4, y=4), *victims, *claim(4))
    wide = cluster(*CLASSES, *queues("mine", "other"), *nodes(x=4, y=4), *victims, podgroup("new", 1).queue("mine").phase("Inqueue"))
    wide.put(*pod("new-0").cpu(4).gang("new").build())
    plugins = ("priority", "gang", "conformance", "proportion", "predicates", "nodeorder")
    assert len(result(decide(made, "enqueue, allocate, gangreclaim", plugins))[0]) == 4
    assert result(decide(wide, "enqueue, allocate, gangreclaim", plugins))[0] == ["a0-0", "a2-0", "a4-0", "a6-0"]
