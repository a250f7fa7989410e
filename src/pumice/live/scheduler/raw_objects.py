"""Whole objects as the server last told them, for kinds whose status can only be written as a whole object.

The installed role lets a scheduler read PodGroups by watch alone, so they are kept: the bytes without managedFields, by "namespace/name".
A write that was granted puts its answer here at once, so that the next write need not wait for the watch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from pumice.api.meta import Metadata, Wire
from pumice.api.structs import decoder

T = TypeVar("T", bound=Wire)


class RawObject(NamedTuple, Generic[T]):
    """An object, and the bytes of all of it."""

    item: T
    raw: bytes

    @property
    def metadata(self) -> Metadata:
        meta: Metadata = self.item.metadata  # type: ignore[attr-defined]
        return meta


def whole(struct: type[T]) -> Callable[[msgspec.Raw], RawObject[T]]:
    """A decoder that keeps the bytes."""
    decode = decoder(struct).decode
    return lambda raw: RawObject(decode(raw), slim(raw))


class _Head(msgspec.Struct):
    metadata: Metadata


_metadata_of = msgspec.json.Decoder(_Head)
_parts = msgspec.json.Decoder(dict[str, msgspec.Raw])
_metadata = msgspec.json.Decoder(dict[str, msgspec.Raw])


def slim(raw: bytes | msgspec.Raw) -> bytes:
    """Without managedFields; nothing else is looked at."""
    parts = _parts.decode(raw)
    metadata = _metadata.decode(parts["metadata"])
    metadata.pop("managedFields", None)
    return msgspec.json.encode({**parts, "metadata": metadata})


class RawObjects:
    """The bytes of one kind's objects."""

    def __init__(self) -> None:
        self._objects: dict[str, tuple[int, bytes]] = {}  #: by key: resource version and bytes

    def keep(self, key: str, metadata: Metadata, raw: bytes) -> None:
        version = int(metadata.resource_version or 0)
        known = self._objects.get(key)
        if known is None or version >= known[0]:
            self._objects[key] = (version, raw)

    def told(self, raw: bytes) -> None:
        """The answer to a write."""
        meta = _metadata_of.decode(raw).metadata
        self.keep(f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name, meta, slim(raw))

    def forget(self, key: str) -> None:
        self._objects.pop(key, None)

    def get(self, key: str) -> dict[str, Any] | None:
        known = self._objects.get(key)
        if known is None:
            return None
        value: dict[str, Any] = msgspec.json.decode(known[1])
        return value
