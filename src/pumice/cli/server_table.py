"""Tables that the server makes (meta.k8s.io Table), printed as kubectl prints them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pumice.cli.object_output import as_json, as_yaml, without_bookkeeping
from pumice.cli.tables import say
from pumice.text_table import columns

if TYPE_CHECKING:
    from pumice.client.discovery import ServedResource


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
