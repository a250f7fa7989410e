"""The shape of an object: which fields there are, of which type, and how lists in it merge.

One tree serves all code that must know a kind's structure: unknown fields and wrong types (`decoding`), strategic merge
(`merge_key`), server-side apply (`keys`, `is_set`, `atomic`), protobuf bodies (`numbers`), declared rules (`rules`) and OpenAPI. Shapes of
built-in kinds come from the tables in `types/`, shapes of custom kinds from their CRD's schema (`structural_schema`).

A list or map shape belongs to one field, since how it merges depends on the field; struct shapes are shared and may be recursive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.resources import files
from typing import Any

Object = dict[str, Any]  #: a Kubernetes object, or a part of one, as JSON has it

SCALARS = frozenset({"string", "int32", "int64", "number", "bool", "bytes", "Quantity", "IntOrString", "Time", "MicroTime", "any"})
#: types of JSON schemas that are a schema or something else, and messages of two fields in protobuf: they are "any" with this name
EITHER = frozenset({"JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray"})
#: the options of fields in the tables of types that `declared_rules` heeds
RULES = frozenset(
    {"member", "with", "filled", "min", "max", "items", "format", "enum", "unique"}
    | {"immutable", "noset", "nounset", "noadd", "noremove", "gate", "drop", "zero"}
)


#: fields of a struct: those with a feature gate, each with its gate, and those with one somewhere inside, each with its struct
Gated = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, "Shape"], ...]]


class Shape:
    """The type of a value at one place in an object. `kind` is one of SCALARS, or "struct", "map", "list"."""

    __slots__ = (
        "atomic",
        "element",
        "fields",
        "gated",
        "is_set",
        "keys",
        "kind",
        "merge",
        "merge_key",
        "name",
        "numbers",
        "omitted",
        "preserve",
        "required",
        "retain_keys",
        "retained",
        "rules",
        "test",
    )

    def __init__(self, kind: str, *, name: str = "", element: Shape | None = None, fields: dict[str, Shape] | None = None) -> None:
        self.kind = kind
        self.name = name  #: of a struct: "core.v1.PodSpec"; empty for structs of CRDs
        self.element = element  #: of a list or map
        self.fields: dict[str, Shape] = {} if fields is None else fields  #: of a struct
        self.required: tuple[str, ...] = ()  #: of a struct: what OpenAPI calls required
        self.retained: tuple[str, ...] = ()  #: of a struct: fields that are structs, for which a patch may list the keys to keep
        self.numbers: dict[int, str] = {}  #: of a struct: protobuf number to field; "+name" stands for an inlined struct
        self.omitted: set[str] = set()  #: of a struct: fields whose zero value JSON leaves out, and protobuf does not
        self.rules: dict[str, tuple[str, ...]] = {}  #: of a struct: what `declared_rules` heeds, by field
        self.preserve = False  #: of a struct: unknown fields are kept
        self.merge = False  #: of a list: strategic merge merges it, and does not replace it
        self.merge_key = ""  #: of a list that merges strategically: the key of its items
        self.retain_keys = False
        self.keys: tuple[str, ...] = ()  #: of a list: keys of items for server-side apply
        self.is_set = False  #: of a list: items are their own keys for server-side apply
        self.gated: Gated | None = None  #: of a struct: made by `declared_rules` on first use
        self.test: Callable[[Any], bool] | None = None  #: made by `decoding` on first use
        self.atomic = False  #: server-side apply treats the whole as one value

    def child(self, field: str) -> Shape | None:
        """The shape of a field of a struct or of a value of a map."""
        return self.element if self.kind == "map" else self.fields.get(field)

    def with_options(self, options: Iterable[str]) -> Shape:
        """Set the options that follow a field in the tables of types. Returns the shape itself."""
        for option in options:
            word, _, value = option.partition("=")
            match word:
                case "merge":
                    self.merge, self.merge_key = True, value
                case "keys":
                    self.keys = tuple(value.split(","))
                case "set":
                    self.is_set = True
                case "atomic":
                    self.atomic = True
                case "retainKeys":
                    self.retain_keys = True
        return self

    def __repr__(self) -> str:
        return f"Shape({self.kind} {self.name})"


ANY = Shape("any")


# The built-in types, read from the tables in `types/` into shapes on first use. Each group version has a file.
#
# A struct is looked up as `shape_of("core.v1.Pod")`. The fields of an inlined struct become fields of its owner, as in JSON.

_structs: dict[str, Shape] = {}
_unread: dict[str, list[list[str]]] = {}  #: the lines of structs whose fields have not been read yet


def shape_of(name: str) -> Shape:
    """The struct called `group.version.Type`. Raises KeyError."""
    if name not in _structs:
        _load(name.rpartition(".")[0])
    return _structs[name]


def _load(module: str) -> None:
    blocks = (files(__package__) / "types" / f"{module}.txt").read_text().split("\n\n")
    for block in blocks:
        if block.startswith("#"):
            continue
        heading, *lines = block.strip().splitlines()
        name, *options = heading.split()
        struct = Shape("struct", name=f"{module}.{name}")
        struct.atomic = "atomic" in options
        _structs[struct.name] = struct
        _unread[struct.name] = [line.split() for line in lines]
    for name in [name for name in _unread if name.startswith(f"{module}.")]:
        _fill(name, module)


def _fill(name: str, module: str) -> None:
    struct = _structs[name]
    for field, type_name, number, *options in _unread.pop(name, ()):
        shape = _resolve(type_name.removeprefix("*"), module)
        if "inline" in options:
            _fill(shape.name, module)
            struct.numbers[int(number)] = f"+{shape.name}"
            struct.fields.update(shape.fields)
            struct.required = (*struct.required, *shape.required)
            struct.omitted |= shape.omitted
            continue
        if rules := tuple(option for option in options if option.partition("=")[0] in RULES):
            struct.rules[field] = rules
        if options and shape.kind in ("list", "map"):
            shape.with_options(options)
        elif "retainKeys" in options:
            struct.retained = (*struct.retained, field)
        struct.fields[field] = shape
        struct.numbers[int(number)] = field
        if "required" in options:
            struct.required = (*struct.required, field)
        elif shape.kind in SCALARS and type_name[0] != "*" and "zero" not in options:
            struct.omitted.add(field)


def _resolve(type_name: str, module: str) -> Shape:
    if type_name.startswith("[]"):
        return Shape("list", element=_resolve(type_name[2:], module))
    if type_name.startswith("map:"):
        return Shape("map", element=_resolve(type_name[4:], module))
    if type_name in SCALARS:
        return Shape(type_name)
    if type_name in EITHER:
        return Shape("any", name=type_name)
    return shape_of(type_name if "." in type_name else f"{module}.{type_name}")


def object_shape(name: str) -> Shape:
    """The shape of a top-level kind: its struct plus apiVersion and kind."""
    struct = shape_of(name)
    struct.fields.setdefault("apiVersion", Shape("string"))
    struct.fields.setdefault("kind", Shape("string"))
    return struct


# Kinds that are served in two versions and stored in one of them.
#
# Events are stored as core/v1, and also read and written as events.k8s.io/v1. HorizontalPodAutoscalers are stored as v2, and also read and
# written as v1, which has no metric except CPU utilization.

#: the name of a field in events.k8s.io/v1, and its name in core/v1
_RENAMED = (
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
)


def core_event_path(path: tuple[str, ...]) -> tuple[str, ...]:
    """Where a field of an Event of events.k8s.io/v1 is stored."""
    return (dict(_RENAMED).get(path[0], path[0]), *path[1:])


def to_core_event(event: Object) -> Object:
    names = dict(_RENAMED)
    return {names.get(key, key): value for key, value in event.items()} | {"apiVersion": "v1"}


def from_core_event(event: Object) -> Object:
    """An Event as events.k8s.io/v1. Its readers rely on `eventTime`; an Event that has only older timestamps gets it from these."""
    names = {core: new for new, core in _RENAMED}
    when = event.get("lastTimestamp") or event.get("firstTimestamp") or event["metadata"].get("creationTimestamp")
    instant = {} if when is None or event.get("eventTime") else {"eventTime": f"{when.removesuffix('Z')}.000000Z"}
    return {names.get(key, key): value for key, value in event.items()} | instant | {"apiVersion": "events.k8s.io/v1"}


def to_autoscaler_v2(autoscaler: Object) -> Object:
    spec = dict(autoscaler.get("spec") or {})
    percent = spec.pop("targetCPUUtilizationPercentage", None)
    if percent is not None:
        target = {"type": "Utilization", "averageUtilization": percent}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    status = dict(autoscaler.get("status") or {})
    status.pop("currentCPUUtilizationPercentage", None)
    return autoscaler | {"apiVersion": "autoscaling/v2", "spec": spec, "status": status}


def from_autoscaler_v2(autoscaler: Object) -> Object:
    spec = dict(autoscaler.get("spec") or {})
    for metric in spec.pop("metrics", ()):
        resource = metric.get("resource") or {}
        if resource.get("name") == "cpu" and "averageUtilization" in resource.get("target", {}):
            spec["targetCPUUtilizationPercentage"] = resource["target"]["averageUtilization"]
    return autoscaler | {"apiVersion": "autoscaling/v1", "spec": spec}
