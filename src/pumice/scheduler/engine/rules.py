"""Filters and scorers: the two kinds of rule by which a node is found for a task.

A rule first looks at the task alone (`prepare`); None means that it has nothing to say about this task. It is then asked about
nodes, many at once. Its `reach` says what its answer for a node depends on, and so when it must be asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import Struct

from pumice.scheduler.engine.view import Numbers, Scores, View
from pumice.scheduler.model.nodes import Nodes
from pumice.scheduler.model.resources import Mask
from pumice.scheduler.model.task import Task
from pumice.scheduler.model.template import Template

if TYPE_CHECKING:
    from pumice.scheduler.engine.bounds import Bounds


MAX_SCORE = 100.0  #: the best that a node gets of one scorer, before its weight


class Reach(Enum):
    """What an answer depends on, besides the task's template."""

    STATIC = "the node's object"
    NODE = "the node's object and what stands on it"
    CLUSTER = "what stands anywhere"


class Reason(Struct, frozen=True):
    """Why a node was refused.

    `final`: no eviction would help (UnschedulableAndUnresolvable). `from_prefilter`: it is out before any filter is asked. `fails`: nothing
    can be said of the node, which ends kube-scheduler's attempt; to Volcano it is a refusal like any other.
    """

    text: str
    final: bool = False
    from_prefilter: bool = False
    fails: bool = False


class Refused(NamedTuple):
    """Nodes refused for one reason."""

    where: Mask
    reason: Reason


class Rejected(Struct, frozen=True):
    """The task cannot be placed anywhere, whatever the nodes."""

    reason: Reason


class Unscored(Exception):
    """Raised by a scorer that could not answer. The task is refused."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.text)
        self.reason = reason


class Rule:
    """What filters and scorers share."""

    name = ""
    reach = Reach.NODE
    reads_amounts = True  #: whether it matters how much the task asks for; if not, tasks that differ in that alone share its answers
    plannable = False  #: its answer is right for copies in thought, too: it reads nothing of a node but the view's columns

    def prepare(self, task: Task) -> Any:
        """State for this task, None to stay out of it, or (filters only) Rejected."""
        return task

    def key(self, task: Task) -> Hashable:
        """What of the task its answers depend on besides the template; None for nothing."""
        return None


class Asking:
    """How rules are asked; who measures them asks in his own way."""

    def refuse(self, rule: Filter, state: Any, nodes: View) -> Sequence[Refused]:
        return rule.refuse(state, nodes)

    def score(self, rule: Scorer, state: Any, nodes: View) -> Scores:
        return rule.score(state, nodes)


PLAINLY = Asking()


class Filter(Rule):
    reports_all = False  #: all its reasons count for a node, not only the first

    def is_silent(self, state: Any) -> bool:
        """Whether, as the cluster is now, it has nothing to say of the task on any node, so that kube-scheduler leaves it out of trials."""
        return False

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        """The nodes that may not take the task. Of several filters the first one's word counts for a node."""
        raise NotImplementedError


class Scorer(Rule):
    weight = 1.0

    def score(self, state: Any, nodes: View) -> Scores:
        """A number per node, the higher the better."""
        raise NotImplementedError

    def bounds(self, table: Nodes) -> Bounds | None:
        """What it scores at most; for one whose scores are whole numbers, and follow from the node's amounts and the task's template."""
        return None

    def is_constant(self, state: Any, candidates: Mask) -> bool:
        """Whether these rows score alike and will go on doing so, wherever among them copies of the task are placed."""
        return False

    def normalize(self, scores: Scores) -> Scores:
        """The scores of the candidates, brought to scale. Asked if `normalizes`."""
        raise NotImplementedError

    normalizes = False
    relative = False  #: a node's score depends on who the other candidates are: it is given a view of them alone


def weighted(scores: Numbers, weight: float) -> Numbers:
    """Times a weight, which as a rule is 1."""
    return scores if weight == 1 else scores * weight


# Bringing scores to 0..100 as most of kube-scheduler's scorers do.


def to_hundred(scores: Scores, *, reverse: bool = False) -> Scores:
    """Scale by the maximum, truncating; `reverse` turns many into few. All zero stays zero (reversed: all 100)."""
    greatest = scores.max(initial=0.0)
    if greatest == 0:
        return np.full_like(scores, MAX_SCORE) if reverse else scores
    scaled: Scores = np.floor(scores * MAX_SCORE / greatest)
    return MAX_SCORE - scaled if reverse else scaled


# How full nodes would be in what a pod asks for, each resource by its weight.


class ScorePart(NamedTuple):
    """One requested resource in a score: how it weighs, and whether room left counts instead of room used."""

    column: int
    amount: float
    weight: float
    least: bool = False


def parts_of(template: Template, weigh: Callable[[int], tuple[float, bool] | None]) -> list[ScorePart]:
    """The parts of a request that count, by a function from column to weight and kind."""
    amounts = zip(template.columns.tolist(), template.amounts.tolist(), strict=True)
    return [ScorePart(column, amount, *found) for column, amount in amounts if (found := weigh(column)) is not None]


def weighted_mean(parts: Sequence[ScorePart], nodes: View) -> Scores:
    """0..1: how full (or empty) a node would be in what is asked for, by weight; 0 if it would overflow in any of it."""
    total, overflow, weights = np.zeros(len(nodes)), nodes.nothing(), 0.0
    for column, amount, weight, least in parts:
        weights += weight
        room = nodes.allocatable[column]
        full = nodes.used[column] + amount
        if weight:
            overflow |= (full > room) & (room > 0)
            total += np.divide((room - full if least else full) * weight, room, out=np.zeros(len(nodes)), where=room > 0)
    return np.where(overflow, 0.0, total / weights) if weights else total
