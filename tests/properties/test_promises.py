"""What holds whatever happens: a cluster that lives through random events and cycles, with every promise checked after each.

A few thousand operations in `make test`, 200,000 and more in the nightly profile (`pytest -m nightly`).
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from pumice.extensions import plugins
from pumice.inputs.cluster_from_files import advance
from pumice.scheduler.config.volcano_conf import read_policy
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.resources import CPU, PODS
from pumice.testing import cluster, node, pod, podgroup, priority_class, queue
from tests.samples import times

CONFIGURATION = """\
actions: "{actions}"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
  - name: {shares}
- plugins:
  - name: predicates
  - name: nodeorder
  - name: {scores}
"""

ACTIONS = [
    "enqueue, allocate, backfill",
    "enqueue, allocate, preempt",
    "enqueue, allocate, backfill, reclaim",
    "enqueue, allocate, reclaim, preempt",
]
NODES, QUEUES, CLASSES = ("n0", "n1", "n2", "n3"), ("qa", "qb"), {"low": 10, "high": 1000}


def policy(actions: str, shares: str, scores: str) -> Any:
    return read_policy(CONFIGURATION.format(actions=actions, shares=shares, scores=scores), plugins())[0]


few = st.integers(1, 4)
seldom = st.integers(0, 9).map(lambda number: number == 9)


class Life(RuleBasedStateMachine):
    """Nodes and jobs come and go; cycles decide; in between bound pods run and evicted ones go."""

    def __init__(self) -> None:
        super().__init__()
        parts = [queue(name).weight(1 + number).deserves(cpu=4) for number, name in enumerate(QUEUES)]
        ground = [node(name).cpu(4).memory("64Gi").pods(5) for name in NODES[:3]]
        self.cluster: Cluster = cluster(*ground, *parts, *(priority_class(name, value) for name, value in CLASSES.items()))
        self.now = 1_767_225_600.0
        self.jobs = 0
        self.shrunk: set[str] = set()
        self.decided = Decisions()

    @rule(name=st.sampled_from(NODES), cpu=st.integers(1, 8), pods=st.integers(1, 6), rare=seldom)
    def node_comes_or_changes(self, name: str, cpu: int, pods: int, rare: bool) -> None:
        if not rare:
            return
        row = self.cluster.nodes.rows.get(name)
        if row is None:
            too_small = any(task.node_name == name for task in self.cluster.tasks.values())  # pods that come back with it
        else:
            too_small = bool(self.cluster.nodes.used[CPU, row] > cpu * 1000 or self.cluster.nodes.used[PODS, row] > pods)
        if too_small:
            self.shrunk.add(name)
        else:
            self.shrunk.discard(name)
        self.cluster.put(*node(name).cpu(cpu).memory("64Gi").pods(pods).build())

    @rule(name=st.sampled_from(NODES), rare=seldom)
    def node_goes(self, name: str, rare: bool) -> None:
        if not rare:
            return
        self.cluster.remove("Node", name)
        self.shrunk.add(name)  # pods that still name it come back with it, perhaps too many

    @rule(size=few, least=few, cpu=st.integers(0, 3), where=st.sampled_from(QUEUES), rank=st.sampled_from(["", *CLASSES]))
    def job_comes(self, size: int, least: int, cpu: int, where: str, rank: str) -> None:
        self.jobs += 1
        name = f"j{self.jobs}"
        group = podgroup(name, min(least, size)).queue(where)
        self.cluster.put(*(group.priority_class(rank) if rank else group).build())
        for builder in pod(name).gang(name).times(size):
            self.cluster.put(*(builder.cpu(cpu) if cpu else builder).build())

    @rule(where=st.sampled_from(QUEUES), size=few, actions=st.sampled_from(ACTIONS), shares=st.sampled_from(["proportion", "capacity"]))
    def urgent_gang_meets_full_nodes(self, where: str, size: int, actions: str, shares: str) -> None:
        self.job_comes(4, 1, 1, where, "low")
        self.job_comes(4, 1, 1, where, "low")
        self.cycle_decides("enqueue, allocate", shares, "drf")
        self.job_comes(size, size, 2, where, "high")
        self.cycle_decides(actions, shares, "binpack")

    @rule(pick=st.integers(0, 10**6))
    def pod_goes(self, pick: int) -> None:
        keys = sorted(self.cluster.tasks)
        if keys:
            self.cluster.remove("Pod", keys[pick % len(keys)])

    @rule(pick=st.integers(0, 10**6), rare=seldom)
    def job_goes(self, pick: int, rare: bool) -> None:
        if not rare:
            return
        groups = sorted(uid for uid, job in self.cluster.jobs.items() if job.group is not None)
        if groups:
            self.cluster.remove("PodGroup", groups[pick % len(groups)])

    @rule(actions=st.sampled_from(ACTIONS), shares=st.sampled_from(["proportion", "capacity"]), scores=st.sampled_from(["binpack", "drf"]))
    def cycle_decides(self, actions: str, shares: str, scores: str) -> None:
        before = {job.uid: job.ready_count for job in self.cluster.jobs.values()}
        self.time_passes()
        decisions = self.decided = cycle(self.cluster, policy(actions, shares, scores), self.now)
        self.check_gangs(decisions, before)
        self.check_evictions(decisions)
        self.check_undone(decisions)

    @rule()
    def time_passes(self) -> None:
        for key in [task.key for task in self.cluster.tasks.values() if task.node < 0 and task.node_name]:
            self.cluster.remove("Pod", key)  # its node is gone
        advance(self.cluster, self.decided, self.now)
        self.decided = Decisions()
        self.now += 1

    @rule()
    def nothing_changes_in_a_second_cycle_of_no_actions(self) -> None:
        nodes = self.cluster.nodes
        arrays = ("used", "idle", "releasing", "pipelined", "nonzero_used", "used_for_filters")
        before = [getattr(nodes, name).tobytes() for name in arrays]
        cycle(self.cluster, policy("backfill", "proportion", "drf"), self.now) if not self.cluster.waiting else None
        assert [getattr(nodes, name).tobytes() for name in arrays] == before

    # -- promises

    def check_gangs(self, decisions: Decisions, before: dict[str, int]) -> None:
        """A gang that gets places gets at least its minimum."""
        for job in {bind.task.job.uid: bind.task.job for bind in decisions.binds if bind.task.job}.values():
            assert (
                before.get(job.uid, 0) + len([b for b in decisions.binds if b.task.job is job]) + job.pending_best_effort >= job.min_member
            )

    def check_evictions(self, decisions: Decisions) -> None:
        """Nobody is evicted but for a task that waits on that very node, of a gang that has all its places."""
        waits = {place.task.key: place.node for place in decisions.pipelined}
        for eviction in decisions.evictions:
            assert waits.get(eviction.beneficiary) == eviction.node, eviction
            assert eviction.task.preemptable
            job = self.cluster.tasks[eviction.beneficiary].job
            assert job is not None
            placed = [place for place in decisions.pipelined if place.task.job is job]
            assert job.ready_count + len(placed) + job.pending_best_effort >= job.min_member

    def check_undone(self, decisions: Decisions) -> None:
        """What was not decided is undone: nobody is left Allocated or Pipelined."""
        assert not any(task.status & (status.ALLOCATED | status.PIPELINED) for task in self.cluster.tasks.values())
        assert not self.cluster.nodes.pipelined.any()
        bound = [bind.task.key for bind in decisions.binds]
        assert len(bound) == len(set(bound))

    @invariant()
    def sums_are_those_of_the_tasks(self) -> None:
        self.cluster.check()

    @invariant()
    def no_node_holds_more_than_it_has(self) -> None:
        nodes = self.cluster.nodes
        for row in nodes:
            if nodes.names[row] not in self.shrunk:
                assert (nodes.idle[:, row] >= 0).all(), nodes.names[row]


def live(lives: int, steps: int) -> None:
    run_state_machine_as_test(
        Life, settings=settings(max_examples=lives, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck))
    )


def test_promises_hold_through_a_few_thousand_operations() -> None:
    live(times(20), 40)


@pytest.mark.nightly
def test_promises_hold_through_many_operations() -> None:
    live(5000, 50)
