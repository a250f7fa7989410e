"""What expressions can be of, before they have values: `int`, `list(string)`, `dyn`. And when one kind fits where another is wanted.

Letters in signatures stand for kinds yet unknown, and are made variables when a signature is used. `known` says what variables turned out
to be. What holds of `dyn` is only known when there is a value; `any` is the same, for attributes of devices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

_TOKEN = re.compile(r"[\w.]+|[<>,]")
_SPELLED = {"null_type": "null", "duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}


class CelType(NamedTuple):
    name: str
    of: tuple[CelType, ...] = ()

    def __str__(self) -> str:
        return _SPELLED.get(self.name, self.name) + (f"({', '.join(map(str, self.of))})" if self.of else "")

    @property
    def is_variable(self) -> bool:
        return self.name[0] == "$"

    @property
    def is_open(self) -> bool:
        return self.name in ("dyn", "any")


Known = dict[str, CelType]  #: by the name of a variable
ANY, DYN, NULL, BOOL, INT, STRING = (CelType(name) for name in ("any", "dyn", "null_type", "bool", "int", "string"))
_NEVER_NULL = {"bool", "int", "uint", "double", "string", "bytes", "list", "map", "type"}


def list_of(item: CelType) -> CelType:
    return CelType("list", (item,))


def map_of(key: CelType, value: CelType) -> CelType:
    return CelType("map", (key, value))


def optional_of(value: CelType) -> CelType:
    return CelType("optional_type", (value,))


@lru_cache(maxsize=256)
def kind(text: str) -> CelType:
    """`map<string, list<A>>` as in signatures."""
    return next(_read(iter([*_TOKEN.findall(text), ","])))[0]


def _read(tokens: Iterator[str]) -> Iterator[tuple[CelType, str]]:
    """The kinds up to a closing bracket, each with the mark behind it."""
    mark = ","
    while mark == ",":
        name, mark, of = next(tokens), next(tokens), tuple[CelType, ...]()
        if mark == "<":
            of = tuple(inner for inner, _ in _read(tokens))
            mark = next(tokens, ">")
        yield CelType(f"${name}" if len(name) == 1 else name, of), mark


def with_fresh(of: CelType, suffix: str) -> CelType:
    """The kind with its variables renamed, so that two uses of a signature do not meet."""
    return CelType(of.name + suffix if of.is_variable else of.name, tuple(with_fresh(inner, suffix) for inner in of.of))


def settled(of: CelType, known: Known, default: CelType | None = None) -> CelType:
    """The kind with what is known put in, and the default for variables of which nothing is."""
    while of.is_variable and of.name in known:
        of = known[of.name]
    if of.is_variable:
        return default or of
    return CelType(of.name, tuple(settled(inner, known, default) for inner in of.of)) if of.of else of


def fits(found: CelType, wanted: CelType, known: Known) -> bool:
    """What is found out about variables is added to what is known, also when the answer is no."""
    if wanted.is_variable:
        answer = _stands_for(wanted, found, known)
        if answer is not None:
            return answer
    if found.is_variable:
        return bool(_stands_for(found, wanted, known))
    if found.is_open or wanted.is_open:
        return True
    if NULL in (found, wanted):
        return found == wanted or (wanted if found == NULL else found).name not in _NEVER_NULL
    if found.name != wanted.name:
        return False
    return found.name == "type" or (
        len(found.of) == len(wanted.of) and all(fits(*pair, known) for pair in zip(found.of, wanted.of, strict=True))
    )


def _stands_for(variable: CelType, other: CelType, known: Known) -> bool | None:
    """None if nothing is known of the variable and it occurs in the other."""
    if variable == other:
        return True
    before = known.get(variable.name)
    if before is not None:
        if not fits(other, before, known):
            return False
        general = more_general(other, before)
        if not _occurs(variable, general, known):
            known[variable.name] = general
        return True
    if _occurs(variable, other, known):
        return None
    known[variable.name] = other
    return True


def _occurs(variable: CelType, within: CelType, known: Known) -> bool:
    if within.is_variable:
        return variable == within or (within.name in known and _occurs(variable, known[within.name], known))
    return any(_occurs(variable, inner, known) for inner in within.of)


def more_general(one: CelType, other: CelType) -> CelType:
    """Of two kinds that fit."""
    return one if _is_as_general(one, other) else other


def _is_as_general(one: CelType, other: CelType) -> bool:
    if one.is_open or one.is_variable:
        return True
    if other.is_open or other.is_variable or one.name != other.name or len(one.of) != len(other.of):
        return False
    return all(_is_as_general(*pair) for pair in zip(one.of, other.of, strict=True))
