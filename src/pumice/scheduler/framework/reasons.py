"""Why a task has no node: counts per reason, and the sentence made of them."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from pumice.scheduler.engine.evaluation import Evaluation
from pumice.scheduler.engine.rules import Reason
from pumice.scheduler.engine.view import View
from pumice.scheduler.model.resources import EPSILON, Mask


class Shortage(NamedTuple):
    """What a queue, or the cluster, has not for a task or a job, in one resource."""

    queue: str  #: empty for the cluster
    column: int
    asked: float
    held: float  #: or promised
    allowed: float

    @property
    def short(self) -> float:
        return self.asked + self.held - self.allowed


class FitErrors:
    """The refusals of one task's last try. `final` marks rows that no eviction would open."""

    def __init__(self, nodes: int, counts: Counter[str], final: Mask) -> None:
        self.nodes = nodes
        self.counts = counts
        self.final = final

    def __str__(self) -> str:
        reasons = sorted(f"{count} {text}" for text, count in self.counts.items())
        return f"0/{self.nodes} nodes are unavailable: {', '.join(reasons)}." if reasons else "all nodes are unavailable"


def everywhere(evaluation: Evaluation, reason: Reason) -> FitErrors:
    """One reason for all nodes."""
    n = evaluation.table.count
    return FitErrors(n, Counter({reason.text: n}), np.full(len(evaluation.table), reason.final))


def explain(evaluation: Evaluation, among: Mask | None = None) -> FitErrors:
    """What refuses the task on each node: first its resources, then the filters in order until a reason that is final."""
    if evaluation.rejected is not None:
        return everywhere(evaluation, evaluation.rejected)
    table, template = evaluation.table, evaluation.template
    counts: Counter[str] = Counter()
    active = table.alive.copy() if among is None else table.alive & among
    nodes = int(active.sum())
    future = View(table).future_idle
    for column, amount in zip(template.columns, template.amounts, strict=True):
        short = active & ~(future[column] > amount - EPSILON)
        counts[f"Insufficient {table.dimensions.names[column]}"] += int(short.sum())
        active &= ~short
    final = np.zeros(len(table), bool)
    for refused in evaluation.refusals():
        hits = active & refused.where
        counts[refused.reason.text] += int(hits.sum())
        if refused.reason.final:
            active &= ~hits
            final |= hits
    return FitErrors(nodes, +counts, final)
