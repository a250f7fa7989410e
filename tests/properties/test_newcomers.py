"""Newcomers that are placed the short way, one or several, are placed as by a session that computes everything anew, and leave the same
state behind.

Two equal clusters live through the same random operations; the cycles of one are decided without shortcuts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.api.annotations import ESTIMATE
from pumice.inputs.cluster_from_files import advance
from pumice.scheduler.config.volcano_conf import read_policy
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.job_classes import MEMORY as JOB_CLASSES
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.registry import PLUGINS
from pumice.testing import cluster, node, pod, podgroup, priority_class, queue
from tests.properties.test_waiting import said
from tests.samples import times

VOLCANO = """\
actions: "{actions}"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
    arguments: {{overcommit-factor: {factor}}}
  - name: drf
  - name: predicates
  - name: {shares}
  - name: {scores}
"""
IN_ORDER = """\
actions: "in-order"
configurations:
- name: in-order
  arguments: {{backfill: {backfill}}}
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: {order}
"""
CHOICES = {
    "actions": ("enqueue, allocate, backfill", "allocate, backfill", "enqueue, allocate, preempt", "enqueue, allocate"),
    "factor": ("1.0", "1.2"),
    "shares": ("proportion", "proportion", "capacity"),
    "scores": ("nodeorder", "nodeorder", "binpack"),
    "backfill": ("none", "greedy", "easy", "conservative"),
    "order": ("shortest-first", "priority"),
}
QUEUES, NODES = ("qa", "qb", "default"), 4
Operation = Callable[[Cluster], object]


class Fate:
    """What happens next: mostly a job of one pod comes, or one ends."""

    def __init__(self, random: Random) -> None:
        self._random, self._number = random, 0
        self._amounts = [random.randint(1, 1200) for _ in range(3)]

    def draw(self, living: Cluster) -> Operation:
        comes = 10 if len(living.waiting) > 1 else 60
        drawn = self._random.choices([self._job, self._ends, self._queue, self._node, self._other], [comes, 40, 1, 1, 1])[0]
        return drawn(living)

    def _job(self, living: Cluster) -> Operation:
        random, name, amount = self._random, self._name(), self._random.choice(self._amounts)
        size = random.choices([0, 1, 2], [1, 18, 1])[0]
        group = podgroup(name, random.choice([size, size, 0])).queue(random.choice(QUEUES)).phase(random.choice(["Pending", "Inqueue"]))
        members = pod(name).gang(name).cpu(f"{amount}m").times(size)
        if random.random() < 0.7:
            group = group.needs(cpu=f"{amount * (size or 4)}m")
        if random.random() < 0.2:
            group = group.priority_class("high")
        if random.random() < 0.5:
            group = group.annotation(ESTIMATE, f"{random.randint(1, 9)}s")
        if random.random() < 0.2:
            members = [member.gpu(1) for member in members]
        if random.random() < 0.1:
            members = [member.selector("zone", random.choice("0123")) for member in members]
        return _putting(*(each.build() for each in (group, *members)))

    def _ends(self, living: Cluster) -> Operation:
        """A job is gone, or just a pod of it; or a pod is being deleted, or has succeeded."""
        among = living.waiting if len(living.waiting) > 1 else living.jobs
        uid = self._random.choice(sorted(among) or [""])
        how = self._random.random() if uid else 0.0

        def end(made: Cluster) -> None:
            tasks = [*made.jobs[uid].tasks.values()] if uid else []
            for task in tasks[: 1 if how < 0.2 else None]:
                if how < 0.1 and task.status == status.RUNNING and task.node >= 0:
                    made.move(task, status.RELEASING if how < 0.05 else status.SUCCEEDED, task.node if how < 0.05 else -1)
                else:
                    made.remove("Pod", task.key)
            if how > 0.3:
                made.remove("PodGroup", uid)

        return end

    def _queue(self, living: Cluster) -> Operation:
        changed, random = queue(self._random.choice(QUEUES)).weight(self._random.randint(1, 3)), self._random
        limited = changed.capability(cpu=random.randint(1, 9)), changed.guarantees(cpu=random.randint(1, 3)), changed.state("Closed")
        return _putting(random.choice([*[changed] * 6, *limited]).build())

    def _node(self, living: Cluster) -> Operation:
        name, random = f"n{self._random.randrange(NODES)}", self._random
        fresh = node(name).cpu(random.choice([2, 4])).gpu(random.choice([0, 2])).pods(random.choice([3, 9])).label("zone", name[-1])
        if random.random() < 0.3:
            return lambda made: made.remove("Node", name)
        return _putting((fresh.taint("kept") if random.random() < 0.2 else fresh).build())

    def _other(self, living: Cluster) -> Operation:
        """A pod without a group comes, or goes."""
        if (others := sorted(task.key for task in living.tasks.values() if task.job is None)) and self._random.random() < 0.6:
            return lambda made: made.remove("Pod", others[0])
        other = pod(self._name()).cpu("100m")
        return _putting(self._random.choice([other, *[other.on(f"n{self._random.randrange(NODES + 1)}")] * 3]).build())

    def _name(self) -> str:
        self._number += 1
        return f"j{self._number:05}"


def _putting(*items: tuple[str, Any]) -> Operation:
    return lambda made: [made.put(*item) for item in items]


def state_of(made: Cluster) -> dict[str, Any]:
    """What is known when a cycle has ended, in values of no cluster."""
    return {
        "jobs": {uid: (job.phase, job.waiting_since, sorted(job.by_status.items())) for uid, job in made.jobs.items()},
        "tasks": {key: (task.status, task.node_name) for key, task in made.tasks.items()},
        "queues": {name: (own.held.tolist(), own.pending.tolist()) for name, own in made.queues.items()},
        "waiting": (sorted(made.waiting), sorted(made.not_enqueued), len(made.changed), len(made.log)),
    }


def live(seed: int, operations: int, configuration: str) -> Counter[int]:
    """How many cycles went the short way: by the number of pods that they placed, 2 for several."""
    random = Random(seed)
    policy = read_policy(configuration.format(**{name: random.choice(among) for name, among in CHOICES.items()}), PLUGINS)[0]
    first = [*(node(f"n{number}").cpu(4).gpu(2).pods(9).label("zone", str(number)) for number in range(NODES)), *map(queue, QUEUES)]
    kept, anew = (cluster(*first, priority_class("high", 1000)) for _ in range(2))
    fate, now, placed = Fate(random), 1_767_225_600.0, Counter[int]()
    for _ in range(operations):
        for _ in range(random.choice([1, 1, 1, 2, 4])):
            operation = fate.draw(kept)
            operation(kept)
            operation(anew)
        now += random.choice([0.0, 0.5, 1.0])
        decided, expected = cycle(kept, policy, now), cycle(anew, replace(policy, shortcuts=False), now)
        in_order = decided.conclusion is not None and not decided.conclusion.at_rest.groups
        assert said(decided, in_order) == said(expected, in_order), f"seed {seed}"
        assert decided.again_at == expected.again_at and state_of(kept) == state_of(anew), f"seed {seed}"
        placed[min(len(decided.binds), 2)] += JOB_CLASSES not in kept.memory
        advance(kept, decided, now)
        advance(anew, expected, now)
    kept.check()
    return placed


@pytest.mark.parametrize("configuration", [VOLCANO, IN_ORDER], ids=["in queues", "in order"])
def test_newcomers_are_placed_as_by_a_session(configuration: str) -> None:
    placed = sum((live(seed, 40, configuration) for seed in range(times(6))), Counter[int]())
    assert placed[0] > 5
    assert placed[1] > 5
    assert placed[2] > 1


@pytest.mark.nightly
@pytest.mark.parametrize("configuration", [VOLCANO, IN_ORDER], ids=["in queues", "in order"])
@pytest.mark.parametrize("seeds", [range(start, start + 100) for start in range(1000, 2000, 100)], ids=lambda seeds: f"from {seeds.start}")
def test_so_are_many(seeds: range, configuration: str) -> None:
    for seed in seeds:
        live(seed, 200, configuration)
