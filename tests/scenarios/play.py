"""A line language for stories.

    nodes a b       cpu=2 gpu=1          nodes come
    gone a                               a node goes
    class high 1000
    queue q         weight=2 deserved=4  (deserved in CPUs)
    job train       tasks=3 min=3 cpu=2 queue=q priority=high     a PodGroup and its pods
    finish train                         its pods succeed
    delete train-0                       a pod is deleted
    actions enqueue, allocate, preempt
    cycle           train: Running, 3 bound, 0 evicted, "needs"; other: Inqueue

Before each cycle what the last one decided has happened: bound pods run, evicted ones are gone. `N bound` counts pods that
hold a node, `N evicted` those that the cycle evicted, `N waiting` pipelined ones; a text in quotes is part of some pod's reason.
"""

from __future__ import annotations

import re
from typing import Any

from pumice.extensions import plugins
from pumice.inputs.cluster_from_files import advance
from pumice.scheduler.config.volcano_conf import read_policy
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.testing import cluster, node, pod, podgroup, priority_class, queue

TIERS = """\
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: SHARES}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: nodeorder}]
"""


class Story:
    def __init__(self) -> None:
        self.cluster: Cluster = cluster()
        self.actions = "enqueue, allocate, backfill"
        self.shares = "proportion"
        self.now = 1_767_225_600.0
        self.decided = Decisions()

    # -- what may happen

    def nodes(self, names: list[str], cpu: str = "4", gpu: str = "0", pods: str = "110") -> None:
        for name in names:
            builder = node(name).cpu(int(cpu)).memory("64Gi").pods(int(pods))
            self.cluster.put(*(builder.gpu(int(gpu)) if int(gpu) else builder).build())

    def gone(self, names: list[str]) -> None:
        for name in names:
            for task in [task for task in self.cluster.tasks.values() if task.node_name == name]:
                self.cluster.remove("Pod", task.key)
            self.cluster.remove("Node", name)

    def queue(self, names: list[str], weight: str = "1", deserved: str = "") -> None:
        for name in names:
            builder = queue(name).weight(int(weight))
            self.cluster.put(*(builder.deserves(cpu=int(deserved)) if deserved else builder).build())
            self.shares = "capacity" if deserved else self.shares

    def job(self, names: list[str], tasks: str = "1", min: str = "", cpu: str = "1", queue: str = "default", priority: str = "") -> None:
        for name in names:
            born = f"2026-01-01T00:{len(self.cluster.jobs) // 60:02d}:{len(self.cluster.jobs) % 60:02d}Z"
            group = podgroup(name, int(min or tasks)).queue(queue).created(born)
            self.cluster.put(*(group.priority_class(priority) if priority else group).build())
            for builder in pod(name).cpu(int(cpu)).gang(name).created(born).times(int(tasks)):
                self.cluster.put(*builder.build())

    def finish(self, names: list[str]) -> None:
        for name in names:
            for task in list(self.cluster.jobs[f"default/{name}"].tasks.values()):
                self.cluster.move(task, status.SUCCEEDED, -1)

    def delete(self, names: list[str]) -> None:
        for name in names:
            self.cluster.remove("Pod", f"default/{name}")

    def cycle(self, expected: str) -> None:
        advance(self.cluster, self.decided, self.now)
        self.now += 1
        text = f'actions: "{self.actions}"\n' + TIERS.replace("SHARES", self.shares)
        self.decided = cycle(self.cluster, read_policy(text, plugins())[0], self.now)
        self.cluster.check()
        for part in filter(None, (part.strip() for part in expected.split(";"))):
            name, _, claims = part.partition(":")
            self.expect(name.strip(), claims)

    # -- what is expected

    def expect(self, name: str, claims: str) -> None:
        job = self.cluster.jobs[f"default/{name}"]
        messages = [waiting.message for waiting in self.decided.waiting if waiting.task.job is job]
        counts = {
            "bound": job.count(status.ALLOCATED_ALL),
            "evicted": sum(eviction.task.job is job for eviction in self.decided.evictions),
            "waiting": sum(place.task.job is job for place in self.decided.pipelined),
        }
        for quoted in re.findall(r'"([^"]*)"', claims):
            assert any(quoted in message for message in messages), f"{name}: {quoted!r} is in none of {messages}"
        for claim in filter(None, (claim.strip() for claim in re.sub(r'"[^"]*"', "", claims).split(","))):
            number, _, what = claim.partition(" ")
            if what:
                assert counts[what] == int(number), f"{name}: {counts[what]} {what}, not {number}"
            else:
                assert job.phase == claim, f"{name} is {job.phase}, not {claim}"


def play(text: str) -> None:
    """Act a story out, line by line."""
    story = Story()
    for line in filter(None, (line.strip() for line in text.splitlines())):
        word, _, rest = line.partition(" ")
        if word == "cycle":
            story.cycle(rest)
        elif word == "actions":
            story.actions = rest.strip()
        elif word == "class":
            name, value = rest.split()
            story.cluster.put(*priority_class(name, int(value)).build())
        else:
            words = rest.split()
            options: dict[str, Any] = dict(part.split("=") for part in words if "=" in part)
            getattr(story, word)([part for part in words if "=" not in part], **options)
