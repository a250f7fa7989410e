"""Recordings without names: each name is replaced by its keyed hash, so that equal names stay equal. Amounts, times and shapes are kept.

All free text in an object is treated as a name, except the fields in WORDS and values that are numbers, durations or truth values. Keys of
labels are kept where Kubernetes, Volcano or a vendor of devices gave them a meaning. Configurations stay as they are.
"""

import re
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import inspect
from msgspec.structs import replace

from pumice.api.pod import Pod
from pumice.api.quantity import Quantity
from pumice.api.structs import STRUCTS, decoder, encode
from pumice.inputs.recording.entry_format import Begin, Cycle, Entry, PhaseSet, Put, Removed, Restored, Whole

#: fields whose text is not a name that a user has chosen
WORDS = """
    access_modes allocation_mode api_version attributes capacity counters creation_timestamp deletion_timestamp distinct_attribute driver
    effect expression extended_resource_name kind last_transition_time match_attribute max_unavailable min_available operator phase protocol
    provisioner reason resize restart_policy scheduler_name start_time status transition_id type version volume_mode
"""
_WORDS = frozenset(WORDS.split())
LABELS = frozenset(["annotations", "labels", "match_labels", "node_selector", "selector"])
LABEL_KEYS = frozenset(["key", "topology_key", "topology_keys", "match_label_keys", "mismatch_label_keys"])
KEPT = frozenset(["", "default", "root", "kube-system", "ReplicaSet", "StatefulSet", "ReplicationController"])
_MEANT = re.compile(r"(^|\.)(kubernetes\.io|k8s\.io|volcano\.sh|pumice\.io|nvidia\.com|amd\.com|alibabacloud\.com)/")
_SHAPE = re.compile(r"true|false|\*|[-+]?[0-9.]+([a-zµ%]{1,2}[0-9.]*)*|[0-9]+[KMGTPE]i?")
_NUMBERED = re.compile(r"(.+?)((?:-[0-9]{1,6})?)")
_STRUCTS = {kind.kept_as: struct for kind, struct in STRUCTS.items()}


class Anonymous:
    """Makes entries of a recording anonymous: hashes take the place of names. The same key gives the same hashes."""

    def __init__(self, key: bytes) -> None:
        self._key = blake2b(key).digest()

    def entry(self, entry: Entry) -> Entry:
        match entry:
            case Begin():
                return replace(entry, anonymous=True, default_queue=self._name(entry.default_queue))
            case Put(kind=kind):
                return replace(entry, object=self._object(_STRUCTS[kind], entry.object))
            case Restored():
                return replace(entry, object=self._object(Pod, entry.object))
            case Removed():
                return replace(entry, key=self._name(entry.key))
            case PhaseSet():
                return replace(entry, job=self._name(entry.job))
            case Cycle():
                return self._cycle(entry)
            case Whole():
                return entry

    def _object(self, struct: type, raw: msgspec.Raw) -> msgspec.Raw:
        return msgspec.Raw(encode(self._struct(decoder(struct).decode(raw))))

    def _cycle(self, cycle: Cycle) -> Cycle:
        names = self._names
        return replace(
            cycle,
            binds=names(cycle.binds),
            evictions=[
                replace(each, pod=self._name(each.pod), node=self._name(each.node), beneficiary=self._name(each.beneficiary))
                for each in cycle.evictions
            ],
            pipelined=names(cycle.pipelined),
            nominations=names(cycle.nominations),
            groups=[replace(each, job=self._name(each.job), hypernode=self._name(each.hypernode)) for each in cycle.groups],
            written={self._name(pod): self._pairs(pairs) for pod, pairs in cycle.written.items()},
            tried=list(map(self._name, cycle.tried)),
            gathering=(*cycle.gathering[:2], list(map(self._name, cycle.gathering[2]))) if cycle.gathering is not None else None,
            deserved={self._name(queue): amounts for queue, amounts in cycle.deserved.items()},
        )

    def _names(self, places: dict[str, str]) -> dict[str, str]:
        return {self._name(pod): self._name(node) for pod, node in places.items()}

    # -- objects

    def _struct(self, item: msgspec.Struct) -> msgspec.Struct:
        return replace(item, **{field: self._hidden(field, getattr(item, field)) for field in _fields_with_text(type(item))})

    def _hidden(self, field: str, value: Any) -> Any:
        match value:
            case Quantity():
                return value
            case msgspec.Struct():
                return self._struct(value)
            case list():
                return [self._hidden(field, each) for each in value]
            case dict() if field in LABELS:
                return self._pairs(value)
            case dict() if any(isinstance(each, Quantity) for each in value.values()):
                return value
            case dict():
                return {key if field in _WORDS else self._name(key): self._hidden(field, each) for key, each in value.items()}
            case str() if field in LABEL_KEYS:
                return self._label_key(value)
            case str() if field == "message":
                return ""
            case str() if field not in _WORDS:
                return self._text(value)
        return value

    def _pairs(self, pairs: dict[str, str]) -> dict[str, str]:
        return {self._label_key(key): self._text(value) for key, value in pairs.items()}

    def _label_key(self, key: str) -> str:
        return key if _MEANT.search(key) else self._name(key)

    def _text(self, value: str) -> str:
        return value if _SHAPE.fullmatch(value) else self._name(value)

    def _name(self, name: str) -> str:
        """The name with each of its parts, separated by slashes, replaced by a hash. A number at the end of a part is kept."""
        return "/".join(map(self._part, name.split("/")))

    def _part(self, part: str) -> str:
        if part in KEPT:
            return part
        stem, number = _NUMBERED.fullmatch(part).groups()  # type: ignore[union-attr]
        return f"x{blake2b(stem.encode(), digest_size=6, key=self._key).hexdigest()}{number}"


@lru_cache(maxsize=1024)
def _fields_with_text(struct: type[msgspec.Struct]) -> tuple[str, ...]:
    """The names of the struct's fields that hold free text, at any depth."""
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return tuple(field.name for field in info.fields if _has_text(field.type))


def _has_text(kind: inspect.Type) -> bool:
    match kind:
        case inspect.StrType() | inspect.StructType() | inspect.DictType():
            return True
        case inspect.ListType() | inspect.CollectionType():
            return _has_text(kind.item_type)
        case inspect.UnionType():
            return any(map(_has_text, kind.types))
    return False
