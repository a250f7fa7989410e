"""Attributes that few objects of a kind have: they take no place in the others, of which there are very many."""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")

NOTHING: Mapping[str, Any] = {}  #: one for all


def unusual(kind: type, **values: Any) -> Mapping[str, Any]:
    """Those of these values of such attributes that are not as usual: what objects of the class have as `seldom`."""
    attributes = vars(kind)
    return {name: value for name, value in values.items() if value != attributes[name].usual} or NOTHING


class Seldom(Generic[T]):
    """Such an attribute, of a class with a slot `seldom` for what is not as usual: NOTHING, or a dictionary of the object's own."""

    __slots__ = ("_name", "usual")

    def __init__(self, usual: T) -> None:
        self.usual = usual

    def __set_name__(self, kind: type, name: str) -> None:
        self._name = name

    def __get__(self, owner: Any, kind: type) -> T:
        found: T = owner.seldom.get(self._name, self.usual)
        return found

    def __set__(self, owner: Any, value: T) -> None:
        if value != self.usual:
            owner.seldom = {**owner.seldom, self._name: value}
        elif self._name in owner.seldom:
            owner.seldom = {name: other for name, other in owner.seldom.items() if name != self._name} or NOTHING
