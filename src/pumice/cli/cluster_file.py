"""The objects of a file for an embedded cluster, and the scheduler configurations among them.

Each object knows its place in the file, so that errors about it name file and line.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from pumice.api import InputError, Object, yaml
from pumice.api.files import file_bytes
from pumice.api.manifests import CONFIGURATION_KINDS, ConfigText, configurations_of
from pumice.cluster.apiserver import StatusError


class FileObject(NamedTuple):
    """One object of a file."""

    obj: Object
    document: yaml.Document
    path: tuple[str | int, ...]  #: the place of the object in its document

    def wrong(self, message: str, field: str = "") -> InputError:
        metadata = self.obj["metadata"]
        name = "/".join(str(metadata[part]) for part in ("namespace", "name") if metadata.get(part))
        return self.document.error(message, (*self.path, *_steps(field)), f"{self.obj['kind']} {name}".strip())

    def refused(self, error: StatusError) -> InputError:
        """The error for an object that the server refused: the server's message, with the line of the first wrong field."""
        causes = (error.details or {}).get("causes") or ()
        if not causes:
            return self.wrong(error.message)
        more = f" (and {len(causes) - 1} more)" if len(causes) > 1 else ""
        return self.wrong(causes[0]["message"] + more, causes[0]["field"])

    def configurations(self) -> Iterator[ConfigText]:
        """The scheduler configurations in the object, if it is a ConfigMap that holds any."""
        data = self.obj.get("data")
        if self.obj["kind"] == "ConfigMap" and isinstance(data, dict):
            texts = {key: text for key, text in data.items() if isinstance(text, str)}
            yield from configurations_of(texts, self.document.where, lambda key: self.document.line((*self.path, "data", key)))


def _steps(field: str) -> Iterator[str | int]:
    """The steps of a path such as `spec.containers[0].image`."""
    for step in re.findall(r"[^.\[\]]+", field):
        yield int(step) if step.isdigit() else step


class ClusterFile(NamedTuple):
    """The objects and the configurations of a file, in its order."""

    objects: list[FileObject]
    configurations: list[ConfigText]


def read_cluster_file(path: str) -> ClusterFile:
    """Read a file; a List gives its items. Raises InputError."""
    text = file_bytes(path)
    read = ClusterFile([], [])
    for document in yaml.documents(text, path):
        if isinstance(document.value, dict) and document.value.get("kind") in CONFIGURATION_KINDS:
            read.configurations.append(ConfigText("", path, document.line(), document.value, document))
            continue
        for one in _objects(document, document.value, ()):
            read.objects.append(one)
            read.configurations.extend(one.configurations())
    return read


def _objects(document: yaml.Document, value: Any, path: tuple[str | int, ...]) -> Iterator[FileObject]:
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
    yield FileObject(value, document, path)
