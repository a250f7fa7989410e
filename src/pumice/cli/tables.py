"""Objects as kubectl prints them with -o yaml and -o json, and as the tables that the server makes of them."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import IO, Any

import click

from pumice.text_table import columns

# Objects as kubectl prints them with -o yaml and -o json: keys sorted, the server's bookkeeping of managers left out.


@cache
def _dumper() -> Any:
    """What other readers of YAML take for a truth value or a number is quoted to stay a text."""
    import yaml  # half of the start of every other command

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"[yYnN]\Z"), list("yYnN"))
    Dumper.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\.?[0-9][0-9.]*[eE][-+]?[0-9]+\Z"), list("-+.0123456789"))
    return Dumper


def without_bookkeeping(subject: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in subject["metadata"].items() if key != "managedFields"}
    return {**subject, "metadata": metadata}


def as_yaml(value: Any) -> str:
    import yaml

    text: str = yaml.dump(value, Dumper=_dumper(), default_flow_style=False, sort_keys=True, allow_unicode=True, width=1_000_000)
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


# The outcome of some cycles as a person wants it: what was bound, what was evicted, what waits, and why.

_FINDS_ROOM = re.compile(r"^Pod \S+ can possibly be assigned to \S+, once")


def tables(result: dict[str, Any], *, wide: bool = False) -> str:
    """Only the parts that have something in them. `wide` adds the jobs' phases and every waiting pod in full."""
    parts = [_placed(result), _evicted(result), _waiting(result, wide), _groups(result) if wide else ""]
    return "\n\n".join(part for part in parts if part) or "Nothing to do: no pod waits for a node."


def _placed(result: dict[str, Any]) -> str:
    rows = [(pod, node, "Bound") for pod, node in result["binds"].items()]
    rows += [(pod, node, "Pipelined (its room is being released)") for pod, node in result["pipelined"].items()]
    rows += [
        (pod, node, "Nominated")
        for pod, node in result["nominations"].items()
        if pod not in result["pipelined"] and pod not in result["binds"]
    ]
    return columns(("POD", "NODE", "STATUS"), rows) if rows else ""


def _evicted(result: dict[str, Any]) -> str:
    rows = [(e["pod"], e["node"], e["action"], e["for"] or "-") for e in result["evicts"]]
    return columns(("EVICTED", "NODE", "BY", "FOR"), rows) if rows else ""


def _waiting(result: dict[str, Any], wide: bool) -> str:
    pending = {pod: why for pod, why in result["pending"].items() if pod not in result["pipelined"]}
    if wide:
        return (
            columns(("WAITING", "REASON", "MESSAGE"), [(pod, why["reason"], why["message"]) for pod, why in pending.items()])
            if pending
            else ""
        )
    alike: dict[str, list[str]] = {}
    for pod, why in pending.items():
        alike.setdefault(_FINDS_ROOM.sub("a node has room for it, once", why["message"]), []).append(pod)
    rows = [(f"PodGroup {group}", message) for group, message in result["waitingGroups"].items()]
    rows += [(pods[0] if len(pods) == 1 else f"{pods[0]} and {len(pods) - 1} more", message) for message, pods in alike.items()]
    return columns(("WAITING", "WHY"), rows) if rows else ""


def _groups(result: dict[str, Any]) -> str:
    rows = []
    for name, group in result["podGroups"].items():
        condition = group["conditions"][0] if group["conditions"] else {}
        rows.append((name, group["phase"], condition.get("message") or condition.get("reason") or "-"))
    return columns(("PODGROUP", "PHASE", "CONDITION"), rows) if rows else ""


# Colours, where a terminal is: heads of tables, words of states that stand alone in a column, and errors. One place for all commands.
#
# Nothing is coloured in pipes and files, nor where NO_COLOR is set or the terminal is a dumb one.

_COLOURS = {
    "green": "Active|Available|Bound|Completed|Open|Ready|Running|Succeeded",
    "yellow": "Closing|Inqueue|Nominated|Pending|Pipelined|Releasing|Restarting|SchedulingGated|Terminating|Unknown",
    "red": "Aborted|Closed|CrashLoopBackOff|Error|Failed|ImagePullBackOff|NotReady|Terminated|Unschedulable",
}
_COLOUR_OF = {word: colour for colour, words in _COLOURS.items() for word in words.split("|")}
_STATE = re.compile(rf"(?<=  )(?:{'|'.join(_COLOUR_OF)})(?=  | \(|$)", re.MULTILINE)
_HEAD = re.compile(r"(?:\A|(?<=\n\n))\S.*")


def print_table(table: str) -> None:
    """Print tables, which empty lines part."""
    click.echo(painted(table) if _has_colours(sys.stdout) else table)


def complain(text: str) -> None:
    """Print an error."""
    click.echo(click.style(text, fg="red") if _has_colours(sys.stderr) else text, err=True)


def painted(table: str) -> str:
    in_states = _STATE.sub(lambda found: click.style(found[0], fg=_COLOUR_OF[found[0]]), table)
    return _HEAD.sub(lambda found: click.style(found[0], bold=True), in_states)


def _has_colours(stream: IO[str]) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
