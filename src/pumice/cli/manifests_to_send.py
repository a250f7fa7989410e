"""The manifests to send: YAML and JSON from files, folders and standard input, read as kubectl reads them and sent unchanged."""

from collections.abc import Iterable, Iterator
from typing import Any

from pumice.api import yaml
from pumice.api.files import streams

Manifest = dict[str, Any]


def manifests(paths: Iterable[str]) -> Iterator[Manifest]:
    """The objects of the files, in their order; a List gives its items. Raises InputError."""
    for where, data in streams(paths, deep=False):
        for document in yaml.documents(data, where):
            yield from _objects(document, document.value)


def _objects(document: yaml.Document, value: Any) -> Iterator[Manifest]:
    if not isinstance(value, dict):
        raise document.error("is not an object; begin with apiVersion and kind")
    for field in ("apiVersion", "kind"):
        if not isinstance(value.get(field), str):
            raise document.error("is missing; every object states it", (field,))
    if value["kind"].endswith("List") and isinstance(value.get("items"), list):
        for item in value["items"]:
            yield from _objects(document, item)
        return
    if not isinstance(value.get("metadata"), dict):
        raise document.error("is missing; every object has a name in it", ("metadata",))
    yield value
