"""Create objects in a cluster of our own, wait until their pods run, and show queues and pods as kubectl would; if they do not run, why."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence

import click

from pumice.cli.cluster_file import Given
from pumice.cli.creating import create
from pumice.cluster.apiserver import Store
from pumice.cluster.apiserver.table import table
from pumice.cluster.control_plane import ControlPlane
from pumice.controllers.objects import Object, name_of, namespace_of, owners_of, status_of, uid_of
from pumice.text_table import columns

PATIENCE_S, PAUSE_S = 60.0, 0.05
TOLD_S = 3.0  #: so long it has been told of every pod that does not run why, before it is believed
LAG_S = 2.0
GROUPS = "podgroups.scheduling.volcano.sh"
SHOWN = (("queues.scheduling.volcano.sh", "queues"), (GROUPS, "podgroups"), ("pods", "pods"))
WHY_NOT = ("events", "events")


class Submitted:
    """The objects of a file in the cluster, and the pods that came with them."""

    def __init__(self, plane: ControlPlane, objects: Sequence[Given], tell: Callable[[str], None]) -> None:
        self._store = plane.store
        before = {uid_of(pod) for pod in self._store.all("pods")}
        made = create(plane, objects, tell)
        self._before = before
        self.objects = [obj for obj, _ in made]
        for obj, what in made:
            tell(f"{obj['kind'].lower()} {name_of(obj)} {what}")

    @property
    def everywhere(self) -> bool:
        """Whether any of them is outside the default namespace."""
        return any(namespace_of(obj) not in ("", "default") for obj in self.objects)

    def pods(self) -> list[Object]:
        return [pod for pod in self._store.all("pods") if uid_of(pod) not in self._before]

    def pending(self) -> list[Object] | None:
        """The pods that do not run yet; None as long as a job has no pods."""
        pods = self.pods()
        owners = {owner["uid"] for pod in pods for owner in owners_of(pod)}
        if any(job is None or uid_of(job) not in owners for job in self._jobs()):
            return None
        return [pod for pod in pods if status_of(pod).get("phase") == "Pending"]

    def _jobs(self) -> Iterator[Object | None]:
        for obj in self.objects:
            kind = self._store.kinds.of_object(obj["apiVersion"], obj["kind"])
            if kind is not None and kind.kind == "Job":
                yield self._store.find(kind.resource, obj["metadata"].get("namespace", "default"), name_of(obj))


async def submit(plane: ControlPlane, given: Sequence[Given], say: Callable[[str], None], ended: asyncio.Event) -> int:
    """The exit code: 1 if the pods do not run in time. Raises InputError."""
    submitted = Submitted(plane, given, say)
    runs = await _until_they_run(submitted, ended)
    if runs:
        await _until_groups_say_so(plane.store, ended)
    for resource, title in SHOWN if runs else (*SHOWN, WHY_NOT):
        where = " -A" if submitted.everywhere and plane.store.kind(resource).namespaced else ""
        say(f"\n$ kubectl get {title}{where}\n{shown(plane.store, resource, everywhere=bool(where))}")
    return 0 if runs else 1


async def _until_they_run(submitted: Submitted, ended: asyncio.Event) -> bool:
    """Whether they do; not, if the time is up or it is known of each why not."""
    clock = asyncio.get_running_loop().time
    began = clock()
    since: tuple[frozenset[str], float] = frozenset(), began  #: which pods wait for a reason that is told, and since when
    with Progress() as progress:
        while (pending := submitted.pending()) != []:
            told = frozenset(map(uid_of, pending or ())) if pending and all(map(_is_told, pending)) else frozenset()
            if told != since[0]:
                since = told, clock()
            if ended.is_set() or clock() > began + PATIENCE_S or (told and clock() > since[1] + TOLD_S):
                return False
            count = len(submitted.pods())
            progress.show(f"{count - len(pending or ())} of {count} pods run, {clock() - began:.0f} s")
            await asyncio.sleep(PAUSE_S)
    return True


async def _until_groups_say_so(store: Store, ended: asyncio.Event) -> None:
    """The phases of PodGroups follow those of their pods within a moment."""
    clock = asyncio.get_running_loop().time
    until = clock() + LAG_S
    while any(status_of(group).get("phase") == "Inqueue" for group in store.all(GROUPS)) and clock() < until and not ended.is_set():
        await asyncio.sleep(PAUSE_S)


def _is_told(pod: Object) -> bool:
    """Whether the scheduler has said why it does not place the pod."""
    conditions = status_of(pod).get("conditions") or ()
    return any(each["type"] == "PodScheduled" and each["status"] == "False" for each in conditions)


class Progress:
    """A line that is written over, where a terminal is."""

    def __init__(self) -> None:
        self._on = sys.stderr.isatty()
        self._text = ""

    def show(self, text: str) -> None:
        if self._on and text != self._text:
            click.echo(f"\r\x1b[K{text}", nl=False, err=True)
            self._text = text

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._text:
            click.echo("\r\x1b[K", nl=False, err=True)


def shown(store: Store, resource: str, *, everywhere: bool = False) -> str:
    """What `kubectl get` prints of a kind, in the default namespace or in all."""
    kind = store.kind(resource)
    objects = list(store.all(resource, "" if everywhere or not kind.namespaced else "default"))
    found = table(kind, iter(objects), store.now(), {}, "None")
    heads = list(found["columnDefinitions"])
    narrow = [number for number, column in enumerate(heads) if not column["priority"]]
    rows = [["" if row["cells"][number] is None else row["cells"][number] for number in narrow] for row in found["rows"]]
    if everywhere:
        rows = [[namespace_of(obj), *row] for obj, row in zip(objects, rows, strict=True)]
    return columns([*(["NAMESPACE"] if everywhere else []), *(heads[number]["name"].upper() for number in narrow)], rows)
