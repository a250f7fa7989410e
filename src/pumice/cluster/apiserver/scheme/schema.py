"""The shape of an object: which fields there are, of which type, and how lists in it merge.

One tree serves all code that must know a kind's structure: unknown fields and wrong types (`decoding`), strategic merge
(`merge_key`), server-side apply (`keys`, `is_set`, `atomic`), protobuf bodies (`numbers`), declared rules (`rules`) and OpenAPI. Shapes of
built-in kinds come from the tables in `types/`, shapes of custom kinds from their CRD's schema (`structural_schema`).

A list or map shape belongs to one field, since how it merges depends on the field; struct shapes are shared and may be recursive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

SCALARS = frozenset({"string", "int32", "int64", "number", "bool", "bytes", "Quantity", "IntOrString", "Time", "MicroTime", "any"})
#: types of JSON schemas that are a schema or something else, and messages of two fields in protobuf: they are "any" with this name
EITHER = frozenset({"JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray"})
#: the options of fields in the tables of types that `declared_rules` heeds
RULES = frozenset(
    {"member", "with", "filled", "always", "min", "max", "items", "bytes", "characters", "format", "keyed", "enum", "unique", "others"}
    | {"immutable", "noset", "nounset", "noadd", "noremove", "gate", "drop", "zero"}
)
#: those that `handwritten_rules` heeds
HANDWRITTEN_RULES = frozenset(
    {"name", "one", "each", "least", "most", "within", "longest", "alone", "needed", "fixed", "once", "distinct", "labels", "template"}
    | {"terms", "opaque", "ip", "cidr", "trimmed", "absolute", "hundred", "port", "share", "weight"}
)


class Shape:
    """The type of a value at one place in an object. `kind` is one of SCALARS, or "struct", "map", "list"."""

    __slots__ = (
        "atomic",
        "between",
        "defaults",
        "element",
        "fields",
        "handwritten",
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
        self.handwritten: dict[str, tuple[str, ...]] = {}  #: of a struct: what `handwritten_rules` heeds, by field
        self.defaults: dict[str, Any] = {}  #: of a struct: what fields have that are left out
        self.between: list[str] = []  #: of a struct: what `struct_rules` heeds
        self.preserve = False  #: of a struct: unknown fields are kept
        self.merge = False  #: of a list: strategic merge merges it, and does not replace it
        self.merge_key = ""  #: of a list that merges strategically: the key of its items
        self.retain_keys = False
        self.keys: tuple[str, ...] = ()  #: of a list: keys of items for server-side apply
        self.is_set = False  #: of a list: items are their own keys for server-side apply
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
