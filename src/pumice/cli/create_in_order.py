"""Objects of files are created in an embedded cluster: kinds first, then the namespaces that they name, queues, and the rest.

Unknown fields are reported and left out, as a file may come from a newer cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from pumice.api import Object, did_you_mean, name_of
from pumice.cli.cluster_file import FileObject
from pumice.cluster.apiserver import PatchRequest, StatusError, WriteOptions
from pumice.cluster.control_plane import ControlPlane

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


def create(plane: ControlPlane, objects: Iterable[FileObject], tell: Callable[[str], None]) -> list[tuple[Object, str]]:
    """Create the objects. Returns each with its outcome in a few words, such as "created". Raises InputError."""
    return list(_each(plane, objects, tell))


def _each(plane: ControlPlane, objects: Iterable[FileObject], tell: Callable[[str], None]) -> Iterator[tuple[Object, str]]:
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


def _refuse_unknown(plane: ControlPlane, one: FileObject) -> None:
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
