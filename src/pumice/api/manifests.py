"""Streams of Kubernetes objects, read into wire structs.

The input is YAML of several documents, JSON objects or Lists (`kubectl get ... -o json`). Kinds that scheduling does not read are
skipped. Wrong input raises InputError with file, line, document, object, field, what was found and what to write. Configurations (a
scheduler ConfigMap, a KubeSchedulerConfiguration) are set aside as text for `pumice.scheduler.config`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from pumice.api import yaml
from pumice.api.core import ConfigMap
from pumice.api.errors import InputError, raise_all
from pumice.api.gang_dialects import READ
from pumice.api.kinds import CLUSTER_WIDE, group_of
from pumice.api.meta import Metadata, Wire
from pumice.api.pod import Pod
from pumice.api.problems import describe, explain, subject_of
from pumice.api.structs import KEPT_AS, KINDS, WORKLOADS, convert, decoder
from pumice.api.times import instant

CONFIGURATION_KINDS = ("KubeSchedulerConfiguration", "Policy")
AS_YAML = (*CONFIGURATION_KINDS, "Status", "")  #: kinds of JSON objects of which the lines are wanted
GANGS = frozenset((kind.group, kind.kind) for kind in READ)
AS_IS = WORKLOADS | GANGS  #: kinds that are also kept as they were written
CONFIG_MAP_KEYS = ("volcano-scheduler.conf", "kube-batch.conf", "kube-batch-conf.yaml")


class ConfigText(Struct):
    """A scheduler configuration found among the objects, still as text."""

    text: str
    where: str
    first_line: int = 1  #: the line in `where` on which the text begins
    document: dict[str, Any] | None = None  #: a KubeSchedulerConfiguration or Policy, already parsed
    source: yaml.Document | None = None
    key: str = ""  #: the key of the ConfigMap that holds it


class WorkloadManifest(Struct, frozen=True):
    """An object from which controllers create pods."""

    obj: dict[str, Any]
    where: str

    @property
    def is_served(self) -> bool:
        """Whether it comes from a server, whose controllers have looked after it."""
        return bool(self.obj["metadata"].get("uid") or self.obj.get("status"))


class Objects(Struct):
    """All objects that were read, in the order of the files."""

    items: list[tuple[str, Wire]] = field(default_factory=list)
    configurations: list[ConfigText] = field(default_factory=list)
    workloads: list[WorkloadManifest] = field(default_factory=list)
    gangs: list[WorkloadManifest] = field(default_factory=list)  #: objects that mean a gang (`api/gang_dialects.py`)
    groups: set[str] = field(default_factory=set)  #: the API groups of the objects, such as kube-batch's
    faults: list[InputError] = field(default_factory=list)  #: why objects could not be read
    namespace: str = "default"  #: of objects that state none
    listed: bool = False  #: a List was read, as `kubectl get` writes it: its cluster may hold more objects
    whole: bool = False  #: every kind was listed, so nothing is missing
    plugins_dir: str | None = None  #: the folder from which the scheduler of their cluster loads plugins
    _seen: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def of(self, kind: str) -> list[Any]:
        return [item for name, item in self.items if name == kind]

    def lacking(self) -> frozenset[str]:
        """The kinds of which no object was read, although the cluster that a List came from may have some."""
        if self.whole or not self.listed:
            return frozenset()
        return frozenset(KEPT_AS.get(key, key[1]) for key in KINDS) - {kind for kind, _ in self.items}

    def add(self, kind: str, item: Wire, place: str, key: tuple[str, str, str]) -> str | None:
        """Add one object. If one of the same kind and name is there already, add nothing and return the place of that one."""
        earlier = self._seen.setdefault(key, place)
        if earlier is not place:
            return earlier
        self.items.append((kind, item))
        return None

    def attempt(self, read: Callable[..., None], *what: Any) -> None:
        """Call `read` for one object; if it raises InputError, keep that fault and go on."""
        try:
            read(*what, self)
        except InputError as fault:
            self.faults.append(fault)

    def check(self) -> None:
        """Raise InputError with the faults, if there are any."""
        raise_all(self.faults)


def read_all(streams: Iterable[tuple[str, bytes]], namespace: str = "default") -> Objects:
    """Read streams, each with its name (`files.streams`). Objects that state no namespace are of this one. Raises InputError with all
    faults."""
    objects = Objects(namespace=namespace)
    for where, data in streams:
        _read_data(data, where, objects)
    objects.check()
    return objects


def read_stream(data: bytes, where: str, objects: Objects) -> None:
    """Read one stream into `objects`. Raises InputError."""
    _read_data(data, where, objects)
    objects.check()


def _read_data(data: bytes, where: str, objects: Objects) -> None:
    if data[:200].lstrip()[:1] == b"{":
        try:
            for number, (piece, listing) in enumerate(_json_objects(data), 1):
                _read_json(piece, listing, where, number, objects)
            return
        except RecursionError:
            raise InputError(f"nested more than {yaml.MAX_DEPTH} levels deep", where=where) from None
        except msgspec.DecodeError:
            pass  # flow-style YAML, several documents, or an error: the YAML reader finds out which, and where
    for document in yaml.documents(data, where):
        objects.attempt(_read_value, document, document.value, ())


class _Head(msgspec.Struct, rename="camel", gc=False):
    kind: str = ""
    api_version: str = ""


class _Listing(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    items: list[msgspec.Raw] | None = None


def _json_objects(data: bytes) -> list[tuple[bytes, _Listing]]:
    """The objects of a text, which mostly is one. Raises DecodeError also if one is better read as YAML."""
    try:
        found = [(data, msgspec.json.decode(data, type=_Listing))]
    except msgspec.DecodeError:
        pieces = re.split(yaml.BETWEEN_OBJECTS.encode(), data)
        found = [(piece, msgspec.json.decode(piece, type=_Listing)) for piece in pieces]
    if any(listing.kind in AS_YAML and listing.items is None for _, listing in found):
        raise msgspec.DecodeError
    return found


def _read_json(data: bytes | msgspec.Raw, listing: _Listing, where: str, number: int, objects: Objects) -> None:
    if listing.items is None:
        objects.attempt(_read_raw, data, where, number, listing)
    else:
        objects.listed = True
        inherited = _Head(listing.kind.removesuffix("List"), listing.api_version)
        for number, raw in enumerate(listing.items, 1):
            objects.attempt(_read_raw, raw, where, number, inherited)


def _read_raw(raw: bytes | msgspec.Raw, where: str, number: int, inherited: _Head | _Listing, objects: Objects) -> None:
    head = msgspec.json.decode(raw, type=_Head)
    kind, api_version = head.kind or inherited.kind, head.api_version or inherited.api_version
    is_workload = (group_of(api_version), kind) in AS_IS
    struct = KINDS.get((group_of(api_version), kind))
    if struct is None:
        if kind == "List":
            _read_json(raw, msgspec.json.decode(raw, type=_Listing), where, number, objects)
        elif is_workload:
            _read_workload({"kind": kind, "apiVersion": api_version} | msgspec.json.decode(raw), f"{where}, document {number}", objects)
        return
    try:
        item = decoder(struct).decode(raw)
    except msgspec.ValidationError as error:
        value = msgspec.json.decode(raw)
        message, path = explain(error, value)
        raise InputError(message, where=where, document=number, subject=subject_of(kind, value), field=yaml.field_name(path)) from None
    _take(kind, api_version, item, where, number, objects, lambda message, path: _plain_error(message, path, where, number, kind, item))
    if isinstance(item, ConfigMap):
        objects.configurations += configurations_of(item.data, where)
    elif is_workload:
        _read_workload({"kind": kind, "apiVersion": api_version} | msgspec.json.decode(raw), f"{where}, document {number}", objects)


def _plain_error(message: str, path: tuple[str | int, ...], where: str, number: int, kind: str, item: Any) -> InputError:
    return InputError(message, where=where, document=number, subject=f"{kind} {item.metadata.name}", field=yaml.field_name(path))


def _read_value(document: yaml.Document, value: Any, path: tuple[str | int, ...], objects: Objects) -> None:
    if not isinstance(value, dict):
        raise document.error(f"found {describe(value)} where an object with apiVersion and kind belongs", path)
    kind, api_version = value.get("kind"), value.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(api_version, str):
        missing = "kind" if isinstance(api_version, str) else "apiVersion"
        raise document.error(f"has no {missing}; write for example `{missing}: {'Pod' if missing == 'kind' else 'v1'}`", path)
    if kind in CONFIGURATION_KINDS and not path:
        objects.configurations.append(ConfigText("", document.where, document.line(), value, document))
        return
    if kind == "Status" and value.get("status") == "Failure":
        raise document.error(f"is no object, but an API server's refusal: {value.get('message')}", path)
    if kind == "List" and not isinstance(value.get("items"), list | None):
        raise document.error(f"found {describe(value['items'])} where a list belongs", (*path, "items"))
    if isinstance(value.get("items"), list) and kind.endswith("List"):
        objects.listed = True
        for index, item in enumerate(value["items"]):
            if isinstance(item, dict) and kind != "List":
                item = {"kind": kind.removesuffix("List"), "apiVersion": api_version} | item
            objects.attempt(_read_value, document, item, (*path, "items", index))
        return
    is_workload, place = (group_of(api_version), kind) in AS_IS, f"{document.where}, document {document.number}"
    struct = KINDS.get((group_of(api_version), kind))
    if struct is None:
        if is_workload:
            _read_workload(value, place, objects)
        return
    subject = subject_of(kind, value)
    try:
        item = convert(value, struct)
    except msgspec.ValidationError as error:
        message, inner = explain(error, value, lambda inner: document.text((*path, *inner)))
        raise document.error(message, (*path, *inner), subject) from None
    _take(
        kind,
        api_version,
        item,
        document.where,
        document.number,
        objects,
        lambda message, inner: document.error(message, (*path, *inner), subject),
    )
    if isinstance(item, ConfigMap):
        objects.configurations += configurations_of(item.data, document.where, lambda key: document.line((*path, "data", key)))
    elif is_workload:
        _read_workload(value, place, objects)


def configurations_of(data: Mapping[str, str] | None, where: str, line: Callable[[str], int] = lambda key: 0) -> Iterator[ConfigText]:
    """The scheduler configurations in the data of a ConfigMap. `line` gives the line of a key."""
    for key in CONFIG_MAP_KEYS:
        if key in (data or {}):
            yield ConfigText((data or {})[key], where, line(key) + 1, key=key)


def _read_workload(value: dict[str, Any], where: str, objects: Objects) -> None:
    """Keep a workload, or what means a gang, as it is, for controllers to read. One with a uid says nothing about whom the input is for: it
    is part of a dump."""
    meta = value.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str) or not meta["name"]:
        raise InputError('has no name; write `metadata: {name: "..."}`', where=where, subject=str(value["kind"]))
    if not meta.get("uid"):
        objects.groups.add(group_of(value["apiVersion"]))
    kept = objects.gangs if (group_of(value["apiVersion"]), value["kind"]) in GANGS else objects.workloads
    kept.append(WorkloadManifest(value | {"metadata": {"namespace": objects.namespace} | meta}, where))


def _take(kind: str, api_version: str, item: Any, where: str, number: int, objects: Objects, error: Any) -> None:
    meta: Metadata = item.metadata
    if not meta.name:
        raise error('has no name; write `name: "..."`', ("metadata", "name"))
    for name in ("creationTimestamp", "deletionTimestamp"):
        text = meta.creation_timestamp if name == "creationTimestamp" else meta.deletion_timestamp
        if text and not _is_instant(text):
            raise error(f'"{text}" is not a time; write one such as "2026-01-01T12:00:00Z"', ("metadata", name))
    if isinstance(item, Pod):
        _check_requests(item, error)
    group = group_of(api_version)
    objects.groups.add(group)
    kind = KEPT_AS.get((group, kind), kind)
    namespace = "" if kind in CLUSTER_WIDE else meta.namespace or objects.namespace
    if namespace not in ("", "default", meta.namespace):
        item = replace(item, metadata=replace(meta, namespace=namespace))
    earlier = objects.add(kind, item, f"{where}, document {number}", (kind, namespace, meta.name))
    if earlier:
        raise error(f"stands twice (first in {earlier}); remove one or rename it", ())


def _check_requests(pod: Pod, error: Any) -> None:
    for part, containers in (("initContainers", pod.spec.init_containers), ("containers", pod.spec.containers)):
        for index, container in enumerate(containers or ()):
            for name, amount in ((container.resources.requests if container.resources else None) or {}).items():
                if amount.milli < 0:
                    raise error(f'"{amount.text}" is negative; write 0 or more', ("spec", part, index, "resources", "requests", name))


def _is_instant(text: str) -> bool:
    try:
        instant(text)
    except ValueError:
        return False
    return True
