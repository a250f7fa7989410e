"""What is wrong with a user's input: the field, what was found there, what to write instead.

A decoder's error about an object is put into plain words. The faults of a configuration are reported all together, in Kubernetes' words.
"""

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from pumice.api.dns_names import is_subdomain
from pumice.api.errors import InputError, raise_all
from pumice.api.kinds import CLUSTER_WIDE
from pumice.api.quantity import QuantityError, quantity, shortened
from pumice.api.times import duration
from pumice.api.yaml import Document

Path = tuple[str | int, ...]
Written = Callable[[Path], str | None]

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


def explain(error: msgspec.ValidationError, value: Any, written: Written = lambda path: None) -> tuple[str, Path]:
    """A message for a decoder's error (what was found and what to write), and the path of the field."""
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


def _choices(path: Path) -> str:
    allowed = _ALLOWED.get(str(path[-1]) if path else "")
    return f"; write {allowed}" if allowed else ""


_TYPES = {"str": str, "int": int, "float": float, "bool": bool, "null": type(None), "array": list, "object": dict}


def _blamed(text: str) -> Callable[[Any], bool]:
    """A function that says whether the error is about a value: whether the value has the type that was found, or is no quantity."""
    match = _EXPECTED.match(text)
    kind = _TYPES.get(match["found"]) if match else None
    return (lambda entry: type(entry) is kind) if kind else (lambda entry: not _plausible(entry))


def _locate(place: str, value: Any, blamed: Callable[[Any], bool]) -> Path:
    """The path of a field from the decoder's `$.spec.containers[0].requests[...]`; `[...]` becomes the first key whose value is wrong."""
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


def _at(value: Any, path: Path) -> Any:
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


class Problems:
    """Collects the faults of one document; `check` raises them together."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.errors: list[InputError] = []

    def add(self, path: Path, message: str) -> None:
        self.errors.append(self.document.error(message, path, str(self.document.value.get("kind", ""))))

    def invalid(self, path: Path, value: Any, rule: str) -> None:
        self.add(path, f"Invalid value: {json.dumps(value)}: {rule}")

    def required(self, path: Path, rule: str) -> None:
        self.add(path, f"Required value: {rule}")

    def forbidden(self, path: Path, rule: str) -> None:
        self.add(path, f"Forbidden: {rule}")

    def duplicate(self, path: Path, value: Any) -> None:
        self.add(path, f"Duplicate value: {json.dumps(value)}")

    def unsupported(self, path: Path, value: Any, known: Iterable[str]) -> None:
        self.add(path, f"Unsupported value: {json.dumps(value)}: supported values: {', '.join(json.dumps(k) for k in known)}")

    def within(self, path: Path, value: int, low: int, high: int) -> None:
        if not low <= value <= high:
            self.invalid(path, value, f"not in valid range [{low}, {high}]")

    def check(self) -> None:
        raise_all(self.errors)


NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
PREFIX_RULE = "prefix part must be a lowercase DNS subdomain (e.g. 'example.com')"
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")


def qualified_name_fault(name: str) -> str:
    """Why the name is not a qualified name; empty if it is one."""
    prefix, slash, rest = name.rpartition("/")
    if slash and not is_subdomain(prefix):
        return PREFIX_RULE
    return "" if _NAME.fullmatch(rest) and len(rest) <= 63 else NAME_RULE


def check_duration(text: str | None, least_s: float, path: Path, rule: str, problems: Problems) -> None:
    if text is None:
        return
    try:
        if duration(text) < least_s:
            problems.invalid(path, text, rule)
    except ValueError as error:
        problems.add(path, str(error))
