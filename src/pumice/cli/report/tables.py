"""Objects as kubectl prints them with -o yaml and -o json, and as the tables that the server makes of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from pumice.text_table import columns

# Objects as kubectl prints them with -o yaml and -o json: keys sorted, the server's bookkeeping of managers left out.


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


# What other readers of YAML take for a truth value or a number must be quoted to stay a text.
_Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"[yYnN]\Z"), list("yYnN"))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\.?[0-9][0-9.]*[eE][-+]?[0-9]+\Z"), list("-+.0123456789"))


def without_bookkeeping(subject: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in subject["metadata"].items() if key != "managedFields"}
    return {**subject, "metadata": metadata}


def as_yaml(value: Any) -> str:
    text: str = yaml.dump(value, Dumper=_Dumper, default_flow_style=False, sort_keys=True, allow_unicode=True, width=1_000_000)
    return text


def as_json(value: Any) -> str:
    return json.dumps(value, indent=4, sort_keys=True, ensure_ascii=False) + "\n"


# Tables that a server made (meta.k8s.io Table), printed as kubectl prints them.


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
