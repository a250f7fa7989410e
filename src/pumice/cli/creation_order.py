"""In which order the objects of files are created: what others need comes first, the rest stays as it was written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")

DEFINITION, NAMESPACE, QUEUE = "CustomResourceDefinition", "Namespace", "Queue"
FIRST = (DEFINITION, NAMESPACE, "Class", QUEUE)
REST = len(FIRST)


def rank(kind: str) -> int:
    """The place of a kind among those that come first, all classes being one; REST for the others."""
    word = "Class" if kind.endswith("Class") else kind
    return FIRST.index(word) if word in FIRST else REST


def in_order(items: Iterable[T], body: Callable[[T], dict[str, Any]]) -> list[T]:
    """A queue comes after the one it is a part of."""
    listed = list(items)
    bodies = [body(item) for item in listed]
    parents = {each["metadata"].get("name"): (each.get("spec") or {}).get("parent") for each in bodies if each["kind"] == QUEUE}

    def place(item: T) -> tuple[int, int]:
        obj = body(item)
        return rank(obj["kind"]), _depth(obj["metadata"].get("name"), parents) if obj["kind"] == QUEUE else 0

    return sorted(listed, key=place)


def _depth(name: Any, parents: dict[Any, Any]) -> int:
    above = []
    while name in parents and name not in above:
        above.append(name)
        name = parents[name]
    return len(above)
