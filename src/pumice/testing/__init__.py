"""Helpers to test your own plugins: builders of objects, and a cluster to schedule them in.

from pumice.testing import cluster, node, pod, podgroup, schedule

made = cluster(node("a").cpu(4), node("b").cpu(8), podgroup("train", 2), *pod("train").cpu(2).gang("train").times(2))
assert schedule(made, "enqueue, allocate", "gang", MyPlugin).binds == {"default/train-0": "b", "default/train-1": "b"}
"""

from pumice.testing.builders import (
    Builder,
    NodeBuilder,
    ObjectBuilder,
    PodBuilder,
    PodGroupBuilder,
    QueueBuilder,
    hypernode,
    manifest,
    node,
    pod,
    podgroup,
    priority_class,
    queue,
)
from pumice.testing.scene import NOW, Outcome, cluster, refusals, schedule, scores, session, task_of

__all__ = [
    "NOW",
    "Builder",
    "NodeBuilder",
    "ObjectBuilder",
    "Outcome",
    "PodBuilder",
    "PodGroupBuilder",
    "QueueBuilder",
    "cluster",
    "hypernode",
    "manifest",
    "node",
    "pod",
    "podgroup",
    "priority_class",
    "queue",
    "refusals",
    "schedule",
    "scores",
    "session",
    "task_of",
]
