"""Create objects in a cluster of our own, wait until their pods run, and show queues and pods as kubectl would; if they do not run, why."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pumice.apiserver import Store
from pumice.apiserver.table import table
from pumice.cli.cluster_file import Given, create
from pumice.controllers.objects import Object, name_of, owners_of, status_of, uid_of
from pumice.report.columns import columns
from pumice.sim.control_plane import ControlPlane

PATIENCE_S, PAUSE_S = 60.0, 0.05
SHOWN = (("queues.scheduling.volcano.sh", "queues"), ("podgroups.scheduling.volcano.sh", "podgroups"), ("pods", "pods"))
WHY_NOT = ("events", "events")


async def submit(plane: ControlPlane, submitted: Sequence[Given], say: Callable[[str], None], ended: asyncio.Event) -> int:
    """The exit code: 1 if the pods do not run in time. Raises InputError."""
    create(plane, submitted, say)
    objects = [one.obj for one in submitted]
    for obj in objects:
        say(f"{obj['kind'].lower()} {name_of(obj)} created")
    runs = await _until(lambda: _all_run(plane.store, objects), ended)
    for resource, title in SHOWN if runs else (*SHOWN, WHY_NOT):
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
