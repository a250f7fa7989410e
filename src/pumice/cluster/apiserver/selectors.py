"""Field selectors: `status.phase!=Failed,spec.nodeName=n`, on the fields that a kind declares selectable."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from pumice.api.selectors import label_selector, matches
from pumice.cluster.apiserver.schema import Object
from pumice.cluster.apiserver.status import bad_request

_TERM = re.compile(r"((?:[^=!\\,]|\\.)++)(==|=|!=)((?:[^\\,=]|\\.)*+)\Z")


class FieldTerm(NamedTuple):
    """One condition: the field at `path` equals `value`, or not."""

    path: tuple[str, ...]
    equal: bool
    value: str

    def holds(self, obj: Object) -> bool:
        return (field_text(obj, self.path) == self.value) is self.equal


FieldSelector = tuple[FieldTerm, ...]


def field_text(obj: Object, path: tuple[str, ...]) -> str:
    """A field as selectors compare it: absent is the empty string, booleans are words."""
    value: object = obj
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if value is None:
        return "false" if path[-1] in ("unschedulable", "hostNetwork") else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if path == ("source",) and isinstance(value, dict):
        return str(value.get("component", ""))
    return str(value)


def parse_field_selector(text: str, selectable: tuple[str, ...]) -> FieldSelector:
    """Raises StatusError 400 for what is not a selector and for a field that cannot be selected by."""
    terms = []
    for part in re.split(r"(?<!\\),", text):
        if not part.strip():
            continue
        match = _TERM.match(part.strip())
        if match is None:
            raise bad_request(f"invalid field selector \"{text}\": can't understand '{part}'")
        name, operator, value = match[1].rstrip(), match[2], match[3]
        if name not in ("metadata.name", "metadata.namespace") and name not in selectable:
            raise bad_request(f'field label not supported: "{name}"')
        terms.append(FieldTerm(tuple(name.split(".")), operator != "!=", re.sub(r"\\(.)", r"\1", value)))
    return tuple(terms)


def fields_match(selector: FieldSelector, obj: Object) -> bool:
    return all(term.holds(obj) for term in selector)


# Label selectors as objects have them: `matchLabels` and `matchExpressions`, or a plain map of labels.


def matches_selector(selector: Object, labels: Mapping[str, str]) -> bool:
    found = label_selector(selector)
    return found is not None and matches(found, labels)


def selector_text(selector: Object) -> str:
    """As `kubectl get -l` would take it; also for the plain maps of services and replication controllers."""
    if not ({"matchLabels", "matchExpressions"} & set(selector)):
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for term in selector.get("matchExpressions") or ():
        values = ",".join(term.get("values") or ())
        parts.append(
            {"In": f"{term['key']} in ({values})", "NotIn": f"{term['key']} notin ({values})", "Exists": term["key"]}.get(
                term["operator"], f"!{term['key']}"
            )
        )
    return ",".join(parts)
