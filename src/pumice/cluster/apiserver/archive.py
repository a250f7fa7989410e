"""A whole cluster as one file: every object as it is stored, in JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from pumice.api import InputError, Object
from pumice.cluster.apiserver.scheme.crd import CRDS

if TYPE_CHECKING:
    from pumice.cluster.apiserver.store import Store


FORM = "pumice-cluster/1"
OBJECTS_IN_A_PIECE = 100


class Archive(msgspec.Struct):
    """The content of the file, with the objects by storage."""

    form: str
    version: int
    objects: dict[str, list[Object]]


def export_cluster(store: Store) -> Iterator[bytes]:
    """The content of the file for the present cluster, in pieces: objects are never changed, so writes may come between two of them."""
    objects = {
        name: [kind_storage.objects[key] for key in kind_storage.keys]
        for name, kind_storage in sorted(store.storage.kind_storages.items())
        if kind_storage.keys
    }
    return _pieces(objects, store.storage.version)


def _pieces(objects: dict[str, list[Object]], version: int) -> Iterator[bytes]:
    encode = msgspec.json.encode
    yield encode(Archive(FORM, version, {}))[: -len("}}")]
    for number, (storage, kept) in enumerate(objects.items()):
        yield b"%s%s:[" % (b"," if number else b"", encode(storage))
        for start in range(0, len(kept), OBJECTS_IN_A_PIECE):
            yield (b"," if start else b"") + encode(kept[start : start + OBJECTS_IN_A_PIECE])[1:-1]
        yield b"]"
    yield b"}}"


def import_cluster(store: Store, data: bytes, where: str = "archive") -> int:
    """Make the store hold exactly the objects of the file. Their uids and times stay, their resourceVersions are new. Return the number of
    objects. Raises InputError."""
    try:
        archive = msgspec.json.decode(data, type=Archive)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not a cluster file: {error}", where=where) from None
    if archive.form != FORM:
        raise InputError(f'its form is "{archive.form}"; this version reads "{FORM}"', where=where)
    wanted = {(storage, _key(obj, where)): obj for storage, objects in archive.objects.items() for obj in objects}
    for storage, kind_storage in list(store.storage.kind_storages.items()):
        for key in [key for key in kind_storage.keys if (storage, key) not in wanted]:
            store.remove_trusted(storage, key)
    for (storage, key), obj in sorted(wanted.items(), key=lambda item: item[0][0] != CRDS):
        store.put_trusted(storage, key, obj)
    return len(wanted)


def _key(obj: Object, where: str) -> tuple[str, str]:
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or "uid" not in metadata or "apiVersion" not in obj:
        raise InputError("an object in it has no apiVersion, name or uid", where=where)
    return str(metadata.get("namespace") or ""), metadata["name"]
