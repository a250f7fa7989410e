"""A gang that room was made for, and a gang that waits: where it goes, and when it thinks again."""

from __future__ import annotations

import pytest

from pumice.scheduler.framework.network_topology import Purpose
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.testing import cluster, pod, podgroup, schedule, session
from tests.topology.racks import ACTIONS, PLUGINS, gang, part, rack_of, racks, running


def nominated(made: Cluster, hypernode_name: str, *nodes: str) -> None:
    job = made.jobs["default/a"]
    job.nominated_hypernodes = {job.uid: hypernode_name}
    for task, where in zip(job.tasks.values(), nodes, strict=True):
        task.nominated = where


def test_a_gang_goes_where_room_was_made_for_it() -> None:
    made = cluster(*racks(2, 2), podgroup("a", 2).topology(1), *gang("a", 2))
    nominated(made, "r2", "n4", "n3")
    assert schedule(made, ACTIONS, *PLUGINS).binds == {"default/a-0": "n4", "default/a-1": "n3"}
    assert made.jobs["default/a"].nominated_hypernodes == {}


@pytest.mark.parametrize("nodes", [("n4", "n1"), ("n4", "gone"), ("n4", ""), ("n4", "n4")])
def test_nominations_that_do_not_hold_are_forgotten(nodes: tuple[str, str]) -> None:
    made = cluster(*racks(2, 2), podgroup("a", 2).topology(1), *gang("a", 2), podgroup("o").phase("Running"), *running("o", "n4"))
    nominated(made, "r2", *nodes)
    outcome = schedule(made, ACTIONS, *PLUGINS)
    assert len({rack_of(where) for where in outcome.binds.values()}) == 1
    assert len(outcome.binds) == 2
    assert made.jobs["default/a"].nominated_hypernodes == {}


def test_a_nominated_gang_waits_while_victims_leave_and_keeps_its_nomination() -> None:
    leaving = [one.leaving() for one in running("o", "n3", "n4", cpu=2)]
    made = cluster(*racks(2, 2), podgroup("a", 2).topology(1), *gang("a", 2), podgroup("o").phase("Running"), *leaving)
    nominated(made, "r2", "n3", "n4")
    outcome = schedule(made, ACTIONS, *PLUGINS)
    assert (outcome.binds, outcome.pipelined) == ({}, {"default/a-0": "n3", "default/a-1": "n4"})
    assert made.jobs["default/a"].nominated_hypernodes


@pytest.mark.parametrize(("least", "promised"), [(4, ["n1", "n1", "n3", "n3"]), (5, [])])
def test_a_gang_in_parts_goes_where_room_was_made_for_each_if_that_is_enough(least: int, promised: list[str]) -> None:
    group = podgroup("a", least).parts("part", 2, 2, 1)
    gated = pod("a-z").cpu(1).gang("a").having("spec", "schedulingGates", value=[{"name": "later"}])
    made = cluster(*racks(2, 2), group, *part("a", "0", 2), *part("a", "1", 2), gated)
    job = made.jobs["default/a"]
    job.nominated_hypernodes = {part.uid: f"r{part.match_index + 1}" for part in job.subjobs if part.policy}
    for task in job.tasks.values():
        task.nominated = "n1" if task.labels.get("part") == "0" else "n3"
    outcome = schedule(made, ACTIONS, *PLUGINS)
    assert sorted(outcome.binds.values()) == promised


def test_tasks_that_wait_count_as_standing_for_nobody_after_the_session() -> None:
    made = cluster(*racks(2, 2), podgroup("a", 5).topology(1), *gang("a", 5))
    schedule(made, ACTIONS, *PLUGINS)
    assert {task.status for task in made.tasks.values()} == {status.PENDING}
    with session(made, *PLUGINS) as opened:
        job = made.jobs["default/a"]
        assert opened.gradients(job, opened.topology.tree.root, Purpose.ALLOCATE) != []
