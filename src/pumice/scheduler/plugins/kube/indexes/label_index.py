"""Which pods a term or constraint selects, and an index that finds what selects a given pod without a look at everything.

A thing is filed under a label that each pod it selects must have, if its selector names one. So a pod is compared only with the things
that are filed under its own labels, and with those that are filed under none.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from pumice.api.selectors import Requirement, Selector, matches
from pumice.scheduler.model import Task

NOTHING: Selector = (Requirement("", "In", ()),)  #: an absent selector, which matches no pod

Thing = TypeVar("Thing", bound=Hashable)
Label = tuple[str, str]


class PodScope(Struct, frozen=True):
    """The pods of some namespaces (None: of all namespaces) whose labels satisfy a selector."""

    selector: Selector
    spaces: frozenset[str] | None

    def has(self, task: Task) -> bool:
        return self.means(task.namespace, task.labels)

    def means(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return (self.spaces is None or namespace in self.spaces) and matches(self.selector, labels)


def anchors(scopes: Sequence[PodScope]) -> Iterator[tuple[Label, ...]]:
    """For each requirement that names values: its labels, of which a pod in all scopes must have one."""
    for scope in scopes:
        for requirement in scope.selector:
            if requirement.operator == "In":
                yield tuple((requirement.key, value) for value in dict.fromkeys(requirement.values))


class LabelIndex(Generic[Thing]):
    """Things by the pods that they select: the pods in all of their scopes."""

    def __init__(self) -> None:
        self._filed: dict[Thing, tuple[Label, ...] | None] = {}
        self._by_label: dict[Label, dict[Thing, Sequence[PodScope]]] = {}
        self._rest: dict[Thing, Sequence[PodScope]] = {}

    def __contains__(self, thing: Thing) -> bool:
        return thing in self._filed

    def add(self, thing: Thing, scopes: Sequence[PodScope]) -> None:
        """File a thing under the labels that have the fewest things."""
        labels = min(anchors(scopes), key=self._crowd, default=None)
        self._filed[thing] = labels
        if labels is None:
            self._rest[thing] = scopes
        for label in labels or ():
            self._by_label.setdefault(label, {})[thing] = scopes

    def _crowd(self, labels: tuple[Label, ...]) -> int:
        return sum(len(self._by_label.get(label, ())) for label in labels)

    def remove(self, thing: Thing) -> None:
        labels = self._filed.pop(thing)
        if labels is None:
            del self._rest[thing]
        for label in labels or ():
            del self._by_label[label][thing]
            if not self._by_label[label]:
                del self._by_label[label]

    def meaning(self, task: Task) -> Iterator[Thing]:
        """The things that select this pod, each once."""
        for label in task.labels.items():
            for thing, scopes in self._by_label.get(label, {}).items():
                if all(scope.has(task) for scope in scopes):
                    yield thing
        for thing, scopes in self._rest.items():
            if all(scope.has(task) for scope in scopes):
                yield thing
