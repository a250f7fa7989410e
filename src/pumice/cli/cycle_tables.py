"""The outcome of cycles as tables: which pods were bound, which were evicted, which wait, and why."""

import re
from typing import Any

from pumice.text_table import columns

_FINDS_ROOM = re.compile(r"^Pod \S+ can possibly be assigned to \S+, once")


def tables(result: dict[str, Any], *, wide: bool = False) -> str:
    """The tables of the outcome, without empty ones. `wide` adds the phases of PodGroups, and shows each waiting pod on its own row."""
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
