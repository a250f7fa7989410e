"""The places of equal members are planned in all placements: the outcome is that of trying one member after the other in each."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import given, settings, strategies as st
from msgspec.structs import replace

from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.session import Session
from pumice.scheduler.kube.group_placements import placements
from pumice.scheduler.kube.group_plans import PlacementMemory, PlannedPlaces, places_in
from tests.kube_scheduler.native import TOPOLOGY, TREES, Outcome, group, member, play, policy, run, running, tree
from tests.kube_scheduler.stage import NOW, cluster, existing, machine
from tests.samples import times


class World(NamedTuple):
    nodes: list[tuple[int, str]]  #: cpu and rack
    gangs: list[tuple[int, int, int, bool]]  #: size, minimum, cpu, whether it has a constraint
    pods: list[tuple[int, int]]  #: node and cpu of running pods; every second one is of the first gang


worlds = st.builds(
    World,
    st.lists(st.tuples(st.integers(1, 6), st.sampled_from(["a", "b", "c", ""])), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 3), st.booleans()), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 7), st.integers(1, 2)), max_size=4),
)


def outcomes(world: World, *, shortcuts: bool) -> list[Outcome]:
    chosen = replace(policy(TOPOLOGY), shortcuts=shortcuts)
    objects: list[Any] = [machine(f"n{n}", cpu, **({"rack": rack} if rack else {})) for n, (cpu, rack) in enumerate(world.nodes)]
    for number, (size, minimum, cpu, constrained) in enumerate(world.gangs):
        objects.append(group(f"g{number}", minimum, key="rack" if constrained else ""))
        objects += [member(f"g{number}-{n}", f"g{number}", cpu) for n in range(size)]
    for number, (node, cpu) in enumerate(world.pods):
        on = f"n{node % len(world.nodes)}"
        objects.append(running(f"r{number}", "g0", on, cpu) if number % 2 else existing(f"r{number}", on, cpu))
    made = cluster(chosen, *objects)
    return [run(made, chosen, NOW + number) for number in range(2)]


@settings(max_examples=times(38), deadline=None)
@given(worlds)
def test_planned_places_are_those_of_one_after_the_other(world: World) -> None:
    assert outcomes(world, shortcuts=True) == outcomes(world, shortcuts=False)


class Wood(NamedTuple):
    """Trees of gangs of the same shape, and one of its own."""

    nodes: list[tuple[int, str]]  #: cpu and rack
    count: int
    leaves: list[tuple[int, int, int]]  #: size, minimum, cpu
    least: int  #: how many leaves a tree needs
    other: list[tuple[int, int, int]]
    nested: bool
    keys: tuple[str, str]  #: of the constraints of trees and of leaves


gangs = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 2)), min_size=1, max_size=3)
woods = st.builds(
    Wood,
    st.lists(st.tuples(st.integers(1, 8), st.sampled_from(["a", "b", "c", ""])), min_size=1, max_size=8),
    st.integers(1, 4),
    gangs,
    st.integers(1, 3),
    gangs,
    st.booleans(),
    st.tuples(st.sampled_from(["rack", ""]), st.sampled_from(["", "", "kubernetes.io/hostname"])),
)


def grown(wood: Wood, *, shortcuts: bool) -> list[Outcome]:
    chosen = replace(policy(TREES), shortcuts=shortcuts)
    objects: list[Any] = [machine(f"n{n}", cpu, **({"rack": rack} if rack else {})) for n, (cpu, rack) in enumerate(wood.nodes)]
    of_tree, of_leaf = wood.keys
    for number, leaves in enumerate([*[wood.leaves] * wood.count, wood.other]):
        root = f"t{number}"
        objects.append(tree(root, min(wood.least, 1 if wood.nested else len(leaves)), key=of_tree))
        objects += [tree(f"{root}-inner", 1, parent=root)] if wood.nested else []
        for leaf, (size, minimum, cpu) in enumerate(leaves):
            name = f"{root}-{leaf}"
            objects.append(group(name, min(minimum, size), key=of_leaf, parent=f"{root}-inner" if wood.nested else root))
            objects += [member(f"{name}-{n}", name, cpu) for n in range(size)]
    made = cluster(chosen, *objects)
    return [run(made, chosen, NOW + number) for number in range(2)]


@settings(max_examples=100, deadline=None)
@given(woods)
def test_planned_places_of_trees_are_those_of_one_after_the_other(wood: Wood) -> None:
    assert grown(wood, shortcuts=True) == grown(wood, shortcuts=False)


def test_a_tree_is_planned_anew_only_in_the_rack_of_the_last_one() -> None:
    nodes = [machine(f"{rack}{n}", cpu=8, rack=rack) for rack in "abc" for n in range(2)]
    trees = [made for n in range(3) for made in (tree(f"t{n}", 1, key="rack"), group(f"g{n}", 2, parent=f"t{n}"))]
    chosen = policy(TREES)
    made = cluster(chosen, *nodes, *trees, *(member(f"p{n}{m}", f"g{n}") for n in range(3) for m in range(2)))
    decided = cycle(made, chosen, NOW)
    assert len(decided.binds) == 6 and len(decided.placement_tries) == 3 + 1 + 1  # of the leaves


def test_plans_are_made_anew_where_nodes_have_changed() -> None:
    chosen = policy(TOPOLOGY)
    nodes = [machine(f"{rack}{n}", cpu=2, rack=rack) for rack in "ab" for n in range(2)]
    made = cluster(chosen, *nodes, machine("none"), group("g", key="rack"), *(member(f"p{n}", "g") for n in range(3)))
    assert chosen.profiles is not None
    with Session(made, chosen, NOW) as session:
        from pumice.scheduler.actions.schedule import ScheduleLoop

        loop = ScheduleLoop(session, chosen.profiles)
        assert loop.groups is not None
        root = loop.groups.root_of("default/g")
        assert root is not None
        memory = PlacementMemory(made)
        found = placements(root, made.nodes, made.nodes.alive, [], memory.of_all_nodes)
        assert placements(root, made.nodes, made.nodes.alive, [], memory.of_all_nodes) is found
        finder, pods = loop.searches["default-scheduler"], [task for task in made.tasks.values() if task.group]

        def planned() -> PlannedPlaces:
            evaluation = finder.evaluation(pods[2])
            return memory.planned(evaluation, found, 3, lambda placement: places_in(placement, evaluation, 3), pods[2].template)

        places = planned()
        names = made.nodes.names
        assert [[names[row] for row in places.rows(number)] for number in range(2)] == [["a0", "a1", "a0"], ["b0", "b1", "b0"]]
        with session.statement() as statement:
            statement.allocate(pods[0], made.nodes.rows["b0"])
            statement.allocate(pods[1], made.nodes.rows["none"])
            assert planned() is places and [names[row] for row in places.rows(1)] == ["b1", "b0", "b1"]
        places._position = -(10**9)  # as if it were too long ago to know what has changed
        assert [names[row] for row in planned().rows(1)] == ["b0", "b1", "b0"]


def test_trees_that_fit_in_part_or_not_at_all_are_tried_one_after_the_other() -> None:
    """One leaf of two is enough. The first tree has room for one, the second for none, and both are told so."""
    nodes = [machine("a0", cpu=2, rack="a"), machine("b0", cpu=1, rack="b")]
    objects: list[Any] = []
    for n in range(2):
        objects += [tree(f"t{n}", 1, key="rack"), *(group(f"g{n}{m}", 2, parent=f"t{n}") for m in range(2))]
        objects += [member(f"p{n}{m}{k}", f"g{n}{m}") for m in range(2) for k in range(2)]
    outcome = play(*nodes, *objects, gates=TREES)
    scheduled = {name for name, told in outcome.groups.items() if told[0] == "Scheduled"}
    assert outcome.binds == {"p000": "a0", "p001": "a0"} and scheduled == {"g00"}
    why = "minCount (2) cannot be satisfied: 0 scheduled, 1 remaining"
    assert f"0/1 placements are available, first placement status: {why}" in outcome.groups["g10"][1]
