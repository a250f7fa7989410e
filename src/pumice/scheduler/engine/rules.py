"""Filters and scorers: the two kinds of rule by which a node is found for a task.

A rule first reads the task alone (`prepare`); None means that the rule has nothing to say about this task. It is then asked about
nodes, many at once. Its `reach` says what its answer for a node depends on, and so when it must be asked again.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from pumice.scheduler.engine.normalize_score import to_hundred
from pumice.scheduler.engine.view import Scores, View
from pumice.scheduler.model import Mask, NDArray, Nodes, Task, Template


class Reach(Enum):
    """What the answer of a rule depends on, besides the task's template."""

    STATIC = "the node's object"
    NODE = "the node's object and what stands on it"
    CLUSTER = "what stands anywhere"

    __hash__ = object.__hash__  # the usual one is slow, and reaches are keys of what is asked for each placement


class Reason(Struct, frozen=True):
    """Why a node was refused.

    `final`: no eviction would help (UnschedulableAndUnresolvable). `from_prefilter`: PreFilter excludes the node before any filter is
    asked. `fails`: the filter could say nothing about the node, which ends kube-scheduler's attempt; for Volcano it is a plain refusal.
    """

    text: str
    final: bool = False
    from_prefilter: bool = False
    fails: bool = False


class Refused(NamedTuple):
    """A mask of the nodes that are refused for one reason."""

    where: Mask
    reason: Reason


class Rejected(Struct, frozen=True):
    """The answer of `prepare` for a task that cannot be placed on any node, whatever the nodes."""

    reason: Reason


class Unscored(Exception):
    """Raised by a scorer that cannot answer. The task is then refused."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.text)
        self.reason = reason


class Rule:
    """What filters and scorers share."""

    name = ""
    reach = Reach.NODE
    reads_amounts = True  #: whether it reads how much the task requests; if not, tasks that differ only in that share its answers
    plannable = False  #: its answer is right for planned copies, too: of a node it reads only the view's columns

    def prepare(self, task: Task) -> Any:
        """The rule's state for this task; None if the rule has nothing to say about it; or (filters only) Rejected."""
        return task

    def key(self, task: Task) -> Hashable:
        """What the rule's answers depend on in the task besides its template; None for nothing."""
        return None

    def tells_apart(self, template: Template) -> bool:
        """Whether `key` may differ between tasks of this template, until a node object or another object changes. What it answers does not
        depend on amounts. A subclass with a `key` of its own answers anew."""
        return True


class Asking:
    """How rules are asked. An observer that measures rules uses a subclass of this."""

    def refuse(self, rule: Filter, state: Any, nodes: View) -> Sequence[Refused]:
        return rule.refuse(state, nodes)

    def refuses(self, rule: Filter, state: Any, table: Nodes, row: int) -> bool:
        return rule.refuses(state, table, row)

    def score(self, rule: Scorer, state: Any, nodes: View) -> Scores:
        return rule.score(state, nodes)

    def score_one(self, rule: Scorer, state: Any, table: Nodes, row: int) -> float:
        return rule.score_one(state, table, row)


PLAINLY = Asking()


class Filter(Rule):
    reports_all = False  #: whether all its reasons for a node are reported, not only the first

    def is_silent(self, state: Any) -> bool:
        """Whether the filter, with the cluster as it is now, refuses the task on no node, so that kube-scheduler's trials leave it out."""
        return False

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        """The nodes that may not take the task, by reason. If several filters refuse a node, the reason of the first one counts."""
        raise NotImplementedError

    def refuses(self, state: Any, table: Nodes, row: int) -> bool:
        """Whether `refuse` names one node, about which it is asked alone."""
        return any(refused.where[0] for refused in self.refuse(state, View(table, slice(row, row + 1))))


class Bound(NamedTuple):
    """An upper bound of the score of each node, and [k, n] the numbers that were rounded down for it, with `SLACK` added."""

    most: NDArray[np.float32]
    rounded: NDArray[np.float32]


class Bounds:
    """Computes the bounds of one scorer, for any task."""

    def of(self, template: Template) -> Bound | None:
        """The bound for tasks of this template; None if their scores depend on more than the bound can know."""
        raise NotImplementedError

    def update(self, rows: int | slice = slice(None)) -> None:
        """Take in the present state of the nodes in these rows."""
        raise NotImplementedError


class Scorer(Rule):
    weight = 1.0

    def score(self, state: Any, nodes: View) -> Scores:
        """The score of each node, the higher the better."""
        raise NotImplementedError

    def score_one(self, state: Any, table: Nodes, row: int) -> float:
        """The score of one node: the same number as by `score`, which for a single node takes as many calls of NumPy as for all."""
        return float(self.score(state, View(table, slice(row, row + 1)))[0])

    def bounds(self, table: Nodes) -> Bounds | None:
        """Upper bounds of the scores, for a scorer whose scores are whole numbers that follow from the node's amounts and the task's
        template; None for other scorers."""
        return None

    def is_constant(self, state: Any, candidates: Mask) -> bool:
        """Whether these rows have equal scores, and keep them wherever among the rows copies of the task are placed."""
        return False

    def normalize(self, scores: Scores) -> Scores:
        """The scores of the candidates, brought to scale. Called if `normalizes`."""
        return to_hundred(scores)

    normalizes = False
    relative = False  #: a node's score depends on which nodes are the other candidates: the scorer sees only candidates
