"""The rules of an extender service: a filter, node by node; a scorer of all nodes at once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pumice.scheduler.engine import Filter, Reach, Reason, Refused, Scorer, Scores, View
from pumice.scheduler.model import Task
from pumice.scheduler.plugins.volcano.extender.client import ServiceFailure

if TYPE_CHECKING:
    from pumice.scheduler.plugins.volcano.extender import ExtenderPlugin
from pumice.scheduler.plugins.volcano.extender.request_bodies import node_body, task_body


class _AskedAbout:
    """The base of the rules that ask the service: an answer may depend on anything about the task."""

    name = "extender"

    def __init__(self, plugin: ExtenderPlugin, verb: str) -> None:
        self._plugin = plugin
        self._verb = verb

    def key(self, task: Task) -> Hashable:
        return self._plugin.kin(task)


class NodeAnswers:
    """The answers about each node for one task, kept until something on the node changes."""

    def __init__(self, plugin: ExtenderPlugin, verb: str, task: Task) -> None:
        self._plugin, self._verb, self._task = plugin, verb, task
        self._log = plugin.session.cluster.log
        self._position = len(self._log)
        self._reasons: dict[int, Reason | None] = {}

    def refresh(self) -> None:
        for change in self._log[self._position :]:
            self._reasons.pop(change.row, None)
        self._position = len(self._log)

    def of(self, row: int) -> Reason | None:
        if row not in self._reasons:
            self._reasons[row] = self._ask(row)
        return self._reasons[row]

    def _ask(self, row: int) -> Reason | None:
        plugin, nodes = self._plugin, self._plugin.session.nodes
        try:
            return plugin.service.verdict(self._verb, {"task": task_body(self._task, nodes.dimensions), "node": node_body(nodes, row)})
        except ServiceFailure as failure:
            return None if plugin.args.ignorable else Reason(f"extender failed: {failure}", final=True)


class AskedFilter(_AskedAbout, Filter):
    """The filter that asks the extender's predicate, node by node."""

    reach = Reach.NODE

    def prepare(self, task: Task) -> Any:
        return NodeAnswers(self._plugin, self._verb, task) if self._plugin.interested(task) else None

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        state.refresh()
        refused: dict[Reason, list[int]] = {}
        for position, row in enumerate(nodes.row_numbers.tolist()):
            if nodes.table.alive[row] and (reason := state.of(row)) is not None:
                refused.setdefault(reason, []).append(position)
        return [_at(nodes, positions, reason) for reason, positions in refused.items()]


def _at(nodes: View, positions: list[int], reason: Reason) -> Refused:
    where = nodes.nothing()
    where[positions] = True
    return Refused(where, reason)


class Ratings:
    """The extender's scores of all nodes for one task, until anything changes. `failure`: why there are no scores; else empty."""

    def __init__(self, plugin: ExtenderPlugin, verb: str, task: Task) -> None:
        self._plugin, self._verb, self._task = plugin, verb, task
        self._position = -1
        self.scores: Scores = np.zeros(0)
        self.failure = ""

    def refresh(self) -> Ratings:
        log = self._plugin.session.cluster.log
        if self._position != len(log):
            self._position = len(log)
            self._ask()
        return self

    def _ask(self) -> None:
        nodes = self._plugin.session.nodes
        self.scores, self.failure = np.zeros(len(nodes)), ""
        body = {"task": task_body(self._task, nodes.dimensions), "nodes": [node_body(nodes, row) for row in nodes]}
        try:
            for node, score in self._plugin.service.scores(self._verb, body).items():
                if node in nodes.rows:
                    self.scores[nodes.rows[node]] = score
        except ServiceFailure as failure:
            self.failure = str(failure)


class AskedScorer(_AskedAbout, Scorer):
    """The scorer that asks the extender to rate all nodes."""

    reach = Reach.CLUSTER

    def prepare(self, task: Task) -> Any:
        return self._plugin.ratings(task, self._verb)

    def score(self, state: Any, nodes: View) -> Scores:
        return np.asarray(nodes.of(state.refresh().scores), float)


class AskedFailure(_AskedAbout, Filter):
    """Refuses all nodes if an extender that is not ignorable cannot rate them: there is no best node, and the task is not placed."""

    reach = Reach.CLUSTER

    def prepare(self, task: Task) -> Any:
        return self._plugin.ratings(task, self._verb)

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        failure = state.refresh().failure
        return [Refused(~nodes.nothing(), Reason(f"extender failed: {failure}", final=True))] if failure else []
