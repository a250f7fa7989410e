"""What a step of a flow writes over its JobTemplate: only what differs, down to a single variable of one container.

Tasks and containers are found by name (one without a name is the one at its place) and merged; of other lists that have a key, entries take
the place of those with the same key. All other lists, and what makes sense only as a whole, are replaced.
"""

from __future__ import annotations

from typing import Any

from pumice.api.json_objects import copied

MERGED = ("tasks", "containers", "initContainers")
KEYS = {
    **dict.fromkeys(MERGED, ("name",)),
    "env": ("name",),
    "hostAliases": ("ip",),
    "ports": ("containerPort",),
    "tolerations": ("key",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name", "mountPath"),  # of pods, and of jobs
}
WHOLE = ("affinity", "securityContext", "livenessProbe", "readinessProbe", "startupProbe", "networkTopology")


def laid_over(stored: Any, patch: Any, field: str = "") -> Any:
    """`patch` over `stored`, which is called `field`; both are left as they are."""
    if isinstance(patch, dict) and isinstance(stored, dict) and field not in WHOLE:
        return {**copied(stored), **{name: laid_over(stored.get(name), value, name) for name, value in patch.items()}}
    if isinstance(patch, list) and isinstance(stored, list) and field in KEYS:
        return _entries(stored, patch, field)
    return copied(patch)


def _entries(stored: list[Any], patch: list[Any], field: str) -> list[Any]:
    result: list[Any] = copied(stored)
    for index, entry in enumerate(patch):
        place = next((at for at, other in enumerate(stored) if _same(entry, other, field)), None)
        if place is None and field in MERGED and not entry.get("name") and index < len(stored):
            place = index
        if place is None:
            result.append(copied(entry))
        else:
            result[place] = laid_over(result[place], entry) if field in MERGED else copied(entry)
    return result


def _same(entry: Any, other: Any, field: str) -> bool:
    return any(entry.get(key) is not None and entry.get(key) == other.get(key) for key in KEYS[field])
