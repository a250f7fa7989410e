"""Create objects in an embedded cluster, wait until their pods run, and show queues and pods as kubectl does; else show why they wait.

Creation of the objects of files in an embedded cluster: in the order above, with the namespaces that they name, after queues have opened.

Unknown fields are reported and left out, as a file may come from a newer cluster.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import click

from pumice.api import Object, did_you_mean, name_of, namespace_of, status_of, uid_of
from pumice.api.json_objects import owners_of
from pumice.api.plural import counted
from pumice.cli.cluster_file import Given
from pumice.cluster.apiserver import PatchRequest, StatusError, Store, WriteOptions
from pumice.cluster.apiserver.table import table
from pumice.cluster.control_plane import ControlPlane
from pumice.text_table import columns, shown_in_line

PATIENCE_S, PAUSE_S = 60.0, 0.05
SETTLED_S = 3.0  #: stop waiting when each pending pod has had a reason for so long
LAG_S = 2.0
GROUPS = "podgroups.scheduling.volcano.sh"
SHOWN = (("queues.scheduling.volcano.sh", "queues"), (GROUPS, "podgroups"), ("pods", "pods"))
WHY_NOT = ("events", "events")

T = TypeVar("T")

DEFINITION, NAMESPACE, QUEUE = "CustomResourceDefinition", "Namespace", "Queue"
FIRST = (DEFINITION, NAMESPACE, "Class", QUEUE)
REST = len(FIRST)


def rank(kind: str) -> int:
    """The place of a kind among the kinds that come first (all classes share one place); REST for other kinds."""
    word = "Class" if kind.endswith("Class") else kind
    return FIRST.index(word) if word in FIRST else REST


def in_order(items: Iterable[T], body: Callable[[T], dict[str, Any]]) -> list[T]:
    """The items in the order of creation, by the kinds of their objects; a queue comes after its parent queue."""
    listed = list(items)
    bodies = [body(item) for item in listed]
    parents = {each["metadata"].get("name"): (each.get("spec") or {}).get("parent") for each in bodies if each["kind"] == QUEUE}

    def place(item: T) -> tuple[int, int]:
        obj = body(item)
        return rank(obj["kind"]), _depth(obj["metadata"].get("name"), parents) if obj["kind"] == QUEUE else 0

    return sorted(listed, key=place)


def _depth(name: Any, parents: dict[Any, Any]) -> int:
    above = []
    while name in parents and name not in above:
        above.append(name)
        name = parents[name]
    return len(above)


def create(plane: ControlPlane, objects: Iterable[Given], tell: Callable[[str], None]) -> list[tuple[Object, str]]:
    """Create the objects. Returns each with its outcome in a few words, such as "created". Raises InputError."""
    return list(_each(plane, objects, tell))


def _each(plane: ControlPlane, objects: Iterable[Given], tell: Callable[[str], None]) -> Iterator[tuple[Object, str]]:
    settled = False
    for one in in_order(objects, lambda one: one.obj):
        if not settled and rank(one.obj["kind"]) == REST:
            plane.quiet()  # the controllers open queues before there is work for them
            settled = True
        _refuse_unknown(plane, one)
        _make_namespace(plane, one.obj)
        options = WriteOptions(validation="Warn")
        try:
            yield one.obj, _written(plane, one.obj, options)
        except StatusError as error:
            raise one.refused(error) from None
        for warning in options.warnings:
            tell(f"{one.wrong(warning)}{' is not taken' if warning.startswith('unknown field') else ''}")


def _written(plane: ControlPlane, obj: Object, options: WriteOptions) -> str:
    """Create the object and return the outcome. One that exists stays as it is, except a queue, which is changed: clusters begin with some
    queues, and a file may want them otherwise. Raises StatusError."""
    if plane.add([obj], options):
        return "created"
    if obj["kind"] != QUEUE:
        return "exists, and stays as it is"
    kind, name = plane.store.kinds.of_object(obj["apiVersion"], QUEUE), name_of(obj)
    assert kind is not None
    before = plane.store.get(kind, name)
    wanted = {part: obj[part] for part in ("metadata", "spec") if part in obj}
    return "exists" if plane.store.patch(kind, name, PatchRequest("merge", wanted), options=options) == before else "configured"


def _refuse_unknown(plane: ControlPlane, one: Given) -> None:
    api_version, name = one.obj["apiVersion"], one.obj["kind"]
    if plane.store.kinds.of_object(api_version, name) is None:
        known = [kind.kind for kind in plane.store.kinds if kind.api_version == api_version]
        raise one.wrong(f"no such kind is served in {api_version}{did_you_mean(name, known)}")


def _make_namespace(plane: ControlPlane, obj: Object) -> None:
    """Create the namespace of the object if it does not exist, so that a file need not contain it."""
    namespace = obj["metadata"].get("namespace")
    kind = plane.store.kinds.of_object(obj["apiVersion"], obj["kind"])
    if namespace and kind is not None and kind.namespaced:
        plane.add([{"apiVersion": "v1", "kind": NAMESPACE, "metadata": {"name": namespace}}])


class Submitted:
    """The objects of a file in the cluster, and the pods that were created since."""

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
        """Whether any of the objects is outside the default namespace."""
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


async def submit(plane: ControlPlane, given: Sequence[Given], say: Callable[[str], None], ended: asyncio.Event) -> int:
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
