"""A whole cluster as one file: every object as it is stored, in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.api.errors import InputError
from pumice.cluster.apiserver.crd import CRDS
from pumice.cluster.apiserver.schema import Object

if TYPE_CHECKING:
    from pumice.cluster.apiserver.store import Store

FORM = "pumice-cluster/1"


class Archive(msgspec.Struct):
    """The file: objects by storage."""

    form: str
    version: int
    objects: dict[str, list[Object]]


def export_cluster(store: Store) -> bytes:
    shelves = sorted(store.ledger.shelves.items())
    objects = {storage: [shelf.objects[key] for key in shelf.keys] for storage, shelf in shelves if shelf.keys}
    return msgspec.json.encode(Archive(FORM, store.ledger.version, objects))


def import_cluster(store: Store, data: bytes, where: str = "archive") -> int:
    """Make the store hold exactly what the file holds; uids and times stay, versions are new. The number of objects is returned."""
    try:
        archive = msgspec.json.decode(data, type=Archive)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not a cluster file: {error}", where=where) from None
    if archive.form != FORM:
        raise InputError(f'its form is "{archive.form}"; this version reads "{FORM}"', where=where)
    wanted = {(storage, _key(obj, where)): obj for storage, objects in archive.objects.items() for obj in objects}
    for storage, shelf in list(store.ledger.shelves.items()):
        for key in [key for key in shelf.keys if (storage, key) not in wanted]:
            store.ledger.remove(storage, key)
    for (storage, key), obj in sorted(wanted.items(), key=lambda item: item[0][0] != CRDS):
        store.ledger.put(storage, key, obj)
    return len(wanted)


def _key(obj: Object, where: str) -> tuple[str, str]:
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or "uid" not in metadata or "apiVersion" not in obj:
        raise InputError("an object in it has no apiVersion, name or uid", where=where)
    return str(metadata.get("namespace") or ""), metadata["name"]
