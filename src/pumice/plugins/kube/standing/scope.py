"""Which pods are meant by a term or constraint, and a register that finds what means a given pod without asking everything.

A thing is filed under a label that every pod it means must carry, if its selector names any; so a pod is held only against the
things filed under its own labels, and those that no label tells.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from pumice.api.selectors import Requirement, Selector, matches
from pumice.model.task import Task

NOTHING: Selector = (Requirement("", "In", ()),)  #: an absent selector: it matches nothing

Thing = TypeVar("Thing", bound=Hashable)
Label = tuple[str, str]


class Scope(NamedTuple):
    """Pods of some namespaces (None: of all) whose labels satisfy a selector."""

    selector: Selector
    spaces: frozenset[str] | None

    def has(self, task: Task) -> bool:
        return self.means(task.namespace, task.labels)

    def means(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return (self.spaces is None or namespace in self.spaces) and matches(self.selector, labels)


def anchors(scopes: Sequence[Scope]) -> Iterator[tuple[Label, ...]]:
    """For each requirement that names values: the labels of which a pod in all scopes must carry one."""
    for scope in scopes:
        for requirement in scope.selector:
            if requirement.operator == "In":
                yield tuple((requirement.key, value) for value in dict.fromkeys(requirement.values))


class Register(Generic[Thing]):
    """Things by the pods that they mean: those in all of their scopes."""

    def __init__(self) -> None:
        self._filed: dict[Thing, tuple[Label, ...] | None] = {}
        self._by_label: dict[Label, dict[Thing, Sequence[Scope]]] = {}
        self._rest: dict[Thing, Sequence[Scope]] = {}

    def __contains__(self, thing: Thing) -> bool:
        return thing in self._filed

    def add(self, thing: Thing, scopes: Sequence[Scope]) -> None:
        """File it where the fewest others are."""
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
        """The things that mean this pod, each once."""
        for label in task.labels.items():
            for thing, scopes in self._by_label.get(label, {}).items():
                if all(scope.has(task) for scope in scopes):
                    yield thing
        for thing, scopes in self._rest.items():
            if all(scope.has(task) for scope in scopes):
                yield thing
