"""Indexes of the pods on each node, for rules to read: their ports, labels, affinity terms, disks, devices.

`Cluster.index(Ports)` counts all pods at the first call, and calls the index for every move from then on; an index that is never read
costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pumice.scheduler.model.task import Task

if TYPE_CHECKING:
    from pumice.scheduler.model.cluster import Cluster
    from pumice.scheduler.model.job import Job


class Index:
    """The base class of all indexes. A cluster has one index of each class. `kinds`: the kinds that it reads besides pods and nodes."""

    kinds: tuple[str, ...] = ()

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def begin(self) -> None:
        """Reset the index to a cluster without pods."""

    def recount(self) -> None:
        self.begin()
        for task in self.cluster.existing():
            self.change(task.node, task, 1)

    def change(self, row: int, task: Task, sign: int) -> None:
        """Take in that a pod came to a row (+1) or left it (-1), as filters see it. The task has its labels and status of that row."""

    def reread(self, job: Job) -> None:
        """Take in that the PodGroup of a job with tasks was added or changed."""

    def refresh(self) -> None:
        """Take in what else has changed. Called whenever `Cluster.index` returns the index."""

    def agrees(self, recount: Self) -> bool:
        """Whether an index that was counted just now has the same content. For tests."""
        return True

    def versions(self, *kinds: str) -> tuple[int, ...]:
        """Version numbers, which change when nodes or objects of these kinds (by default the index's own `kinds`) change."""
        cluster = self.cluster
        return cluster.nodes.static_version, len(cluster.nodes), *(cluster.versions.get(kind, 0) for kind in kinds or self.kinds)
