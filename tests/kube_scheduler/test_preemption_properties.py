"""Preemption on all nodes at once equals trying node after node, and keeps its promises on random clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import given, settings, strategies as st
from msgspec.structs import replace

from pumice.inputs.cluster_from_files import advance
from pumice.scheduler.actions.schedule import ScheduleLoop
from pumice.scheduler.eviction.pick_node import Candidate, cost
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.feature_gates import release
from pumice.scheduler.framework.session import Session
from pumice.scheduler.kube.find_node import FitError
from pumice.scheduler.kube.pod_groups import Groups
from pumice.scheduler.kube.preemption_dry_run import NO_VICTIMS, PreemptionDryRun
from pumice.scheduler.kube.preemption_units import Units
from pumice.scheduler.kube.victims_table import UnitsTable
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from tests.kube_scheduler import native
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


class GroupedWorld(NamedTuple):
    """Pods of groups run, some of which go as a whole, others below a tree."""

    nodes: list[int]
    guests: list[tuple[int, int, int, int | None]]  #: node, cpu, group (0: none), start
    groups: list[tuple[int, bool, bool]]  #: priority, whether it goes as a whole, whether it is below the tree
    tree: tuple[int, bool]  #: priority, whether it goes as a whole
    odd: bool  #: whether a pod has another priority than its group
    comers: list[tuple[int, int]]
    budgets: list[tuple[int, str]]


grouped_worlds = st.builds(
    GroupedWorld,
    st.lists(st.integers(2, 6), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(0, 3), st.one_of(st.none(), st.integers(0, 3))), max_size=14),
    st.lists(st.tuples(st.sampled_from(PRIORITIES), st.booleans(), st.booleans()), min_size=3, max_size=3),
    st.tuples(st.sampled_from(PRIORITIES), st.booleans()),
    st.booleans(),
    st.lists(st.tuples(st.integers(1, 5), st.sampled_from((1, 6, 60))), min_size=1, max_size=4),
    st.one_of(st.just([]), st.lists(st.tuples(st.integers(0, 2), st.just("a")), max_size=1)),
)


@settings(max_examples=150, deadline=None)
@given(grouped_worlds)
def test_units_of_groups_too_are_compared_on_all_nodes_at_once(world: GroupedWorld) -> None:
    def outcomes(*, shortcuts: bool) -> list[native.Outcome]:
        chosen = replace(native.policy(native.TREES), shortcuts=shortcuts)
        objects: list[Any] = [machine(f"n{i}", cpu) for i, cpu in enumerate(world.nodes)]
        top, whole = world.tree
        objects.append(native.tree("t", priority=top, whole=whole))
        below = {number: top if in_tree else priority for number, (priority, _, in_tree) in enumerate(world.groups, 1)}
        for number, (priority, is_whole, in_tree) in enumerate(world.groups, 1):
            objects.append(native.group(f"g{number}", priority=priority, whole=is_whole, parent="t" if in_tree else ""))
        for number, (node, cpu, of, since) in enumerate(world.guests):
            priority = below.get(of, number % 3) + (world.odd and number == 0)
            started = None if since is None else f"2026-01-01T0{since}:00:00Z"
            pod = existing(f"p{number}", f"n{node % len(world.nodes)}", cpu, priority, started).label("app", "a")
            objects.append(pod.having("spec", "schedulingGroup", value={"podGroupName": f"g{of}"}) if of else pod)
        objects += [waiting(f"c{number}", cpu, priority) for number, (cpu, priority) in enumerate(world.comers)]
        objects += [budget(f"b{n}", left, {"matchLabels": {"app": app}}) for n, (left, app) in enumerate(world.budgets)]
        cluster = native.cluster(chosen, *objects)
        return [native.run(cluster, chosen, NOW + number) for number in range(2)]

    assert outcomes(shortcuts=True) == outcomes(shortcuts=False)


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


def test_units_are_read_anew_where_pods_or_groups_have_changed() -> None:
    """Twenty pods more than there were come to a node; a PodGroup gets a condition, and then goes as a whole."""
    chosen = native.policy()
    pods = native.running("g0", "g", "n1", 2), native.running("lost", "x", "n1")
    made = native.cluster(chosen, machine("n1", cpu=30), native.group("g", 1), *pods)
    units = Units(Groups(made, release(37, {"GenericWorkload": True})))
    table = made.index(UnitsTable)
    table.read_by(units)
    assert table.depth(np.array([0])) == 2 and [task.name for task in table.victims(0, [0])] == ["g0"]
    for number in range(20):
        made.put("Pod", native.running(f"g{number + 1}", "g", "n1").build()[1])
    table.read_by(units)
    assert table.depth(np.array([0])) == 22
    kind, group = native.group("g", 1).having("status", "conditions", value=[{"type": "X", "status": "True"}]).build()
    made.put(kind, group)
    table.read_by(units)
    assert table.depth(np.array([0])) == 22
    made.put(kind, native.group("g", 1, whole=True).build()[1])
    table.read_by(Units(Groups(made, release(37, {"GenericWorkload": True}))))
    assert table.depth(np.array([0])) == 2 and len(table.victims(0, [0])) == 21
    assert Units(None).rows_with("default/g") == set()
