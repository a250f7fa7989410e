"""Objects as kubectl prints them: with -o yaml and -o json (keys sorted, without managedFields), in the tables that the server makes, and
as `kubectl describe` shows them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from pumice.api.times import instant, span
from pumice.cli.tables import say
from pumice.text_table import columns, shown

if TYPE_CHECKING:
    from pumice.client.discovery import ServedResource


@cache
def _dumper() -> Any:
    """The YAML dumper. It quotes strings that other YAML readers would read as a boolean or a number, and those in which something must be
    escaped."""
    import yaml  # its import would take half of the start of every other command

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: Any, text: str) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if shown(text) == text else '"')

    Dumper.add_representer(str, text)
    Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"[yYnN]\Z"), list("yYnN"))
    Dumper.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\.?[0-9][0-9.]*[eE][-+]?[0-9]+\Z"), list("-+.0123456789"))
    return Dumper


def without_bookkeeping(subject: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in subject["metadata"].items() if key != "managedFields"}
    return {**subject, "metadata": metadata}


# What a terminal would obey is escaped. In strings in double quotes, the escapes mean the same to readers of YAML and of JSON.


def as_yaml(value: Any, *, sort_keys: bool = True) -> str:
    import yaml

    return shown(yaml.dump(value, Dumper=_dumper(), default_flow_style=False, sort_keys=sort_keys, allow_unicode=True, width=1_000_000))


def as_json(value: Any) -> str:
    return shown(json.dumps(value, indent=4, sort_keys=True, ensure_ascii=False)) + "\n"


# Tables that the server makes (meta.k8s.io Table), printed as kubectl prints them.


def print_objects(found: Sequence[tuple[ServedResource, dict[str, Any]]], output: str, *, single: bool = False) -> None:
    """Print the objects as names, JSON or YAML: all in one List, or if `single` the one object."""
    if output == "name":
        for served, item in found:
            say(f"{served.title}/{item['metadata']['name']}")
        return
    items = [without_bookkeeping(item) for _, item in found]
    whole = items[0] if single else {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}
    say(as_json(whole) if output == "json" else as_yaml(whole), nl=False)


class ServerTable:
    """The columns of one resource, and rows to print under them."""

    def __init__(self, definitions: Sequence[Mapping[str, Any]], *, wide: bool, with_namespace: bool) -> None:
        self._shown = [number for number, column in enumerate(definitions) if wide or not column.get("priority")]
        self._with_namespace = with_namespace
        head = [str(definitions[number]["name"]).upper() for number in self._shown]
        self.head = ["NAMESPACE", *head] if with_namespace else head

    def row(self, row: Mapping[str, Any]) -> list[str]:
        cells = [_cell(row["cells"][number]) for number in self._shown]
        return [row["object"]["metadata"].get("namespace") or "", *cells] if self._with_namespace else cells

    def text(self, rows: Iterable[Mapping[str, Any]]) -> str:
        return columns(self.head, [self.row(row) for row in rows])


def _cell(value: Any) -> str:
    """The text of a cell, cut to its first line: messages may have several lines."""
    if value is None:
        return ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    first, newline, _ = text.partition("\n")
    return f"{first}..." if newline else first


# The output of `kubectl describe`: every field with its name in words, and nested fields indented.

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
