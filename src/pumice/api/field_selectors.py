"""Field selectors: `status.phase!=Failed,spec.nodeName=n`, for the fields that a kind declares selectable."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_FIELD_TERM = re.compile(r"((?:[^=!\\,]|\\.)++)(==|=|!=)((?:[^\\,=]|\\.)*+)\Z")


class FieldTerm(NamedTuple):
    """One condition: the field at `path` equals `value`, or not."""

    path: tuple[str, ...]
    equal: bool
    value: str

    def holds(self, obj: Mapping[str, Any]) -> bool:
        return (field_text(obj, self.path) == self.value) is self.equal


FieldSelector = tuple[FieldTerm, ...]


def field_text(obj: Mapping[str, Any], path: tuple[str, ...]) -> str:
    """A field's value as field selectors compare it: an absent field is the empty string, a boolean is "true" or "false"."""
    value: object = obj
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if value is None and path == ("source",):
        value = {}
    if value is None:
        return "false" if path[-1] in ("unschedulable", "hostNetwork") else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if path == ("source",) and isinstance(value, dict):
        return str(value.get("component") or obj.get("reportingComponent") or "")
    return str(value)


def parse_field_selector(text: str, selectable: tuple[str, ...]) -> FieldSelector:
    """The terms of a field selector. Raises ValueError for a text that is no selector, and for a field that is not selectable."""
    terms = []
    for part in re.split(r"(?<!\\),", text):
        if not part.strip():
            continue
        match = _FIELD_TERM.match(part.strip())
        if match is None:
            raise ValueError(f"invalid field selector \"{text}\": can't understand '{part}'")
        name, operator, value = match[1].rstrip(), match[2], match[3]
        if name not in ("metadata.name", "metadata.namespace") and name not in selectable:
            known = '"metadata.name", "metadata.namespace"'
            raise ValueError(
                f"field label not supported: {name}" if selectable else f'"{name}" is not a known field selector: only {known}'
            )
        terms.append(FieldTerm(tuple(name.split(".")), operator != "!=", re.sub(r"\\(.)", r"\1", value)))
    return tuple(terms)


def fields_match(selector: FieldSelector, obj: Mapping[str, Any]) -> bool:
    return all(term.holds(obj) for term in selector)
