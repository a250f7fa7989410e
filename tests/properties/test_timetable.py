"""The timetable of in-order against its definition: at each instant at which something changes, the room of each node."""

from __future__ import annotations

from math import inf
from random import Random

import numpy as np
import pytest

from pumice.api.annotations import ESTIMATE
from pumice.scheduler.model import Cluster, Table
from pumice.scheduler.placement.growing_room import GrowingRoom
from pumice.scheduler.placement.planned_ends import PlannedEnds
from pumice.scheduler.placement.timetable import KeptPromises, PodSet, Promise, Timetable, places
from pumice.testing import cluster, node, pod, podgroup
from pumice.testing.builders import Builder
from pumice.testing.scene import NOW, session
from tests.samples import times

Taken = list[tuple[Promise, float]]


def drawn(random: Random) -> list[Builder]:
    """One to four nodes, with running pods of which some end at the same instant, and some never."""
    objects: list[Builder] = []
    for name in range(random.randint(1, 4)):
        cpus, gpus = random.randint(2, 6), random.randint(0, 4)
        objects.append(node(f"n{name}").cpu(cpus).gpu(gpus))
        for number in range(random.randint(0, 4)):
            gpu = random.randint(0, min(1, gpus))
            if not cpus:
                break
            cpus, gpus = cpus - 1, gpus - gpu
            group = podgroup(f"j{name}{number}").phase("Running")
            if random.random() < 0.8:
                group = group.annotation(ESTIMATE, f"{random.choice((1, 10, 20, 30, 50))}s")
            running = pod(f"j{name}{number}").asks(cpu=1, gpu=gpu).gang(f"j{name}{number}").on(f"n{name}")
            objects += [group, running.started(NOW - random.choice((0, 5, 15)))]
    return objects


def room_at(time: float, idle: Table, ends: list[tuple[float, int, int, float]], taken: Taken) -> Table:
    room = idle.copy()
    for end, column, row, amount in ends:
        room[column, row] += amount * (end <= time)
    for promise, length in taken:
        for column, row, amount in promise.usage:
            room[column, row] -= amount * (promise.start <= time < promise.start + length)
    return room


def sets_of(made: Cluster, random: Random) -> list[PodSet]:
    """None, one or two sets of equal pods that look for room."""
    pod_sets = []
    for _ in range(random.choice((0, 1, 1, 2))):
        idle = made.nodes.idle
        amounts = np.zeros(len(idle))
        for column in made.dimensions.columns.values():
            amounts[column] = idle[column].max() // random.choice((2, 4, 8)) * (random.random() < 0.7)
        amounts[0] = max(amounts[0], 500.0)
        pod_sets.append(PodSet(amounts, random.choice((1, 1, 2, 3, 5)), np.array([random.random() < 0.9 for _ in made.nodes])))
    return pod_sets


@pytest.mark.parametrize("seed", range(times(40)))
def test_a_promise_is_of_the_first_instant_at_which_there_is_room_for_the_whole_run(seed: int) -> None:
    random = Random(seed)
    made = cluster(*drawn(random))
    with session(made, "predicates") as opened:
        planned, idle = made.index(PlannedEnds), made.nodes.idle[: len(made.dimensions.names)].copy()
        times, rows, amounts = planned.to_come(opened, inf)
        ends = [(times[number], column, rows[number], amounts[column, number]) for column, number in np.argwhere(amounts).tolist()]
        taken: Taken = []
        timetable = Timetable(opened, planned, inf)
        for number in range(12):
            if number == 6:
                timetable = Timetable(opened, planned, inf, taken)  # as the next cycle makes it
            if taken and random.random() < 0.3:
                again = taken.pop(random.randrange(len(taken)))
                timetable.change(*again, 1)
            length = random.choice((0.0, 5.0, 10.0, 25.0, inf))
            changes = {time for promise, long in taken for time in (promise.start, promise.start + long)}
            instants = sorted({NOW, *changes, *(end for end, *_ in ends)} - {inf})

            def least(start: float, length: float = length, instants: list[float] = instants) -> Table:
                during = [start, *(time for time in instants if start < time < start + length)]
                room: Table = np.minimum.reduce([room_at(time, idle, ends, taken) for time in during])
                return room

            assert (timetable.free_now(length) == least(NOW)).all()
            pod_sets = sets_of(made, random)
            found = timetable.earliest(pod_sets, length)
            expected = next(((time, usage) for time in instants if (usage := places(least(time), pod_sets)) is not None), None)
            assert (found is None) == (expected is None)
            if found is not None and expected is not None:
                usage = np.zeros_like(idle)
                for column, row, amount in found.usage:
                    usage[column, row] += amount
                assert found.start == expected[0]
                assert (usage == expected[1]).all()
                timetable.change(found, length, -1)
                taken.append((found, length))


@pytest.mark.parametrize("seed", range(times(4)))
def test_a_promise_that_is_said_to_be_the_earliest_is_found_again(seed: int) -> None:
    """Jobs come and go, other pods of theirs wait now, they are expected to run longer, or another node may have them."""
    random, kept, moved = Random(seed), 0, 0
    for _ in range(20):
        made = cluster(*drawn(random))
        with session(made, "predicates") as opened:
            timetable, taken = Timetable(opened, made.index(PlannedEnds), inf), list[tuple[Promise, list[PodSet], float]]()
            for _ in range(30):
                if taken and random.random() < 0.8:
                    promise, pod_sets, length = taken.pop(random.randrange(len(taken)))
                    if random.random() < 0.2:
                        timetable.change(promise, length, 1)
                        length += random.choice((10.0, inf))
                        timetable.change(promise, length, -1)
                    if random.random() < 0.2:
                        pod_sets = sets_of(made, random)
                    known = KeptPromises([promise if promise.is_of_one(pod_sets) else None], len(made.dimensions.names))
                    is_earliest, again = timetable.surely_earliest(known)[0], timetable.better(promise, pod_sets, length)
                    if again == promise:
                        timetable.change(promise, length, 1)
                    found = timetable.earliest(pod_sets, length)
                    assert found == promise or not is_earliest
                    assert found == again
                    kept, moved = kept + is_earliest, moved + (found != promise)
                    if found is None or random.random() < 0.2:
                        continue
                else:
                    pod_sets, length = sets_of(made, random), random.choice((5.0, 10.0, 25.0, inf))
                    found = timetable.earliest(pod_sets, length)
                if found is not None and found.usage:
                    timetable.change(found, length, -1)
                    taken.append((found, pod_sets, length))
    assert kept and moved


@pytest.mark.parametrize("seed", range(times(40)))
def test_room_that_only_grows_is_that_of_a_timetable_without_promises(seed: int) -> None:
    """A pod is promised room, and others start beside it."""
    random = Random(seed)
    made = cluster(*drawn(random))
    with session(made, "predicates") as opened:
        planned, idle = made.index(PlannedEnds), made.nodes.idle
        timetable, growing = Timetable(opened, planned, inf), GrowingRoom(opened, planned, inf)
        amounts = np.zeros(len(idle))
        amounts[list(made.dimensions.columns.values())] = random.choice((0, 1000))
        amounts[0] = random.choice((1000, 3000, 6000))
        pods = [PodSet(amounts, 1, np.array([random.random() < 0.9 for _ in made.nodes]))]
        lengths = (0.0, 5.0, 10.0, 25.0, inf)
        first = timetable.earliest(pods, lengths[2])
        promise, lasts = growing.earliest(pods, inf), random.choice(lengths)
        assert promise == first
        if promise is not None:
            timetable.change(promise, lasts, -1)
            growing.change(promise, lasts, -1)
        for _ in range(4):
            for length in lengths:
                assert (growing.free_now(length)[: len(made.dimensions.names)] == timetable.free_now(length)).all()
            length, row = random.choice(lengths), random.randrange(len(made.nodes))
            beside = Promise(opened.now, ((0, row, 500.0), (2, row, 1.0)))
            for each in (timetable, growing):
                each.change(beside, length, -1)
            if length:
                idle[0, row], idle[2, row] = idle[0, row] - 500.0, idle[2, row] - 1.0


def test_expected_ends_are_those_of_a_recount_when_more_resources_become_known() -> None:
    def runs(name: str) -> list[Builder]:
        return [podgroup(name).annotation(ESTIMATE, "9s"), pod(name).cpu(1).gang(name).on("n").started(NOW)]

    made = cluster(node("n").cpu(99), *(each for number in range(70) for each in runs(f"j{number}")))
    made.index(PlannedEnds)
    wide = node("wide").cpu(9)
    for number in range(9):
        made.remove("Pod", f"default/j{number}")
        wide = wide.resource(f"example.com/r{number}", 1)
    for each in (wide, *runs("late")):
        made.put(*each.build())
    made.check()
