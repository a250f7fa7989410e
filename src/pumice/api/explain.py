"""A decoder's complaint, made into what a person is told: the field, what was found there, what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from pumice.api.kinds import CLUSTER_WIDE
from pumice.api.quantity import QuantityError, quantity, shortened

FieldPath = tuple[str | int, ...]
Written = Callable[[FieldPath], str | None]

_EXPECTED = re.compile(r"Expected `(?P<type>[^`]*)`, got `(?P<found>[^`]*)`")
_TOO_GREAT = re.compile(r"Expected `int` [<>]= -?\d+|Integer value out of range|Number out of range")
_INVALID = re.compile(r"Invalid enum value '(?P<value>[^']*)'")
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]*)`")
_WORDS = {
    "str": "a string",
    "int": "an integer",
    "bool": "true or false",
    "object": "a mapping",
    "array": "a list",
    "float": "a number",
    "null": "nothing",
}


def explain(error: msgspec.ValidationError, value: Any, written: Written = lambda path: None) -> tuple[str, FieldPath]:
    """A decoder's complaint as: what was found and what to write, and the path of the field."""
    text, _, place = str(error).partition(" - at ")
    path = _locate(place.strip("`"), value, _blamed(text))
    found = _at(value, path)
    if match := _MISSING.match(text):
        return f'field "{match["name"]}" is missing; write it', path
    if "not a quantity" in text or "a quantity" in text:
        return (
            text if "not a quantity" in text else f'found {describe(found)} where a quantity belongs; write for example "2" or "500m"'
        ), path
    if _TOO_GREAT.match(text):
        return "the number has more than 64 bits; write a smaller one", path
    if match := _INVALID.match(text):
        return f'"{shortened(match["value"])}" is not one of its values{_choices(path)}', path
    if match := _EXPECTED.match(text):
        wanted = [_WORDS.get(word.strip(), word.strip()) for word in match["type"].split("|") if word.strip() != "null"]
        advice = (
            f'; write "{shortened(written(path) or str(found))}" in quotes'
            if "a string" in wanted and isinstance(found, int | float | bool)
            else ""
        )
        return f"found {describe(found)} where {' or '.join(wanted)} belongs{advice}", path
    return text, path


_ALLOWED = {
    "effect": "NoSchedule, PreferNoSchedule or NoExecute",
    "whenUnsatisfiable": "DoNotSchedule or ScheduleAnyway",
    "phase": "those that Kubernetes writes, such as Pending or Running",
    "preemptionPolicy": "PreemptLowerPriority or Never",
    "nodeAffinityPolicy": "Honor or Ignore",
    "nodeTaintsPolicy": "Honor or Ignore",
    "volumeBindingMode": "Immediate or WaitForFirstConsumer",
    "state": "Open, Closed, Closing or Unknown",
    "mode": "hard or soft",
    "type": "Node or HyperNode",
}


def _choices(path: tuple[str | int, ...]) -> str:
    allowed = _ALLOWED.get(str(path[-1]) if path else "")
    return f"; write {allowed}" if allowed else ""


_TYPES = {"str": str, "int": int, "float": float, "bool": bool, "null": type(None), "array": list, "object": dict}


def _blamed(text: str) -> Callable[[Any], bool]:
    """Whether the complaint is about a value: it has the type that was found, or is no quantity."""
    match = _EXPECTED.match(text)
    kind = _TYPES.get(match["found"]) if match else None
    return (lambda entry: type(entry) is kind) if kind else (lambda entry: not _plausible(entry))


def _locate(place: str, value: Any, blamed: Callable[[Any], bool]) -> tuple[str | int, ...]:
    """`$.spec.containers[0].requests[...]` as a path; `[...]` becomes the first key whose value is to blame."""
    path: list[str | int] = []
    for name, index in re.findall(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]", place):
        if name:
            path.append(name)
        elif index == "...":
            inside = _at(value, tuple(path))
            culprit = next((key for key, entry in inside.items() if blamed(entry)), None) if isinstance(inside, dict) else None
            path.append(culprit if culprit is not None else "...")
        else:
            path.append(int(index))
    return tuple(path)


def _plausible(entry: Any) -> bool:
    try:
        quantity(entry)
    except (QuantityError, TypeError):
        return False
    return isinstance(entry, str | int | float) and not isinstance(entry, bool)


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def describe(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return f"the boolean {str(value).lower()}"
        case int() | float():
            return f"the number {shortened(str(value))}"
        case str():
            return f'"{value[:60]}"'
        case list():
            return "a list"
        case _:
            return "a mapping"


def subject_of(kind: str, value: Any) -> str:
    meta = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(meta, dict):
        return kind
    namespace, name = (str(text) if isinstance(text := meta.get(field), str | int | float) else "" for field in ("namespace", "name"))
    return f"{kind} {name}" if kind in CLUSTER_WIDE else f"{kind} {namespace or 'default'}/{name}"
