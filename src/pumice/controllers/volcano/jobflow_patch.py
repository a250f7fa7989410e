"""The patch of a flow's step over its JobTemplate: it states only the differences, down to a single variable of one container.

Tasks and containers are found by name (an entry without a name by its place) and merged. In other lists that have a key, an entry
replaces the entry with the same key. All other lists, and the fields in `WHOLE`, are replaced as a whole.
"""

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
    "volumes": ("name", "mountPath"),  # the keys for volumes of pods, and of jobs
}
WHOLE = ("affinity", "securityContext", "livenessProbe", "readinessProbe", "startupProbe", "networkTopology")


def laid_over(stored: Any, patch: Any, field: str = "") -> Any:
    """The value `stored` of a field with `patch` applied; neither of the two is changed."""
    if isinstance(patch, dict) and isinstance(stored, dict) and field not in WHOLE:
        return {**copied(stored), **{name: laid_over(stored.get(name), value, name) for name, value in patch.items()}}
    if isinstance(patch, list) and isinstance(stored, list) and field in KEYS:
        return _entries(stored, patch, field)
    return copied(patch)


def _entries(stored: list[Any], patch: list[Any], field: str) -> list[Any]:
    result: list[Any] = copied(stored)
    places: dict[tuple[str, Any], int] = {}
    for at, other in enumerate(stored):
        for key in KEYS[field]:
            if isinstance(other.get(key), str | int):
                places.setdefault((key, other[key]), at)
    for index, entry in enumerate(patch):
        found = (places.get((key, entry[key])) for key in KEYS[field] if isinstance(entry.get(key), str | int))
        place = min((at for at in found if at is not None), default=None)
        if place is None and field in MERGED and not entry.get("name") and index < len(stored):
            place = index
        if place is None:
            result.append(copied(entry))
        else:
            result[place] = laid_over(result[place], entry) if field in MERGED else copied(entry)
    return result
