"""Tables that a server made (meta.k8s.io Table), printed as kubectl prints them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pumice.report.columns import columns


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
    """One line of it: messages may have several."""
    if value is None:
        return ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    first, newline, _ = text.partition("\n")
    return f"{first}..." if newline else first
