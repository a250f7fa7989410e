"""Create the objects of files in a cluster of our own, in an order that serves, with the namespaces that they name, once queues are open.

Fields that are not known are named and left out, as a file may come from a cluster that is newer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pumice.api.errors import did_you_mean
from pumice.apiserver import ApiError, Options
from pumice.cli.cluster_file import Given
from pumice.cli.creation_order import NAMESPACE, REST, in_order, rank
from pumice.controllers.objects import Object
from pumice.sim.control_plane import ControlPlane


def create(plane: ControlPlane, objects: Iterable[Given], tell: Callable[[str], None]) -> None:
    """Raises InputError."""
    settled = False
    for one in in_order(objects, lambda one: one.obj):
        if not settled and rank(one.obj["kind"]) == REST:
            plane.quiet()  # whoever opens queues has its turn before there is work for them
            settled = True
        _refuse_unknown(plane, one)
        _make_namespace(plane, one.obj)
        options = Options(validation="Warn")
        try:
            plane.add([one.obj], options)
        except ApiError as error:
            raise one.refused(error) from None
        for warning in options.warnings:
            tell(f"{one.wrong(warning)} is not taken")


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
