"""The timetable of in-order against its definition: at each instant at which something changes, the room of each node."""

from __future__ import annotations

from math import inf
from random import Random

import numpy as np
import pytest

from pumice.api.annotations import ESTIMATE
from pumice.scheduler.model import Table
from pumice.scheduler.placement.room_over_time import Timetable, places
from pumice.scheduler.placement.timetable import PlannedEnds, PodSet, Promise
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


@pytest.mark.parametrize("seed", range(times(40)))
def test_a_promise_is_of_the_first_instant_at_which_there_is_room_for_the_whole_run(seed: int) -> None:
    random = Random(seed)
    made = cluster(*drawn(random))
    with session(made, "predicates") as opened:
        planned, idle = made.index(PlannedEnds), made.nodes.idle.copy()
        ends = [(change.time, *part) for change in planned.to_come(opened, inf) for part in change.usage]
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
            pod_sets = []
            for _ in range(random.choice((0, 1, 1, 2))):
                amounts = np.zeros(len(idle))
                for column in made.dimensions.columns.values():
                    amounts[column] = idle[column].max() // random.choice((2, 4, 8)) * (random.random() < 0.7)
                amounts[0] = max(amounts[0], 500.0)
                pod_sets.append(PodSet(amounts, random.randint(1, 5), np.array([random.random() < 0.9 for _ in made.nodes])))
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
