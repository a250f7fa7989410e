"""Hierarchical dominant resource fairness: shares of queues in a tree, as drf compares them with the switch enableHierarchy.

A queue's annotations give its path from the root and a weight for each step. Jobs hang below the last step. A node's share comes
from what its children hold, those that can still use more scaled down to the smallest of their shares, so that one child cannot
use up what its hungry siblings are due. A node is saturated if none of its children can use more of what is left.

Everything is worked out when first asked for and again only on the paths of jobs that changed.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pumice.api.annotations import HIERARCHY, HIERARCHY_WEIGHTS
from pumice.model.job import COMPLETED, Job
from pumice.model.queue import Queue
from pumice.model.resources import EPSILON, PODS, Mask, Vector, dominant_share


class Node:
    """A step of a path. What its jobs hold and want is in two tables, a row per job."""

    def __init__(self, parent: Node | None, weight: float, width: int) -> None:
        self.parent = parent
        self.weight = weight
        self.children: dict[str, Node] = {}
        self.jobs: dict[str, int] = {}  #: uid to row
        self.job_held: NDArray[np.float64] = np.zeros((0, width))
        self.job_request: NDArray[np.float64] = np.zeros((0, width))
        self.held: Vector = np.zeros(width)  #: of all below, scaled
        self.share = 0.0
        self.saturated = False
        self.stale = True

    def hang(self, jobs: Iterable[Job]) -> None:
        """Add jobs below this node."""
        listed = list(jobs)
        self.jobs |= {job.uid: row for row, job in enumerate(listed, len(self.jobs))}
        self.job_held = np.vstack([self.job_held, *(job.held for job in listed)])
        self.job_request = np.vstack([self.job_request, *(job.held + job.asked for job in listed)])

    def spoil(self) -> None:
        """Have it, and what is above, worked out again."""
        node: Node | None = self
        while node is not None:
            node.stale = True
            node = node.parent

    def settle(self, total: Vector, demanding: Mask) -> None:
        """Work out share and saturation, from the bottom. `demanding`: dimensions of which the cluster has some left."""
        if not self.stale:
            return
        for child in self.children.values():
            child.settle(total, demanding)
        children = list(self.children.values())
        held = np.vstack([self.job_held, *(child.held for child in children)])
        shares = np.array([*_shares(self.job_held, total), *(child.share for child in children)])
        saturated = np.array([*_saturated(self.job_held, self.job_request, demanding), *(child.saturated for child in children)], bool)
        self.held = _together(held, shares, saturated)
        self.share = dominant_share(self.held, total)
        self.saturated = bool(len(saturated)) and bool(saturated.all())
        self.stale = False

    @property
    def rank(self) -> tuple[bool, float]:
        """By which siblings are served."""
        return self.saturated, self.share / self.weight


def _shares(held: NDArray[np.float64], total: Vector) -> Vector:
    """Dominant share per row."""
    has = total >= EPSILON
    shares: Vector = (held[:, has] / total[has]).max(axis=1, initial=0.0)
    return shares


def _saturated(held: NDArray[np.float64], request: NDArray[np.float64], demanding: Mask) -> Mask:
    """Per row: whether it holds all it asks for of something, or asks for something of which nothing is left."""
    mask: Mask = ((held >= EPSILON) & (request != 0) & ((held >= request) | ~demanding)).any(axis=1)
    return mask


def _together(held: NDArray[np.float64], shares: Vector, saturated: Mask) -> Vector:
    """What siblings hold, the hungry ones scaled to the least of their shares."""
    hungry = (np.delete(held, PODS, axis=1) >= EPSILON).any(axis=1) & ~saturated
    least = min(1.0, float(shares[hungry].min())) if hungry.any() else 1.0
    counts = shares != 0
    scale = np.where(saturated, 1.0, np.divide(least, shares, out=np.zeros(len(shares)), where=counts)) * counts
    together: Vector = (held * scale[:, None]).sum(axis=0)
    return together


class Tree:
    """All queues with jobs, by their paths."""

    def __init__(self, queues: Iterable[Queue], total: Vector) -> None:
        self._total = total
        self._held: Vector = np.zeros_like(total)  #: by all jobs
        self._demanding: Mask = np.ones(len(total), bool)
        self.root = Node(None, 1.0, len(total))
        self._paths: dict[str, list[Node]] = {}
        for queue in queues:
            if queue.jobs:
                path = self._paths[queue.name] = self._grow(queue)
                path[-1].hang(job for job in queue.jobs.values() if job.phase != COMPLETED or (job.held + job.asked).any())
                self._held += queue.held

    def _grow(self, queue: Queue) -> list[Node]:
        """The nodes of a queue's path, made where they are missing."""
        steps = queue.annotations.get(HIERARCHY, "").split("/")[1:]
        weights = queue.annotations.get(HIERARCHY_WEIGHTS, "").split("/")[1:]
        path = [self.root]
        for number, step in enumerate(steps):
            weight = _weight(weights[number]) if number < len(weights) else 1.0
            path.append(path[-1].children.setdefault(step, Node(path[-1], weight, len(self._total))))
        return path

    def compare(self, left: Queue, right: Queue) -> int:
        """Where the paths part: who can use more, then who has the smaller share by weight. 0 if one ends before."""
        self._settle()
        for one, other in zip(self._paths[left.name], self._paths[right.name], strict=False):
            if one.rank != other.rank:
                return -1 if one.rank < other.rank else 1
        return 0

    def _settle(self) -> None:
        demanding = self._held < self._total
        if (demanding != self._demanding).any():
            self._demanding = demanding
            self._spoil_all(self.root)
        self.root.settle(self._total, demanding)

    def _spoil_all(self, node: Node) -> None:
        node.stale = True
        for child in node.children.values():
            self._spoil_all(child)

    def shift(self, job: Job, amount: Vector) -> None:
        """A job holds so much more, or less."""
        assert job.queue is not None
        node = self._paths[job.queue.name][-1]
        node.job_held[node.jobs[job.uid]] += amount
        self._held += amount
        node.spoil()

    def keep_taken(self, amount: Vector) -> None:
        """What a job gave up counts as held by somebody, as far as the whole cluster goes."""
        self._held += amount


def _weight(text: str) -> float:
    try:
        return max(float(text), 1.0)
    except ValueError:
        return 1.0
