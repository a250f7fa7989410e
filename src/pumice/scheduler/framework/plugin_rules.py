"""The filters and scorers of a policy's plugins, in the form that the engine uses.

A plugin gives rules ready-made (`filters`, `scorers`), or defines `filter(task, nodes)` and `score(task, nodes)` over all nodes at
once, or `filter_node` and `score_node` for one node at a time. The last two forms are wrapped here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from pumice.scheduler.engine import Filter, Reach, Reason, Refused, Rule, Scorer, Scores, View
from pumice.scheduler.framework.plugin_guard import WrongAnswer
from pumice.scheduler.model import Task

if TYPE_CHECKING:
    from pumice.scheduler.framework.plugin import Plugin


class _ByTask:
    """A rule made from a plugin's method, whose answer may depend on anything about the task."""

    def __init__(self, plugin: Plugin, method: Callable[..., Any]) -> None:
        self.name = plugin.name
        self.reach = getattr(plugin, "reach", Reach.NODE)
        self.method = method

    def prepare(self, task: Task) -> Any:
        return task

    def key(self, task: Task) -> Hashable:
        return (task.labels, task.annotations, task.job.uid if task.job else None)


class ArrayFilter(_ByTask, Filter):
    """The filter made from a plugin's `filter(task, nodes)`, which answers with a mask of the nodes that fit, or a list of Refused."""

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        answer = self.method(state, nodes)
        if isinstance(answer, np.ndarray) and answer.dtype == bool:
            return [Refused(~answer, Reason(f"node(s) were refused by {self.name}"))]
        if isinstance(answer, np.ndarray) or answer is None:
            raise WrongAnswer(f"answered {answer!r:.60}; it must be an array of booleans, or a list of Refused")
        return list(answer)


class ArrayScorer(_ByTask, Scorer):
    """The scorer made from a plugin's `score(task, nodes)`, which answers with a number per node."""

    def score(self, state: Any, nodes: View) -> Scores:
        return np.asarray(self.method(state, nodes), float)


class NodeFilter(_ByTask, Filter):
    """The filter made from a plugin's `filter_node(task, node)`, which answers with None if the node fits, else with the reason."""

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        by_reason: dict[str, list[int]] = {}
        for position, node in enumerate(NodeView.each(nodes)):
            refusal = self.method(state, node)
            if refusal is not None and not isinstance(refusal, str):
                raise WrongAnswer(f"answered {refusal!r}; it must be None, or a text that says why not")
            if refusal:
                by_reason.setdefault(refusal, []).append(position)
        refusals = []
        for text, positions in by_reason.items():
            where = nodes.nothing()
            where[positions] = True
            refusals.append(Refused(where, Reason(text)))
        return refusals


class NodeScorer(_ByTask, Scorer):
    """The scorer made from a plugin's `score_node(task, node)`, which answers with a number."""

    def score(self, state: Any, nodes: View) -> Scores:
        scores = [self.method(state, node) for node in NodeView.each(nodes)]
        for score in scores:
            if not isinstance(score, Real) or isinstance(score, bool):
                raise WrongAnswer(f"answered {score!r:.60}; it must be a number")
        return np.array(scores, float)


class NodeView:
    """One node, for the hooks that are given one node at a time."""

    def __init__(self, nodes: View, position: int) -> None:
        self._nodes, self._position = nodes, position
        self.row = int(nodes.row_numbers[position])

    @classmethod
    def each(cls, nodes: View) -> Iterable[NodeView]:
        return (cls(nodes, position) for position in range(len(nodes)))

    @property
    def name(self) -> str:
        return self._nodes.table.names[self.row]

    @property
    def labels(self) -> dict[str, str]:
        return self._nodes.table.labels(self.row)

    @property
    def tasks(self) -> Iterable[Task]:
        return self._nodes.table.tasks[self.row].values()

    def allocatable(self, resource: str) -> float:
        return self._amount(self._nodes.allocatable, resource)

    def used(self, resource: str) -> float:
        return self._amount(self._nodes.used, resource)

    def idle(self, resource: str) -> float:
        return self.allocatable(resource) - self.used(resource)

    def _amount(self, table: Any, resource: str) -> float:
        column = self._nodes.column(resource)
        return float(table[column, self._position]) if column is not None else 0.0


def filters_of(plugin: Plugin, enabled: Callable[[str], bool]) -> list[Filter]:
    return _rules(plugin, enabled, "filters", {"filter": ArrayFilter, "filter_node": NodeFilter})


def scorers_of(plugin: Plugin, enabled: Callable[[str], bool]) -> list[Scorer]:
    return _rules(plugin, enabled, "scorers", {"score": ArrayScorer, "score_node": NodeScorer})


def _rules(plugin: Plugin, enabled: Callable[[str], bool], whole: str, wrapped: dict[str, Any]) -> list[Any]:
    rules: list[Any] = []
    if hasattr(plugin, whole) and enabled(whole):
        given = getattr(plugin, whole)()
        if not isinstance(given, list) or not all(isinstance(rule, Rule) for rule in given):
            raise WrongAnswer(f"answered {given!r:.60}; it must be a list of rules")
        rules += given
    return rules + [wrap(plugin, getattr(plugin, hook)) for hook, wrap in wrapped.items() if hasattr(plugin, hook) and enabled(hook)]
