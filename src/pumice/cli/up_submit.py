"""Submit objects to an embedded cluster, wait until their pods run, and show queues and pods as kubectl does; else show why they wait."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence

import click

from pumice.api import Object, name_of, namespace_of, status_of, uid_of
from pumice.api.json_objects import owners_of
from pumice.api.plural import counted
from pumice.cli.cluster_file import FileObject
from pumice.cli.create_in_order import create
from pumice.cluster.apiserver import Store
from pumice.cluster.apiserver.tables.table import table
from pumice.cluster.control_plane import ControlPlane
from pumice.escaped_text import shown_in_line
from pumice.text_table import columns

PATIENCE_S, PAUSE_S = 60.0, 0.05
SETTLED_S = 3.0  #: stop waiting when each pending pod has had a reason for so long
LAG_S = 2.0
GROUPS = "podgroups.scheduling.volcano.sh"
SHOWN = (("queues.scheduling.volcano.sh", "queues"), (GROUPS, "podgroups"), ("pods", "pods"))
WHY_NOT = ("events", "events")


class Submitted:
    """The objects of a file in the cluster, and the pods that were created since."""

    def __init__(self, plane: ControlPlane, objects: Sequence[FileObject], tell: Callable[[str], None]) -> None:
        self._store = plane.store
        before = {uid_of(pod) for pod in self._store.all("pods")}
        made = create(plane, objects, tell)
        self._before = before
        self.objects = [obj for obj, _ in made]
        for obj, what in made:
            tell(f"{obj['kind'].lower()} {name_of(obj)} {what}")

    @property
    def everywhere(self) -> bool:
        return any(namespace_of(obj) not in ("", "default") for obj in self.objects)

    def pods(self) -> list[Object]:
        return [pod for pod in self._store.all("pods") if uid_of(pod) not in self._before]

    def pending(self) -> list[Object] | None:
        """The pods that are still pending; None as long as one of the jobs has no pods."""
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


async def submit(plane: ControlPlane, given: Sequence[FileObject], say: Callable[[str], None], ended: asyncio.Event) -> int:
    """Create the objects, wait for their pods and show the outcome. Returns the exit code, 1 if not all pods run. Raises InputError."""
    submitted = Submitted(plane, given, say)
    runs = await _until_they_run(submitted, ended)
    if runs:
        await _until_groups_say_so(plane.store, ended)
    for resource, title in SHOWN if runs else (*SHOWN, WHY_NOT):
        where = " -A" if submitted.everywhere and plane.store.kind(resource).namespaced else ""
        say(f"\n$ kubectl get {title}{where}\n{shown(plane.store, resource, everywhere=bool(where))}")
    return 0 if runs else 1


async def _until_they_run(submitted: Submitted, ended: asyncio.Event) -> bool:
    """Whether all pods run. False when the time is up, the command is ended, or the reason of each pending pod is known."""
    clock = asyncio.get_running_loop().time
    began = clock()
    since: tuple[frozenset[str], float] = frozenset(), began  #: the pending pods, if each has a reason, and since when
    with ProgressLine() as progress:
        while (pending := submitted.pending()) != []:
            explained = frozenset(map(uid_of, pending or ())) if pending and all(map(_is_explained, pending)) else frozenset()
            if explained != since[0]:
                since = explained, clock()
            if ended.is_set() or clock() > began + PATIENCE_S or (explained and clock() > since[1] + SETTLED_S):
                return False
            count = len(submitted.pods())
            progress.show(f"{count - len(pending or ())} of {counted(count, 'pod runs', 'pods run')}, {clock() - began:.0f} s")
            await asyncio.sleep(PAUSE_S)
    return True


async def _until_groups_say_so(store: Store, ended: asyncio.Event) -> None:
    """Wait a moment, until the phases of PodGroups have followed those of their pods."""
    clock = asyncio.get_running_loop().time
    until = clock() + LAG_S
    while any(status_of(group).get("phase") == "Inqueue" for group in store.all(GROUPS)) and clock() < until and not ended.is_set():
        await asyncio.sleep(PAUSE_S)


def _is_explained(pod: Object) -> bool:
    """Whether the pod has a condition that says why the scheduler does not place it."""
    conditions = status_of(pod).get("conditions") or ()
    return any(each["type"] == "PodScheduled" and each["status"] == "False" for each in conditions)


class ProgressLine:
    """A progress line that is overwritten by the next one. Nothing is written if standard error is no terminal."""

    def __init__(self) -> None:
        self._on = sys.stderr.isatty()
        self._text = ""

    def show(self, text: str) -> None:
        if self._on and text != self._text:
            click.echo(f"\r\x1b[K{shown_in_line(text)}", nl=False, err=True)
            self._text = text

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *error: object) -> None:
        if self._text:
            click.echo("\r\x1b[K", nl=False, err=True)


def shown(store: Store, resource: str, *, everywhere: bool = False) -> str:
    """The table that `kubectl get` prints for a resource, of the default namespace or of all namespaces."""
    kind = store.kind(resource)
    objects = list(store.all(resource, "" if everywhere or not kind.namespaced else "default"))
    found = table(kind, iter(objects), store.now(), {}, "None")
    heads = list(found["columnDefinitions"])
    narrow = [number for number, column in enumerate(heads) if not column["priority"]]
    rows = [["" if row["cells"][number] is None else row["cells"][number] for number in narrow] for row in found["rows"]]
    if everywhere:
        rows = [[namespace_of(obj), *row] for obj, row in zip(objects, rows, strict=True)]
    return columns([*(["NAMESPACE"] if everywhere else []), *(heads[number]["name"].upper() for number in narrow)], rows)
