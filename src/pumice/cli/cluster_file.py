"""The objects of a file that a cluster of our own begins with. Each knows where it stands, so that what is wrong with it is told with file
and line. Fields that are not known are named and left out, as the file may come from a cluster that is newer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pumice.api import yaml
from pumice.api.errors import InputError, did_you_mean
from pumice.apiserver import ApiError, Options
from pumice.controllers.objects import Object
from pumice.sim.control_plane import ControlPlane


class Given(NamedTuple):
    """One object of a file."""

    obj: Object
    document: yaml.Document
    path: tuple[str | int, ...]  #: of the object in its document

    def wrong(self, message: str, field: str = "") -> InputError:
        metadata = self.obj["metadata"]
        name = "/".join(str(metadata[part]) for part in ("namespace", "name") if metadata.get(part))
        return self.document.error(message, (*self.path, *_steps(field)), f"{self.obj['kind']} {name}".strip())

    def refused(self, error: ApiError) -> InputError:
        """In the server's words, with the line of the first field that is at fault."""
        causes = (error.details or {}).get("causes") or ()
        if not causes:
            return self.wrong(error.message)
        more = f" (and {len(causes) - 1} more)" if len(causes) > 1 else ""
        return self.wrong(causes[0]["message"] + more, causes[0]["field"])


def _steps(field: str) -> Iterator[str | int]:
    """The path `spec.containers[0].image` step by step."""
    for step in re.findall(r"[^.\[\]]+", field):
        yield int(step) if step.isdigit() else step


def given(path: str) -> list[Given]:
    """The objects of a file, Lists taken apart. Raises InputError."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=path) from None
    return [one for document in yaml.documents(text, path) for one in _objects(document, document.value, ())]


def _objects(document: yaml.Document, value: Any, path: tuple[str | int, ...]) -> Iterator[Given]:
    if isinstance(value, dict) and isinstance(value.get("items"), list):
        for number, item in enumerate(value["items"]):
            yield from _objects(document, item, (*path, "items", number))
        return
    types = {"apiVersion": str, "kind": str, "metadata": dict}
    if not isinstance(value, dict) or not all(isinstance(value.get(field), its_type) for field, its_type in types.items()):
        raise document.error("not a Kubernetes object; it needs apiVersion, kind and metadata", path)
    for field in ("name", "namespace"):
        if not isinstance(value["metadata"].get(field, ""), str):
            raise document.error("is to be a string", (*path, "metadata", field))
    yield Given(value, document, path)


def create(plane: ControlPlane, objects: Iterable[Given], warn: Callable[[str], None]) -> None:
    """Raises InputError."""
    for one in objects:
        _refuse_unknown(plane, one)
        options = Options(validation="Warn")
        try:
            plane.add([one.obj], options)
        except ApiError as error:
            raise one.refused(error) from None
        for warning in options.warnings:
            warn(f"{one.wrong(warning)} is not taken")


def _refuse_unknown(plane: ControlPlane, one: Given) -> None:
    api_version, name = one.obj["apiVersion"], one.obj["kind"]
    if plane.store.kinds.of_object(api_version, name) is None:
        known = [kind.kind for kind in plane.store.kinds if kind.api_version == api_version]
        raise one.wrong(f"no such kind is served in {api_version}{did_you_mean(name, known)}")
