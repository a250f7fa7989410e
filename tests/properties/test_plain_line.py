"""Jobs of one pod that wait in a line are served as by sessions that compute everything anew, and leave the same state behind.

Two equal clusters live through the same random operations; the cycles of one are decided without shortcuts.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from msgspec.structs import replace

from pumice.api.annotations import ESTIMATE
from pumice.inputs.cluster_from_files import advance
from pumice.scheduler.config.volcano_conf import read_policy
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.placement.line import PROMISES
from pumice.scheduler.placement.waiters import MEMORY
from pumice.scheduler.registry import PLUGINS
from pumice.testing import cluster, node, pod, podgroup, priority_class, queue
from tests.properties.test_newcomers import Fate, Operation, _putting, state_of
from tests.properties.test_waiting import said
from tests.samples import times

CONFIGURATION = """\
actions: "{actions}"
configurations:
- name: in-order
  arguments: {{backfill: {backfill}, defaultEstimate: {estimate}}}
tiers:
- plugins:
  - name: gang
  - name: {order}
  - name: {filters}
"""
CHOICES = {
    "actions": ("in-order", "in-order", "in-order, backfill"),
    "backfill": ("none", "easy", "easy", "conservative", "conservative", "greedy"),
    "estimate": ("0s", "5s"),
    "order": ("shortest-first", "priority", "nodeorder"),
    "filters": ("predicates", "binpack"),
}
NODES = 3


class InLine(Fate):
    """Mostly a job of one pod comes that joins the line, or one that runs ends. Now and then comes what is not that plain."""

    def draw(self, living: Cluster) -> Operation:
        many = len(living.waiting) > 12
        kinds = [self._joins, self._over, self._leaves, self._ranks, self._job, self._ends, self._queue, self._node, self._other]
        drawn = self._random.choices(kinds, [20 if many else 60, 70 if many else 40, 4, 1, 1, 2, 1, 1, 0.5])[0]
        return drawn(living)

    def _joins(self, living: Cluster) -> Operation:
        random, name = self._random, self._name()
        group = podgroup(name).queue(random.choice(("qa", "qb"))).phase(random.choice(["Pending", "Inqueue"]))
        group = group.created(f"2025-12-31T00:00:{random.randrange(60):02}Z")
        if random.random() < 0.9:
            group = group.annotation(ESTIMATE, f"{random.choice((1, 2, 5, 20, 100))}s")
        if random.random() < 0.3:
            group = group.priority_class(random.choice(("high", "low")))
        member = pod(name).gang(name).cpu(f"{random.choice(self._amounts) * random.choice((1, 1, 3))}m")
        if random.random() < 0.2:
            member = member.gpu(1)
        if random.random() < 0.1:
            member = member.selector("zone", random.choice("012"))
        return _putting(*(each.build() for each in (group, member)))

    def _over(self, living: Cluster) -> Operation:
        """A job that has run is over."""
        running = sorted(uid for uid, job in living.jobs.items() if job.tasks and not job.pending)
        uid = self._random.choice(running or [""])
        return lambda made: made.remove_job(made.jobs[uid]) if uid else None

    def _leaves(self, living: Cluster) -> Operation:
        """A job that waits is gone, or waits with another estimate or priority."""
        uid, random = self._random.choice(sorted(living.waiting) or [""]), self._random
        if not uid:
            return self._joins(living)
        if random.random() < 0.5:
            return lambda made: made.remove_job(made.jobs[uid])
        name = living.jobs[uid].name
        return _putting(podgroup(name).queue("qa").phase("Inqueue").annotation(ESTIMATE, f"{random.randint(1, 9)}s").build())

    def _ranks(self, living: Cluster) -> Operation:
        return _putting(priority_class(self._random.choice(("high", "low")), self._random.randint(1, 9)).build())


def live(seed: int, operations: int) -> Counter[str]:
    """How many cycles served a line the short way, in how many of these jobs started, and after how many all promises were settled."""
    random = Random(seed)
    policy = read_policy(CONFIGURATION.format(**{name: random.choice(among) for name, among in CHOICES.items()}), PLUGINS)[0]
    first = [*(node(f"n{number}").cpu(4).gpu(2).pods(9).label("zone", str(number)) for number in range(random.choice((1, NODES))))]
    kept, anew = (cluster(*first, *map(queue, ("qa", "qb", "default")), priority_class("high", 1000)) for _ in range(2))
    fate, now, counts = InLine(random), 1_767_225_600.0, Counter[str]()
    for _ in range(operations):
        for _ in range(random.choice([1, 1, 1, 2, 4])):
            operation = fate.draw(kept)
            operation(kept)
            operation(anew)
        now += random.choice([0.0, 0.5, 1.0, 10.0])
        decided, expected = cycle(kept, policy, now), cycle(anew, replace(policy, shortcuts=False), now)
        in_order = decided.conclusion is not None and not decided.conclusion.at_rest.groups
        assert said(decided, in_order) == said(expected, in_order), f"seed {seed}"
        assert decided.again_at == expected.again_at and state_of(kept) == state_of(anew), f"seed {seed}"
        assert kept.memory.get(PROMISES) == anew.memory.get(PROMISES), f"seed {seed}"
        if (line := kept.memory.get(MEMORY)) is not None and line.cycle == kept.cycles and kept.cycles:
            counts["short"] += 1
            counts["starts"] += bool(decided.binds)
            counts["settled"] += line.settled >= 0
        advance(kept, decided, now)
        advance(anew, expected, now)
    kept.check()
    return counts


def test_lines_are_served_as_by_sessions() -> None:
    counts = sum((live(seed, 60) for seed in range(times(8))), Counter[str]())
    assert counts["short"] > 60
    assert counts["starts"] > 20
    assert counts["settled"] > 5


@pytest.mark.nightly
@pytest.mark.parametrize("seeds", [range(start, start + 100) for start in range(1000, 2000, 100)], ids=lambda seeds: f"from {seeds.start}")
def test_so_are_many_lines(seeds: range) -> None:
    for seed in seeds:
        live(seed, 200)
