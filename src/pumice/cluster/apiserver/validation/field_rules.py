"""What the rules of all kinds are made of: fields that are left out are filled in, and others refused, in Kubernetes' words."""

import json
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any

from pumice.api import Object
from pumice.api.quantity import quantity

Cause = tuple[str, str]  #: the path of a field, and what is wrong there
Causes = list[Cause]
LONGEST_SHOWN = 320  #: characters


def compact(value: Any) -> str:
    """A value as it stands in the text of an error. A very long text is cut off."""
    if isinstance(value, str) and len(value) > LONGEST_SHOWN:
        value = f"{value[:64]}..."
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def invalid(place: str, value: Any, text: str) -> Cause:
    return place, f"Invalid value: {compact(value)}: {text}"


def forbidden(place: str, text: str) -> Cause:
    return place, f"Forbidden: {text}"


def required(place: str, text: str = "") -> Cause:
    return place, f"Required value: {text}" if text else "Required value"


def repeated(values: Iterable[Hashable]) -> list[int]:
    """The indexes of the values that others before them equal."""
    seen = set[Hashable]()
    found: list[int] = []
    for index, value in enumerate(values):
        found += [index] if value in seen else []
        seen.add(value)
    return found


def duplicates(values: Sequence[Hashable], place: str, field: str = "") -> Causes:
    """The causes for refusing values of a list's items, or of a field of each, that are there already."""
    again = repeated(values) if len(values) > 1 else ()
    return [(f"{place}[{index}]{field}", f"Duplicate value: {compact(values[index])}") for index in again]


def fill(obj: Object, defaults: Object) -> None:
    """Set the fields that are left out, also those of the structs in it."""
    for field, value in defaults.items():
        if isinstance(value, dict):
            fill(obj.setdefault(field, {}), value)
        else:
            obj.setdefault(field, value)


def missing(place: str, obj: Object, *fields: str, rule: str = "") -> Causes:
    """The causes for those of the fields that are missing, empty or zero."""
    text = f"Required value: {rule}" if rule else "Required value"
    return [(f"{place}.{field}" if place else field, text) for field in fields if not obj.get(field)]


def is_negative(amount: Any) -> bool:
    """Whether an amount is below zero, which nearly none is: only those that begin with a sign are read."""
    return str(amount).startswith("-") and quantity(amount).milli < 0


def negative_amounts(amounts: Iterable[tuple[str, Any]]) -> Causes:
    """The causes for those of the amounts, each at its place, that are below zero."""
    text = 'Invalid value: "{}": must be greater than or equal to 0'
    return [(place, text.format(amount)) for place, amount in amounts if is_negative(amount)]


def outside(place: str, value: int, most: int = 2**31 - 1) -> Causes:
    return [] if 0 < value <= most else [(place, f"Invalid value: {value}: must be between 1 and {most}, inclusive")]


def unsupported(place: str, value: Any, choices: Collection[str]) -> Causes:
    if value in choices:
        return []
    supported = ", ".join(f'"{choice}"' for choice in choices)
    return [(place, f"Unsupported value: {compact(value)}: supported values: {supported}")]
