"""Why a task has no node: the number of nodes per reason, and the sentences made of these numbers, Volcano's and kube-scheduler's."""

from collections import Counter

import numpy as np
from msgspec import Struct

from pumice.scheduler.engine import Evaluation, Reason
from pumice.scheduler.model import EPSILON, Mask


class Shortage(Struct, frozen=True):
    """The amount of one resource that a queue, or the cluster, lacks for a task or a job."""

    queue: str  #: empty for the cluster
    column: int
    asked: float
    held: float  #: or promised
    allowed: float

    @property
    def short(self) -> float:
        return self.asked + self.held - self.allowed


class FitErrors:
    """Why nodes refused one task when it was last tried. `final` marks the rows where no eviction would help."""

    def __init__(self, nodes: int, counts: Counter[str], final: Mask) -> None:
        self.nodes = nodes
        self.counts = counts
        self.final = final

    def __str__(self) -> str:
        reasons = sorted(f"{count} {text}" for text, count in self.counts.items())
        return f"0/{self.nodes} nodes are unavailable: {', '.join(reasons)}." if reasons else "all nodes are unavailable"


def kube_sentence(nodes: int, counts: Counter[str]) -> str:
    """The message of kube-scheduler, as `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.`"""
    reasons = sorted(f"{count} {text}" for text, count in counts.items() if count)
    return f"0/{nodes} nodes are available: {', '.join(reasons)}." if reasons else f"0/{nodes} nodes are available."


def everywhere(evaluation: Evaluation, reason: Reason) -> FitErrors:
    """The errors of a task that all nodes refuse for the same reason."""
    n = evaluation.table.count
    return FitErrors(n, Counter({reason.text: n}), np.full(len(evaluation.table), reason.final))


def explain(evaluation: Evaluation, among: Mask | None = None) -> FitErrors:
    """Why each node (of those in `among`) refuses the task: first lack of resources, then the filters in order until a final reason."""
    if evaluation.rejected is not None:
        return everywhere(evaluation, evaluation.rejected)
    table, template = evaluation.table, evaluation.template
    counts: Counter[str] = Counter()
    active = table.alive.copy() if among is None else table.alive & among
    nodes = left = int(np.count_nonzero(active))
    for column, amount in template.needs:
        active &= table.future_idle_in(column) > amount - EPSILON
        before, left = left, int(np.count_nonzero(active))
        counts[f"Insufficient {table.dimensions.names[column]}"] += before - left
    final = np.zeros(len(table), bool)
    for refused in evaluation.refusals() if left else ():
        hits = active & refused.where
        counts[refused.reason.text] += int(np.count_nonzero(hits))
        if refused.reason.final:
            active &= ~hits
            final |= hits
    return FitErrors(nodes, +counts, final)
