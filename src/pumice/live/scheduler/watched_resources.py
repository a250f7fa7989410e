"""The resources that are watched, how each is decoded, and which of them a cluster need not have.

Only pods and nodes are required. A server that does not know another kind (an older server, or one without Volcano's definitions) counts as
one without such objects; its list is tried again and again, so that definitions installed later are noticed.

`RawObjects` are whole objects as the server last sent them, for kinds whose status can only be written as a whole object. The installed
role lets a scheduler read PodGroups only by watch, so the objects are kept: the bytes without managedFields, by "namespace/name". The
answer to a granted write is kept at once, so that the next write need not wait for the watch.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pumice.api import kinds as r
from pumice.api.kinds import Kind
from pumice.api.meta import Metadata, Wire
from pumice.api.storage import CSIDriver
from pumice.api.structs import STRUCTS, decoder
from pumice.client.known_versions import Change
from pumice.client.reflector import DEFAULT_PACE, Pace, Reflector
from pumice.client.transport import ListScope, Transport
from pumice.live.cache_sync import synced
from pumice.live.scheduler.options import Options
from pumice.scheduler.framework.policy import Policy

T = TypeVar("T", bound=Wire)


class RawObject(NamedTuple, Generic[T]):
    """The decoded object, and the bytes of the whole object."""

    item: T
    raw: bytes

    @property
    def metadata(self) -> Metadata:
        meta: Metadata = self.item.metadata  # type: ignore[attr-defined]
        return meta


def whole(struct: type[T]) -> Callable[[msgspec.Raw], RawObject[T]]:
    """A decoder that also keeps the bytes of the object."""
    decode = decoder(struct).decode
    return lambda raw: RawObject(decode(raw), slim(raw))


class _Head(msgspec.Struct):
    metadata: Metadata


_metadata_of = msgspec.json.Decoder(_Head)
_parts = msgspec.json.Decoder(dict[str, msgspec.Raw])
_metadata = msgspec.json.Decoder(dict[str, msgspec.Raw])


def slim(raw: bytes | msgspec.Raw) -> bytes:
    """The bytes of an object without managedFields. Nothing else in it is looked at."""
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

    def keep_raw(self, raw: bytes) -> None:
        """Keep an object as the server sent it, in a watch or in the answer to a write."""
        meta = _metadata_of.decode(raw).metadata
        self.keep(meta.key, meta, slim(raw))

    def forget(self, key: str) -> None:
        self._objects.pop(key, None)

    def get(self, key: str) -> dict[str, Any] | None:
        known = self._objects.get(key)
        if known is None:
            return None
        value: dict[str, Any] = msgspec.json.decode(known[1])
        return value


REQUIRED = (r.NODES, r.PODS)
WITH_BYTES = (r.QUEUES, r.POD_GROUPS, r.NODE_SHARDS, r.VOLUME_CLAIMS, r.VOLUMES)  #: written as whole objects
OPTIONAL = (
    r.PRIORITY_CLASSES,
    r.NAMESPACES,
    r.RESOURCE_QUOTAS,
    r.SERVICES,
    r.REPLICATION_CONTROLLERS,
    r.REPLICA_SETS,
    r.STATEFUL_SETS,
    r.DISRUPTION_BUDGETS,
    r.STORAGE_CLASSES,
    r.CSI_NODES,
    r.CSI_DRIVERS,
    r.CSI_CAPACITIES,
    r.VOLUME_ATTACHMENTS,
    r.RESOURCE_CLAIMS,
    r.RESOURCE_SLICES,
    r.DEVICE_CLASSES,
    r.DEVICE_TAINT_RULES,
    r.NUMA_TOPOLOGIES,
    r.HYPER_NODES,
    r.NATIVE_POD_GROUPS,
    r.COMPOSITE_POD_GROUPS,
)
NATIVE = (r.NATIVE_POD_GROUPS, r.COMPOSITE_POD_GROUPS)
VOLCANO = (r.QUEUES, r.POD_GROUPS, r.NUMA_TOPOLOGIES, r.HYPER_NODES)
EVERY = (*REQUIRED, *WITH_BYTES, *OPTIONAL)
#: kinds that only one plugin reads: without that plugin the start does not wait for them
READ_BY = {r.NUMA_TOPOLOGIES: "numa-aware"}
#: the start does not wait for these: few clusters have them, few roles may read them
SELDOM_SERVED = (r.DEVICE_TAINT_RULES, r.NATIVE_POD_GROUPS, r.COMPOSITE_POD_GROUPS)


class WatchSource(Struct, frozen=True):
    resource: Kind
    decode: Callable[[msgspec.Raw], Any]
    required: bool


def sources(options: Options, policy: Policy) -> Iterator[WatchSource]:
    """The resources that these options and this policy call for."""
    unused = {
        **dict.fromkeys(VOLCANO, not policy.reads_volcano),
        **dict.fromkeys(NATIVE, not policy.reads_native_groups),
        r.PRIORITY_CLASSES: not options.priority_classes,
        r.NODE_SHARDS: not policy.reads_volcano or options.sharding.mode == "none",
        r.CSI_DRIVERS: not options.storage_capacity and not policy.has_gate("VolumeLimitScaling"),
        r.CSI_CAPACITIES: not options.storage_capacity,
    }
    for resource in EVERY:
        if unused.get(resource):
            continue
        struct = STRUCTS[resource]
        decode: Callable[[msgspec.Raw], Any] = whole(struct) if resource in WITH_BYTES else decoder(struct).decode
        if resource == r.CSI_DRIVERS and not options.storage_capacity:
            decode = _without_capacity
        yield WatchSource(resource, decode, resource in REQUIRED)


def _without_capacity(raw: msgspec.Raw) -> CSIDriver:
    """A driver whose published capacity is not asked for, so that it must not count as none."""
    driver: CSIDriver = decoder(CSIDriver).decode(raw)
    made: CSIDriver = replace(driver, spec=replace(driver.spec, storage_capacity=None))
    return made


Take = Callable[[str, Change[Any]], None]


def reflectors(wanted: Iterable[WatchSource], transport: Transport, take: Take, pace: Pace = DEFAULT_PACE) -> list[Reflector[Any]]:
    """A reflector for each source. `take` is called with the kind and the change."""
    return [
        Reflector(
            transport,
            ListScope(source.resource),
            source.decode,
            partial(take, source.resource.kept_as),
            pace=pace,
            optional=not source.required,
        )
        for source in wanted
    ]


async def all_synced(following: list[Reflector[Any]], policy: Policy, timeout_s: float) -> None:
    """Wait until all kinds that the policy needs have been read; for kinds that are not required, at most `timeout_s` seconds."""
    needed = [reflector for reflector in following if reflector.scope.resource in REQUIRED]
    rest = [reflector for reflector in following if reflector not in needed and _is_read(reflector.scope.resource, policy)]
    await synced(needed, rest, timeout_s)


def _is_read(resource: Kind, policy: Policy) -> bool:
    if resource in SELDOM_SERVED:
        return False
    return resource not in READ_BY or policy.has_plugin(READ_BY[resource])
