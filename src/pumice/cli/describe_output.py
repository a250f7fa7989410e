"""The output of `kubectl describe`: every field with its name in words, and nested fields indented."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pumice.api import instant
from pumice.api.times import span
from pumice.text_table import columns

HIDDEN = frozenset({"managedFields", "name", "namespace", "labels", "annotations"})
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[A-Z]|[^A-Za-z]+")


def described(subject: Mapping[str, Any], events: Sequence[Mapping[str, Any]], now: float) -> str:
    metadata = subject["metadata"]
    head = {"Name": metadata["name"]}
    head |= {"Namespace": metadata["namespace"]} if metadata.get("namespace") else {}
    head |= {"Labels": _pairs(metadata.get("labels"), "="), "Annotations": _pairs(metadata.get("annotations"), ": ")}
    head |= {"API Version": subject["apiVersion"], "Kind": subject["kind"]}
    rest = {key: value for key, value in subject.items() if key not in ("apiVersion", "kind", "metadata")}
    body = {"metadata": {key: value for key, value in metadata.items() if key not in HIDDEN}, **rest}
    return "\n".join([*_head(head), *_fields(body, 0), _events(events, now)])


def _pairs(pairs: Mapping[str, str] | None, joint: str) -> str:
    return "\n".join(f"{key}{joint}{value}" for key, value in sorted((pairs or {}).items())) or "<none>"


def _head(entries: Mapping[str, str]) -> Iterator[str]:
    width = max(map(len, entries)) + 3
    for name, text in entries.items():
        first, *others = text.split("\n")
        yield f"{name + ':':<{width}}{first}"
        yield from (" " * width + line for line in others)


def _fields(value: Mapping[str, Any], depth: int) -> Iterator[str]:
    """The lines for the fields of a map, sorted by name; plain values are aligned in one column."""
    names = {key: title(key) for key in sorted(value) if value[key] not in (None, {}, [])}
    plain = [len(name) for key, name in names.items() if not isinstance(value[key], dict | list)]
    width = max(plain, default=0) + 3
    for key, name in names.items():
        inner = value[key]
        if isinstance(inner, dict | list):
            yield f"{'  ' * depth}{name}:"
            yield from _fields(inner, depth + 1) if isinstance(inner, dict) else _entries(inner, depth + 1)
        else:
            yield f"{'  ' * depth}{name + ':':<{width}}{_text(inner)}"


def _entries(values: Sequence[Any], depth: int) -> Iterator[str]:
    for entry in values:
        if isinstance(entry, dict):
            yield from _fields(entry, depth)
        elif isinstance(entry, list):
            yield from _entries(entry, depth)
        else:
            yield f"{'  ' * depth}{_text(entry)}"


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def title(key: str) -> str:
    """The name of a field in words: `minAvailable` -> "Min Available"; a key that is no field name stays as it is."""
    if not key.isalnum():
        return key
    return " ".join(word[0].upper() + word[1:] for word in _WORDS.findall(key))


def _events(events: Sequence[Mapping[str, Any]], now: float) -> str:
    if not events:
        return "Events:   <none>"
    rows = [
        (
            f"  {event.get('type') or ''}",
            event.get("reason") or "",
            _age(event, now),
            (event.get("source") or {}).get("component") or event.get("reportingComponent") or "",
            (event.get("message") or "").strip(),
        )
        for event in events
    ]
    return "Events:\n" + columns(("  Type", "Reason", "Age", "From", "Message"), rows)


def _age(event: Mapping[str, Any], now: float) -> str:
    first, last = event.get("firstTimestamp"), event.get("lastTimestamp") or event.get("eventTime")
    count = event.get("count") or 1
    if not last:
        return "<unknown>"
    ago = span(now - instant(last))
    return f"{ago} (x{count} over {span(now - instant(first))})" if first and count > 1 else ago
