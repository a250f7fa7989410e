"""Create objects in a cluster of our own, wait until their pods run, and show queues and pods as kubectl would."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pumice.api import yaml
from pumice.api.errors import InputError
from pumice.apiserver import ApiError, Store
from pumice.apiserver.table import table
from pumice.controllers.objects import Object, name_of, owners_of, status_of, uid_of
from pumice.report.columns import columns
from pumice.sim.control_plane import ControlPlane

PATIENCE_S, PAUSE_S = 60.0, 0.05
SHOWN = (("queues.scheduling.volcano.sh", "queues"), ("podgroups.scheduling.volcano.sh", "podgroups"), ("pods", "pods"))


def objects_of(path: str) -> list[Object]:
    """The documents of a file, Lists taken apart. Raises InputError."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=path) from None
    found: list[Object] = []
    for document in yaml.documents(text, path):
        items = list(_items(document.value))
        if not all(isinstance(item.get("metadata"), dict) and "kind" in item and "apiVersion" in item for item in items):
            raise document.error("not a Kubernetes object; it needs apiVersion, kind and metadata")
        found += items
    return found


def _items(value: Any) -> Iterator[Object]:
    if isinstance(value, dict) and isinstance(value.get("items"), list):
        for item in value["items"]:
            yield from _items(item)
    elif value is not None:
        yield value if isinstance(value, dict) else {}


async def submit(plane: ControlPlane, objects: Sequence[Object], say: Callable[[str], None], ended: asyncio.Event) -> int:
    """The exit code: 1 if the pods do not run in time."""
    try:
        plane.add(objects)
    except ApiError as error:
        raise InputError(error.message) from None
    for obj in objects:
        say(f"{obj['kind'].lower()} {name_of(obj)} created")
    runs = await _until(lambda: _all_run(plane.store, objects), ended)
    for resource, title in SHOWN:
        say(f"\n$ kubectl get {title}\n{shown(plane.store, resource)}")
    return 0 if runs else 1


async def _until(holds: Callable[[], bool], ended: asyncio.Event) -> bool:
    until = asyncio.get_running_loop().time() + PATIENCE_S
    while not holds():
        if ended.is_set() or asyncio.get_running_loop().time() > until:
            return False
        await asyncio.sleep(PAUSE_S)
    return True


def _all_run(store: Store, objects: Sequence[Object]) -> bool:
    """Every job among the objects has pods, and all of them run or have run."""
    wanted = [store.find(kind.resource, obj["metadata"].get("namespace", "default"), name_of(obj)) for obj, kind in _jobs(store, objects)]
    pods = list(store.all("pods"))
    for job in wanted:
        own = [pod for pod in pods if job is not None and any(owner["uid"] == uid_of(job) for owner in owners_of(pod))]
        if not own or any(status_of(pod).get("phase") == "Pending" for pod in own):
            return False
    return True


def _jobs(store: Store, objects: Sequence[Object]) -> Iterator[tuple[Object, Any]]:
    for obj in objects:
        kind = store.kinds.of_object(obj["apiVersion"], obj["kind"])
        if kind is not None and kind.kind == "Job":
            yield obj, kind


def shown(store: Store, resource: str) -> str:
    """What `kubectl get` prints of a kind in the default namespace."""
    kind = store.kind(resource)
    found = table(kind, store.all(resource, "default" if kind.namespaced else ""), store.now(), {}, "None")
    heads = list(found["columnDefinitions"])
    narrow = [number for number, column in enumerate(heads) if not column["priority"]]
    rows = [["" if row["cells"][number] is None else row["cells"][number] for number in narrow] for row in found["rows"]]
    return columns([heads[number]["name"].upper() for number in narrow], rows)
