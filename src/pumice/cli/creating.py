"""Create the objects of files in a cluster of our own, in an order that serves, with the namespaces that they name, once queues are open.

Fields that are not known are named and left out, as a file may come from a cluster that is newer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pumice.api.errors import did_you_mean
from pumice.apiserver import ApiError, Options, Patch
from pumice.cli.cluster_file import Given
from pumice.cli.creation_order import NAMESPACE, QUEUE, REST, in_order, rank
from pumice.controllers.objects import Object, name_of
from pumice.sim.control_plane import ControlPlane


def create(plane: ControlPlane, objects: Iterable[Given], tell: Callable[[str], None]) -> list[tuple[Object, str]]:
    """The objects, and what became of each, in a word or two. Raises InputError."""
    return list(_each(plane, objects, tell))


def _each(plane: ControlPlane, objects: Iterable[Given], tell: Callable[[str], None]) -> Iterator[tuple[Object, str]]:
    settled = False
    for one in in_order(objects, lambda one: one.obj):
        if not settled and rank(one.obj["kind"]) == REST:
            plane.quiet()  # whoever opens queues has its turn before there is work for them
            settled = True
        _refuse_unknown(plane, one)
        _make_namespace(plane, one.obj)
        options = Options(validation="Warn")
        try:
            yield one.obj, _written(plane, one.obj, options)
        except ApiError as error:
            raise one.refused(error) from None
        for warning in options.warnings:
            tell(f"{one.wrong(warning)}{' is not taken' if warning.startswith('unknown field') else ''}")


def _written(plane: ControlPlane, obj: Object, options: Options) -> str:
    """What is there stays as it is, but for queues: every cluster begins with some, and a file may want them otherwise. Raises ApiError."""
    if plane.add([obj], options):
        return "created"
    if obj["kind"] != QUEUE:
        return "exists, and stays as it is"
    kind, name = plane.store.kinds.of_object(obj["apiVersion"], QUEUE), name_of(obj)
    assert kind is not None
    before = plane.store.get(kind, name)
    wanted = {part: obj[part] for part in ("metadata", "spec") if part in obj}
    return "exists" if plane.store.patch(kind, name, Patch("merge", wanted), options=options) == before else "configured"


def _refuse_unknown(plane: ControlPlane, one: Given) -> None:
    api_version, name = one.obj["apiVersion"], one.obj["kind"]
    if plane.store.kinds.of_object(api_version, name) is None:
        known = [kind.kind for kind in plane.store.kinds if kind.api_version == api_version]
        raise one.wrong(f"no such kind is served in {api_version}{did_you_mean(name, known)}")


def _make_namespace(plane: ControlPlane, obj: Object) -> None:
    """A file need not bring the namespaces of its objects."""
    namespace = obj["metadata"].get("namespace")
    kind = plane.store.kinds.of_object(obj["apiVersion"], obj["kind"])
    if namespace and kind is not None and kind.namespaced:
        plane.add([{"apiVersion": "v1", "kind": NAMESPACE, "metadata": {"name": namespace}}])
