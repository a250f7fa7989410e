"""Nobody goes in vain: of the victims that were decided on for a gang, none can be put back while the gang keeps its places."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pumice.scheduler.actions.gangpreempt import GangPreempt
from pumice.scheduler.eviction.gang_bundles import safe_ones
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.task import Task
from pumice.scheduler.registry import ACTIONS
from pumice.testing import PodBuilder, cluster, node, pod, podgroup, priority_class, queue
from pumice.testing.scene import NOW, policy
from tests.samples import times

PLUGINS = ("priority", "gang", "conformance", "predicates", "proportion", "nodeorder")
NAMES = "abcd"
Objects = list[Any]

ports = st.sampled_from([0, 0, 8000, 8001])
running = st.tuples(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=4),  # where its pods run
    st.sampled_from([0, 0, 1, 2, 3]),  # of which must
    st.integers(1, 3),  # cpus of each
    ports,
    st.sampled_from(["low", "mid"]),
)
waiting = st.tuples(st.integers(1, 3), st.integers(1, 5), ports, st.sampled_from([None, "zone"]))


def asking(one: PodBuilder, cpu: int, port: int) -> PodBuilder:
    one = one.cpu(cpu)
    return one.having("spec", "containers", 0, "ports", value=[{"containerPort": 1, "hostPort": port}]) if port else one


def scene(existing: list[Any], wish: Any, action: str) -> Objects:
    """Nodes with what runs on them as far as there is room, and one gang that waits."""
    free = {name: 3 + number for number, name in enumerate(NAMES)}
    used: set[tuple[str, int]] = set()
    objects: Objects = [node(name).cpu(free[name]).label("zone", name) for name in NAMES]
    objects += [priority_class(name, value) for name, value in (("low", 1), ("mid", 5), ("high", 9))]
    objects += [queue("own").weight(9), queue("other")]
    theirs = "other" if action.endswith("reclaim") else "own"
    for number, (where, least, cpu, port, rank) in enumerate(existing):
        least = least if action.startswith("gang") else 0  # or the plugin gang lets too few go
        objects.append(podgroup(f"j{number}", least).queue(theirs).priority_class(rank).phase("Running"))
        for index, name in enumerate(where):
            if free[name] >= cpu and (name, port) not in used:
                free[name] -= cpu
                used.add((name, port or -index - 10 * number))
                one = asking(pod(f"j{number}-{index}"), cpu, port).priority({"low": 1, "mid": 5}[rank])
                objects.append(one.gang(f"j{number}").on(name))
    size, cpu, port, apart = wish
    objects.append(podgroup("new", size).queue("own").priority_class("high").phase("Inqueue"))
    for one in pod("new").times(size):
        fresh = asking(one, cpu, port).gang("new").label("app", "new").priority(9)
        term = {"topologyKey": apart, "labelSelector": {"matchLabels": {"app": "new"}}}
        spread = ("spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
        objects.append(fresh.having(*spread, value=[term]) if apart else fresh)
    return objects


class InSameOrder(GangPreempt):
    """Without `spareVictims` the youngest of jobs that plugins rank alike is the first: here the order is the same as with it."""

    def rank_key(self, session: Session, its_job: Job) -> Hashable:
        return session.orders.job_plugin_key(its_job)


def chosen(action: str, *, spare: bool) -> Policy:
    plugins = [name for name in PLUGINS if action != "reclaim" or name != "proportion"]  # which would let few go, for so small a gang
    base = policy("allocate", plugins)
    kind = InSameOrder if action == GangPreempt.name and not spare else ACTIONS[action]
    return Policy((*base.actions, kind(kind.Args(spare=spare))), base.tiers)


def decided(objects: Objects, action: str, *, spare: bool) -> Decisions:
    made = cluster(*objects)
    decisions = cycle(made, chosen(action, spare=spare), NOW)
    made.check()
    return decisions


def units(victims: list[Task], action: str) -> Iterator[list[Task]]:
    """What could be put back by itself: a pod; of gang evictions all that a job loses, or only what it needs to run."""
    if not action.startswith("gang"):
        yield from ([victim] for victim in victims)
        return
    for job in {victim.job: None for victim in victims if victim.job}:
        lost = sorted((victim for victim in victims if victim.job is job), key=lambda task: (task.priority, task.uid))
        yield lost
        yield [task for task, safe in zip(lost, safe_ones(job, lost), strict=True) if not safe]


def stands(session: Session, made: Cluster, gone: list[Task], decisions: Decisions) -> bool:
    """Whether all that wait could do so where they do if only these were gone."""
    with session.statement() as statement:
        for victim in gone:
            statement.evict(victim, "test")
        for place in decisions.pipelined:
            task, row = made.tasks[place.task.key], made.nodes.rows[place.node]
            evaluation = session.evaluation(task)
            assert task.job is not None and task.job.queue is not None
            if not (evaluation.admitted[row] and evaluation.fits_future[row] and session.allocatable(task.job.queue, task)):
                return False
            statement.pipeline(task, row)
        return True


@pytest.mark.parametrize("action", ["gangpreempt", "gangreclaim", "preempt", "reclaim"])
@settings(max_examples=times(8), deadline=None)
@given(st.lists(running, min_size=2, max_size=9), waiting)
def test_nobody_goes_in_vain(action: str, existing: list[Any], wish: Any) -> None:
    objects = scene(existing, wish, action)
    decisions, volcanos = decided(objects, action, spare=True), decided(objects, action, spare=False)
    assert bool(decisions.evictions) == bool(volcanos.evictions)
    made = cluster(*objects)
    gone = [made.tasks[eviction.task.key] for eviction in decisions.evictions]
    if action.startswith("gang"):
        assert len(gone) <= len(volcanos.evictions)
    with Session(made, chosen(action, spare=True), NOW) as session:
        assert stands(session, made, gone, decisions)
        for unit in units(gone, action):
            assert not unit or not stands(session, made, [task for task in gone if task not in unit], decisions), unit
