"""The places of equal members are planned in all placements: the outcome is that of trying one member after the other in each."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pumice.scheduler.framework.session import Session
from pumice.scheduler.kube.placements import PlacementMemory, placements
from tests.kube_scheduler.native import TOPOLOGY, Outcome, group, member, policy, run, running
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
        places = memory.planned(finder.evaluation(pods[0]), found, 3)
        names = made.nodes.names
        assert [[names[row] for row in places.rows(number)] for number in range(2)] == [["a0", "a1", "a0"], ["b0", "b1", "b0"]]
        with session.statement() as statement:
            statement.allocate(pods[0], made.nodes.rows["b0"])
            statement.allocate(pods[1], made.nodes.rows["none"])
            again = memory.planned(finder.evaluation(pods[2]), found, 3)
            assert again is places and [names[row] for row in places.rows(1)] == ["b1", "b0", "b1"]
        places._position = -(10**9)  # as if it were too long ago to know what has changed
        assert [names[row] for row in memory.planned(finder.evaluation(pods[0]), found, 3).rows(1)] == ["b0", "b1", "b0"]
