"""Preemption on all nodes at once equals trying node after node, and keeps its promises on random clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.cluster.offline import advance
from pumice.scheduler.actions.schedule import ScheduleLoop
from pumice.scheduler.eviction.pick_node import Candidate, cost
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.session import Session
from pumice.scheduler.kube.dry_run import NO_VICTIMS, PreemptionDryRun
from pumice.scheduler.kube.find_node import FitError
from pumice.scheduler.kube.units import Units
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from tests.kube_scheduler.stage import NOW, budget, cluster, existing, machine, policy, waiting
from tests.samples import times

POLICY = policy()
PRIORITIES = (-10, 0, 1, 5, 5, 50)


class Guest(NamedTuple):
    node: int
    cpu: int
    priority: int
    since: int | None
    app: str


class World(NamedTuple):
    nodes: list[int]
    guests: list[Guest]
    comers: list[tuple[int, int]]  #: cpu, priority
    nominated: list[tuple[int, int, int]]  #: node, cpu, priority
    budgets: list[tuple[int, str]]


guests = st.builds(
    Guest,
    st.integers(0, 3),
    st.integers(1, 3),
    st.sampled_from(PRIORITIES),
    st.one_of(st.none(), st.integers(0, 3)),
    st.sampled_from("abc"),
)
worlds = st.builds(
    World,
    st.lists(st.integers(2, 6), min_size=1, max_size=4),
    st.lists(guests, max_size=14),
    st.lists(st.tuples(st.integers(1, 5), st.sampled_from((1, 6, 60))), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 2), st.sampled_from((0, 6, 60))), max_size=2),
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abc")), max_size=3),
)


def made(world: World) -> Cluster:
    objects: list[object] = [machine(f"n{i}", cpu) for i, cpu in enumerate(world.nodes)]
    for number, guest in enumerate(world.guests):
        since = None if guest.since is None else f"2026-01-01T0{guest.since}:00:00Z"
        on = f"n{guest.node % len(world.nodes)}"
        objects.append(existing(f"g{number}", on, guest.cpu, guest.priority, since).label("app", guest.app))
    for number, (node, cpu, priority) in enumerate(world.nominated):
        on = f"n{node % len(world.nodes)}"
        objects.append(waiting(f"m{number}", cpu, priority).having("status", "nominatedNodeName", value=on))
    objects += [waiting(f"c{number}", cpu, priority) for number, (cpu, priority) in enumerate(world.comers)]
    objects += [budget(f"b{n}", left, {"matchLabels": {"app": app}}) for n, (left, app) in enumerate(world.budgets)]
    return cluster(POLICY, *objects)  # type: ignore[arg-type]


@settings(max_examples=times(38), deadline=None)
@given(worlds)
def test_all_nodes_at_once_equal_one_node_after_the_other(world: World) -> None:
    opened = Session(made(world), POLICY, NOW)
    with opened:
        assert POLICY.profiles is not None
        loop = ScheduleLoop(opened, POLICY.profiles)
        for task in loop.queue():
            search = loop.searches[task.template.scheduler_name]
            found = search.find(task)
            if isinstance(found, FitError):
                run = loop.preemption._dry_run(task, found)
                assert run is not None
                run.refresh(task, loop.nominations)
                trials = PreemptionDryRun(
                    opened.cluster, task, found.evaluation, loop.nominations, loop.preemption.budgets, Units(None), NOW
                )
                expected: dict[int, Candidate] = {}
                for row in np.flatnonzero(found.resolvable).tolist():
                    result = trials.on(row)
                    if not isinstance(result, Candidate):
                        assert not run.success[row]
                        assert run.has_lower[row] == (result != (NO_VICTIMS,))
                    elif result.victims:
                        expected[row] = result
                        assert run.candidate(row) == result
                assert [row for row in expected if run.success[row]] == list(expected)
                verdict = loop.preemption.consider(task, found, POLICY.profiles.by_name["default-scheduler"].preemption)
                if not verdict.text.startswith("not eligible"):
                    assert verdict.candidate == (best_of(list(expected.values())) if expected else None)
            loop.attempt(task)


def best_of(candidates: Sequence[Candidate]) -> Candidate:
    """The six rules as one key."""

    def key(candidate: Candidate) -> tuple[float, ...]:
        priorities = [victim.pod_priority for victim in candidate.victims]
        starts = [NOW if v.started is None else v.started for v in candidate.victims if v.pod_priority == priorities[0]]
        return (candidate.violations, priorities[0], sum(p + 2**31 for p in priorities), len(priorities), -min(starts))

    best = min(candidates, key=key)
    assert min(candidates, key=lambda each: cost(each, NOW)) == best
    return best


@settings(max_examples=times(38), deadline=None)
@given(worlds)
def test_promises(world: World) -> None:
    cluster = made(world)
    before = {task.key for task in cluster.tasks.values()}
    for number in range(3):
        decided = cycle(cluster, POLICY, NOW + number)
        cluster.check()
        gone = {eviction.task.key for eviction in decided.evictions}
        for eviction in decided.evictions:
            assert eviction.task.pod_priority < cluster.tasks[eviction.beneficiary].pod_priority
        assert (cluster.nodes.used <= cluster.nodes.allocatable).all() or overfull_from_the_start(world)
        for task in cluster.tasks.values():
            if task.status == status.PENDING and task.nominated:
                assert task.nominated in cluster.nodes.rows
        advance(cluster, decided, NOW + number)
        before -= gone
        assert before == set(cluster.tasks)  # nobody is lost but who was evicted


def overfull_from_the_start(world: World) -> bool:
    """The input itself may put too much on a node."""
    used = [0] * len(world.nodes)
    for guest in world.guests:
        used[guest.node % len(used)] += guest.cpu
    return any(part > whole for part, whole in zip(used, world.nodes, strict=True))


@settings(max_examples=times(25), deadline=None)
@given(worlds)
def test_a_budget_is_broken_only_where_every_candidate_breaks_one(world: World) -> None:
    opened = Session(made(world), POLICY, NOW)
    with opened:
        assert POLICY.profiles is not None
        loop = ScheduleLoop(opened, POLICY.profiles)
        task = next(loop.queue())
        found = loop.searches[task.template.scheduler_name].find(task)
        if not isinstance(found, FitError):
            return
        trials = PreemptionDryRun(opened.cluster, task, found.evaluation, loop.nominations, loop.preemption.budgets, Units(None), NOW)
        results = [trials.on(row) for row in np.flatnonzero(found.resolvable).tolist()]
        clean = any(isinstance(r, Candidate) and r.victims and not r.violations for r in results)
        verdict = loop.preemption.consider(task, found, POLICY.profiles.by_name["default-scheduler"].preemption)
        if verdict.candidate is not None and verdict.candidate.violations:
            assert not clean
