"""Cases as data: an input, the outcomes that are right. README.md beside this file tells the form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
KEYS = ("binds", "pipelined", "evicts", "podGroups", "nominations")


class Case(NamedTuple):
    name: str
    text: str
    expect: dict[str, Any]


def cases(folder: Path) -> Iterator[Case]:
    """Pairs of files, and files of many states."""
    for path in sorted(folder.glob("*.yaml")):
        if path.name.endswith(".expect.yaml"):
            continue
        beside = path.with_name(f"{path.stem}.expect.yaml")
        if beside.exists():
            yield Case(path.stem, path.read_text(), yaml.load(beside.read_text(), LOADER))
            continue
        whole = yaml.load(path.read_text(), LOADER)
        for state in whole.pop("states"):
            table = {"scores": state["scores"] | {"total": state["total"]}} if "scores" in state else {}
            yield Case(f"{path.stem}/{state['name']}", state["objects"], whole | {"compare": "exact"} | state | table)


def plain(outcome: dict[str, Any]) -> dict[str, Any]:
    """Only what is compared, absent parts as empty ones."""
    parts = {key: outcome.get(key) or {} for key in KEYS}
    parts["evicts"] = sorted(e["pod"] if isinstance(e, dict) else e for e in outcome.get("evicts") or ())
    parts["podGroups"] = {k: v["phase"] if isinstance(v, dict) else v for k, v in parts["podGroups"].items()}
    return parts


def agrees(ours: dict[str, Any], outcome: dict[str, Any], expect: dict[str, Any], owners: dict[str, str]) -> bool:
    """Whether our outcome is this one: to the pod, or only in numbers where equal pods are not told apart."""
    mine, theirs = plain(ours), plain(outcome)
    phases = all(mine["podGroups"].get(group) == phase for group, phase in theirs["podGroups"].items())
    if expect.get("compare", "exact") == "exact":
        asked = [key for key in KEYS if key != "podGroups" and (key in outcome or key in ("binds", "evicts"))]
        return phases and all(mine[key] == theirs[key] for key in asked)
    counted = {
        "binds": Counter(owners.get(pod, pod) for pod in mine["binds"]),
        "evicts": Counter(owners.get(pod, pod) for pod in mine["evicts"]),
        "nominations": Counter(owners.get(pod, pod) for pod in mine["nominations"]),
        "perNode": Counter(mine["binds"].values()),
    }
    return phases and all(dict(counted[key]) == (value or {}) for key, value in (outcome.get("counts") or {}).items() if key in counted)


def owners(text: str) -> dict[str, str]:
    """Pod to PodGroup, or owner, or itself."""
    found = {}
    for document in yaml.load_all(text, LOADER):
        if not document or document.get("kind") != "Pod":
            continue
        meta = document["metadata"]
        namespace, notes = meta.get("namespace", "default"), meta.get("annotations") or {}
        named = [notes[key] for key in ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name") if key in notes]
        named += [owner["name"] for owner in meta.get("ownerReferences") or () if owner.get("controller")]
        found[f"{namespace}/{meta['name']}"] = f"{namespace}/{(named or [meta['name']])[0]}"
    return found


def same_scores(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """What differs between two score tables."""
    wrong = []
    for plugin, nodes in theirs.items():
        mine = ours.get(plugin) or ({} if any(nodes.values()) else nodes)
        if set(mine) != set(nodes):
            wrong.append(f"{plugin} scored {sorted(mine)}, not {sorted(nodes)}")
        wrong += [
            f"{plugin} on {n}: {mine[n]}, not {v}" for n, v in nodes.items() if n in mine and abs(mine[n] - v) > 1e-6 * max(1, abs(v))
        ]
    return wrong
