"""Promises over all inputs: no eviction without the whole gang placed, limits kept, nothing disturbed where nothing is decided."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings, strategies as st

from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.hypernodes import hypernodes_of
from pumice.testing import cluster, podgroup, priority_class
from pumice.testing.scene import NOW, policy
from tests.samples import times
from tests.topology.racks import PLUGINS, assert_same, gang, part, racks, running, state

CPU = 3


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """A few racks, running jobs of low importance, and an important gang that waits, perhaps within a limit, perhaps in parts."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    objects: list[Any] = [priority_class("high", 100), priority_class("low", 1), *racks(*sizes, cpu=CPU)]
    free = [f"n{number}" for number in range(1, sum(sizes) + 1) for _ in range(CPU)]
    for number in range(draw(st.integers(0, 4))):
        pods = draw(st.integers(0, len(free)))
        where, free = free[:pods], free[pods:]
        least = draw(st.integers(0, pods))
        objects += [podgroup(f"low{number}", least).priority_class("low").phase("Running"), *running(f"low{number}", *where)]
    size = draw(st.integers(1, 6))
    wish = podgroup("high", draw(st.integers(1, size))).priority_class("high").phase("Inqueue")
    limit = draw(st.sampled_from([None, 1, 2]))
    wish = wish if limit is None else wish.topology(limit)
    if draw(st.booleans()):
        first = draw(st.integers(1, size))
        wish = wish.parts("part", draw(st.integers(1, 3)), draw(st.integers(0, 1)), draw(st.sampled_from([None, 1])))
        return cluster(*objects, wish, *part("high", "0", first), *part("high", "1", size - first))
    return cluster(*objects, wish, *gang("high", size))


def decide(made: Cluster, actions: str) -> Decisions:
    return cycle(made, policy(actions, PLUGINS), NOW)


def existing(made: Cluster, placed: set[str], uid: str) -> int:
    """Tasks of a job that will have a place."""
    tasks = made.jobs[uid].tasks.values()
    return sum(1 for task in tasks if task.key in placed or task.status & status.ALLOCATED_ALL)


def assert_within_limits(made: Cluster, places: dict[str, str]) -> None:
    job, tree = made.jobs["default/high"], hypernodes_of(made)
    groups = [(job.subjobs.topology, list(job.tasks.values()))] + [(part.topology, list(part.tasks.values())) for part in job.subjobs]
    for topology, tasks in groups:
        rows = [made.nodes.rows[places[task.key]] for task in tasks if task.key in places]
        if topology is not None and topology.highest_tier_allowed is not None and rows:
            assert tree.enclosing(rows).tier <= topology.highest_tier_allowed


@settings(max_examples=times(38), deadline=None)
@given(clusters())
def test_allocate_keeps_limits_and_gangs(made: Cluster) -> None:
    before = state(made)
    decisions = decide(made, "allocate")
    made.check()
    places = {bind.task.key: bind.node for bind in decisions.binds}
    assert_within_limits(made, places)
    if places:
        assert existing(made, set(places), "default/high") >= made.jobs["default/high"].min_member
    else:
        assert_same(before, state(made))


@settings(max_examples=times(38), deadline=None)
@given(clusters())
def test_gangpreempt_evicts_only_for_a_whole_gang_and_bundle_by_bundle(made: Cluster) -> None:
    ready_before = {uid: job.ready_count for uid, job in made.jobs.items()}
    before = state(made)
    decisions = decide(made, "gangpreempt")
    made.check()
    promised = {place.task.key: place.node for place in decisions.pipelined}
    gone: dict[str, int] = {}
    for eviction in decisions.evictions:
        assert eviction.task.job is not None
        gone[eviction.task.job.uid] = gone.get(eviction.task.job.uid, 0) + 1
    if not gone:
        assert_same(before, state(made))
        return
    assert existing(made, set(promised), "default/high") >= made.jobs["default/high"].min_member
    assert_within_limits(made, promised)
    high = made.jobs["default/high"]
    for uid, count in gone.items():
        job = made.jobs[uid]
        assert job.priority < high.priority
        spared = [task for task in job.tasks.values() if task.status == status.RUNNING]
        keeps_its_gang = ready_before[uid] - count >= job.min_member
        assert keeps_its_gang or not spared or high.subjobs.topology is not None, f"{job} is broken, but not cleared"
