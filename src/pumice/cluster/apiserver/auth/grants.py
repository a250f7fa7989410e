"""Whether some rules grant everything that other rules grant: rights are compared by rules, not act by act.

A rule grants the product of its verbs, groups, resources and names; 300 of each are millions of acts, written in a few kilobytes. Such a
product is a box. From each box that is wanted, each rule that is held takes away its part, and what remains is a few smaller boxes: at most
one for each side. If nothing remains in the end, all is held; else the first act of what remains is not. A limit on the steps bounds the
work for rules that cut boxes into ever smaller ones: what could not be compared counts as not held.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from pumice.api import Object

MOST_STEPS = 200_000  #: values that are compared for one object


class Attributes(NamedTuple):
    """What a user wants to do: a verb on a resource, or on a path that is not a resource."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class TooMuchToCompare(Exception):
    """The rules cannot be compared within MOST_STEPS."""


class _Held(NamedTuple):
    """The sides of a rule that is held. A side of a rule with names holds no act without a name."""

    verbs: Collection[str]
    groups: Collection[str]
    resources: Collection[str]
    names: Collection[str]  #: empty: any name, and none
    paths: Collection[str]


_FIELDS = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
_Box = tuple[tuple[str, ...], ...]  #: verbs, groups, resources and names; or verbs and paths


class Grants:
    """The rules that somebody holds."""

    def __init__(self, rules: Iterable[Object]) -> None:
        self._held = [_Held(*(frozenset(rule.get(field) or ()) for field in _FIELDS)) for rule in rules]
        self._steps = 0

    def lacking(self, wanted: Iterable[Object], namespace: str = "") -> Attributes | None:
        """An act that the wanted rules grant and these do not; None if there is none. "*" is an act of its own, which only a rule with "*"
        grants. Raises TooMuchToCompare."""
        for rule in wanted:
            verbs = _values(rule, "verbs")
            boxes: list[_Box] = [(verbs, _values(rule, "nonResourceURLs"))]
            boxes.append((verbs, _values(rule, "apiGroups"), _values(rule, "resources"), _values(rule, "resourceNames") or ("",)))
            for box in boxes:
                rest = self._uncovered(box) if all(box) else None
                if rest is not None:
                    return _first(rest, namespace)
        return None

    def _uncovered(self, box: _Box) -> _Box | None:
        """A part of the box that no rule covers any of; None if they cover it all."""
        waiting = [(box, 0)]
        while waiting:
            rest, at = waiting.pop()
            if at == len(self._held):
                return rest
            waiting.extend((part, at + 1) for part in self._without(rest, self._held[at]))
        return None

    def _without(self, box: _Box, held: _Held) -> list[_Box]:
        """The box without what the rule covers of it: for each side, the part that is inside on all sides before it and outside on this."""
        self._steps += sum(map(len, box))
        if self._steps > MOST_STEPS:
            raise TooMuchToCompare
        rest: list[_Box] = []
        inside: tuple[tuple[str, ...], ...] = ()
        for number, side in enumerate(box):
            held_ones = [_holds(held, number, len(box), value) for value in side]
            outside = tuple(value for value, is_held in zip(side, held_ones, strict=True) if not is_held)
            if len(outside) == len(side):
                return [box]
            if outside:
                rest.append((*inside, outside, *box[number + 1 :]))
            inside = (*inside, tuple(value for value, is_held in zip(side, held_ones, strict=True) if is_held))
        return rest[::-1]


def permits(rule: Object, act: Attributes) -> bool:
    held, resource = _Held(*(rule.get(field) or () for field in _FIELDS)), act.resource + (f"/{act.subresource}" if act.subresource else "")
    sides = (act.verb, act.path) if act.path else (act.verb, act.group, resource, act.name)
    return all(_holds(held, side, len(sides), value) for side, value in enumerate(sides))


def _holds(held: _Held, side: int, sides: int, value: str) -> bool:
    if side == 0:
        return "*" in held.verbs or value in held.verbs
    if sides == 2:
        return any(path == value or (path.endswith("*") and value.startswith(path[:-1])) for path in held.paths)
    if side == 1:
        return "*" in held.groups or value in held.groups
    if side == 2:
        subresource = value.partition("/")[2]
        return "*" in held.resources or value in held.resources or (bool(subresource) and f"*/{subresource}" in held.resources)
    return not held.names or value in held.names


def _values(rule: Object, field: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(rule.get(field) or ()))


def _first(box: _Box, namespace: str) -> Attributes:
    if len(box) == 2:
        return Attributes(box[0][0], path=box[1][0])
    plural, _, subresource = box[2][0].partition("/")
    return Attributes(box[0][0], box[1][0], plural, subresource, namespace, box[3][0])
