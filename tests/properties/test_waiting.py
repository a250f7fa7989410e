"""What is remembered of those who wait changes nothing: each cycle decides and says what one does that looks at everything anew.

Two equal clusters live through the same random operations; the cycles of one are decided without shortcuts, and so remember nothing, and
try each job by itself. Some hundred operations in `make test`, 200,000 in the nightly profile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.api.annotations import ESTIMATE, USER
from pumice.inputs.cluster_from_files import advance
from pumice.scheduler.config.volcano_conf import read_policy
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.observer import Observer
from pumice.scheduler.framework.past_evictions import PAST_EVICTIONS, EvictedFor, LastEviction
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.task import Task
from pumice.scheduler.registry import PLUGINS
from pumice.testing import cluster, node, pod, podgroup, priority_class, queue
from tests.all_events import all_events
from tests.samples import times

CONFIGURATION = """\
actions: "{actions}"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: {second}
  - name: predicates
  - name: {shares}
  - name: nodeorder
  - name: {third}
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
IN_A_TREE = CONFIGURATION.replace("{shares}", "{shares}\n    enableHierarchy: true")
ACTIONS = (
    "enqueue, allocate, backfill",
    "enqueue, allocate, preempt, reclaim, backfill",
    "enqueue, reclaim, preempt, allocate",
    "allocate, backfill",
    "enqueue, gangreclaim, gangpreempt, allocate",
    "enqueue, allocate, gangpreempt, gangreclaim, backfill",
)
PAST = "\n    arguments: {usage.halfLife: 200s}"
THIRD = "sla", "task-topology", "binpack"
NODES, QUEUES, CLASSES = [f"n{number}" for number in range(6)], ("qa", "qb"), {"low": 10, "high": 1000}
FLAT = dict.fromkeys(QUEUES, "")  #: queue to parent
TREE = {"left": "root", "right": "root", **{f"{side}-{number}": side for side in ("left", "right") for number in range(3)}}


class Counting(Observer):
    """How often a node was looked for."""

    needs_full_cycles = False

    def __init__(self) -> None:
        self.count = 0

    def turn(self, task: Task) -> None:
        self.count += 1


class Life:
    """One of the two."""

    def __init__(self, policy: Policy, parents: dict[str, str] = FLAT, nodes: Sequence[str] = NODES) -> None:
        self.policy, self.turns = policy, Counting()
        self.cluster = cluster(
            *(node(name).cpu(4).gpu(4).pods(6).label("zone", name[-1]) for name in nodes),
            *(queue(name).parent(parent) if parent else queue(name) for name, parent in parents.items()),
            *(priority_class(*each) for each in CLASSES.items()),
        )

    def decide(self, now: float) -> Decisions:
        return cycle(self.cluster, self.policy, now, observer=self.turns)


def said(decisions: Decisions, in_order: bool) -> dict[str, Any]:
    """All that a cycle says, in values of no cluster; its events in their order, or sorted."""
    events = [(each.job.uid, each.type, each.reason, each.message) for each in all_events(decisions)]
    return {
        "binds": [(bind.task.key, bind.node) for bind in decisions.binds],
        "evictions": [(each.task.key, each.node, each.beneficiary, each.action) for each in decisions.evictions],
        "pipelined": [(each.task.key, each.node) for each in decisions.pipelined],
        "nominations": sorted((task.key, node) for task, node in decisions.nominations.items()),
        "groups": [(group.job.uid, group.phase, group.condition) for group in decisions.groups],
        "waiting": [(each.task.key, each.reason, each.message) for each in decisions.waiting],
        "events": events if in_order else sorted(events),
    }


Operation = Callable[[Cluster], None]


class Fate:
    """What happens next, drawn at random and made of both clusters."""

    def __init__(self, random: Random, parents: dict[str, str] = FLAT, nodes: Sequence[str] = NODES) -> None:
        self._random = random
        self._nodes = nodes
        self._parents = parents
        self._queues = [name for name in parents if name not in parents.values()]
        self._jobs = 0
        self._shapes = [random.random() for _ in range(5)]  #: of which many jobs are drawn alike
        self._are_varied = random.random() < 0.5  #: whether no two jobs are alike
        self._namespaces = random.choice([("default",), ("default", "one", "two"), tuple(f"space-{number}" for number in range(20))])

    def draw(self, living: Cluster) -> Operation:
        drawn = self._random.choice([*[self._gang] * 3, self._ends, self._node, self._queue, self._leaves, self._loops, self._nothing])
        return drawn(living)

    def _gang(self, living: Cluster) -> Operation:
        shape = self._random.random() if self._are_varied else self._random.choice(self._shapes)
        random, name = Random(shape), f"j{self._random.randrange(100):02}-{self._jobs:05}"
        self._jobs += 1
        size, gpu = random.randint(1, 4), random.choice([0, 1, 1, 2, 4])
        group = (
            podgroup(name, random.choice([size, size, 1])).queue(random.choice(self._queues)).phase(random.choice(["Pending", "Inqueue"]))
        )
        if random.random() < 0.3:
            group = group.priority_class(random.choice([*CLASSES]))
        if random.random() < 0.6:
            group = group.needs(**{"nvidia.com/gpu": gpu * size})
        if self._random.random() < 0.5:
            group = group.created(f"2025-12-31T00:00:{self._random.randrange(60):02}Z")
        if random.random() < 0.1:
            group = group.annotation("sla-waiting-time", "3s")
        group = group.annotation(ESTIMATE, f"{random.randint(1, 4)}s").annotation(USER, random.choice("xxxy"))
        members = [member.gpu(gpu) if gpu else member for member in pod(name).gang(name).times(size)]
        if random.random() < 0.2:
            members = [member.selector("zone", random.choice("0123456")) for member in members]
        if random.random() < 0.1:
            members = [member.tolerates("kept") for member in members]
        if self._are_varied:
            members = [member.cpu(f"{self._random.randint(10, 900)}m") for member in members]
        namespace = self._random.choice(self._namespaces)
        return _putting(*(each.having("metadata", "namespace", value=namespace).build() for each in (group, *members)))

    def _ends(self, living: Cluster) -> Operation:
        """A pod that runs is gone."""
        running = sorted(key for key, task in living.tasks.items() if task.status == status.RUNNING)
        return _removing("Pod", *self._random.sample(running, min(len(running), 2)))

    def _leaves(self, living: Cluster) -> Operation:
        """A job with all its pods, or a node."""
        if self._random.random() < 0.2:
            return _removing("Node", self._random.choice(self._nodes))
        uid = self._random.choice(sorted(living.jobs) or [""])
        pods = sorted(task.key for task in living.jobs[uid].tasks.values()) if uid else []
        return lambda made: (_removing("Pod", *pods)(made), _removing("PodGroup", uid)(made))[0]

    def _node(self, living: Cluster) -> Operation:
        random = self._random
        fresh = node(random.choice(self._nodes)).cpu(4).gpu(random.choice([2, 4, 6])).pods(6).label("zone", random.choice("0123456"))
        return _putting((fresh.taint("kept") if random.random() < 0.2 else fresh).build())

    def _queue(self, living: Cluster) -> Operation:
        name = self._random.choice([*self._parents])
        changed = queue(name).weight(self._random.randint(1, 3)).parent(self._parents[name])
        if self._random.random() < 0.3:
            changed = changed.deserves(**{"nvidia.com/gpu": self._random.randint(1, 6)})
        if self._random.random() < 0.3:
            changed = changed.capability(**{"nvidia.com/gpu": self._random.randint(2, 12)})
        return _putting(changed.build())

    def _loops(self, living: Cluster) -> Operation:
        """A job was evicted for another one again and again: from now on it waits for that one, for a time."""
        pair = [self._random.choice(sorted(living.jobs) or [""]) for _ in range(2)]
        entry = {EvictedFor(*pair, "preempt"): LastEviction(living.clock - self._random.choice([57, 0]), 0, came_back=True, rounds=2)}
        node = self._node(living)  # else the last decisions would hold

        def loop(made: Cluster) -> None:
            made.memory[PAST_EVICTIONS] = made.memory.get(PAST_EVICTIONS, {}) | entry
            node(made)

        return loop

    def _nothing(self, living: Cluster) -> Operation:
        return _putting()


def _putting(*items: Any) -> Operation:
    def put(made: Cluster) -> None:
        for item in items:
            made.put(*item)

    return put


def _removing(kind: str, *keys: str) -> Operation:
    def remove(made: Cluster) -> None:
        for key in keys:
            made.remove(kind, key)

    return remove


def live(seed: int, operations: int, configuration: str = CONFIGURATION, nodes: Sequence[str] = NODES) -> Counter[str]:
    """How many cycles decided what the one before did, without looking; how often nodes were looked for, with memory and without."""
    random = Random(seed)
    chosen = {
        "actions": ACTIONS,
        "second": ("drf", "binpack", f"drf{PAST}"),
        "shares": ("proportion", "capacity", f"capacity{PAST}"),
        "third": THIRD,
    }
    if configuration is IN_A_TREE:
        chosen |= {"actions": ("enqueue, allocate, backfill", *ACTIONS), "shares": ("capacity",)}
    if configuration is IN_ORDER:
        chosen |= {"backfill": ("none", "greedy", "easy", "conservative"), "order": ("shortest-first", "priority")}
    text = configuration.format(**{name: random.choice(among) for name, among in chosen.items()})
    policy = read_policy(text, PLUGINS)[0]
    parents = TREE if configuration is IN_A_TREE else FLAT
    kept, anew = Life(policy, parents, nodes), Life(replace(policy, shortcuts=False), parents, nodes)
    fate = Fate(random, parents, nodes)
    now, recalled, last = 1_767_225_600.0, 0, Decisions()
    in_order = PAST not in text  # where only past usage changes the order, it is computed anew at intervals
    for _ in range(operations):
        operation = fate.draw(kept.cluster)
        operation(kept.cluster)
        operation(anew.cluster)
        for _ in range(random.randint(1, 3)):
            now += random.choice([0.0, 0.5, 1.0])
            decided, expected = kept.decide(now), anew.decide(now)
            looked_at_each = in_order and not (decided.conclusion is None or decided.conclusion.at_rest.groups)
            assert said(decided, looked_at_each) == said(expected, looked_at_each), f"seed {seed}"
            recalled += decided is last
            last = decided
            advance(kept.cluster, decided, now)
            advance(anew.cluster, expected, now)
    kept.cluster.check()
    return Counter(recalled=recalled, kept=kept.turns.count, anew=anew.turns.count)


def test_cycles_that_remember_decide_as_those_that_do_not() -> None:
    counts = sum((live(seed, 30) for seed in range(times(3))), Counter[str]())
    assert counts["recalled"] > 15 and counts["kept"] < 0.75 * counts["anew"]


def test_so_do_those_of_a_line() -> None:
    counts = sum((live(seed, 60, IN_ORDER) for seed in range(times(3))), Counter[str]())
    assert counts["kept"] < counts["anew"]


def test_so_do_those_of_a_line_for_a_single_node() -> None:
    counts = sum((live(seed, 60, IN_ORDER, NODES[:1]) for seed in range(10)), Counter[str]())
    assert counts["kept"] < counts["anew"]


def test_so_do_those_of_a_tree_of_queues() -> None:
    counts = sum((live(seed, 30, IN_A_TREE) for seed in range(times(3))), Counter[str]())
    assert counts["kept"] < counts["anew"]


@pytest.mark.nightly
@pytest.mark.parametrize("seeds", [range(start, start + 100) for start in range(1000, 2000, 100)], ids=lambda seeds: f"from {seeds.start}")
@pytest.mark.parametrize("configuration", [CONFIGURATION, IN_ORDER, IN_A_TREE], ids=["in queues", "in order", "in a tree"])
def test_the_same_over_many_operations(seeds: range, configuration: str) -> None:
    for seed in seeds:
        live(seed, 100, configuration)
        live(seed, 100, configuration, NODES[:1])
