"""The shape of an object: which fields there are, of which type, and how lists in it merge.

One tree serves everything that must know a kind's structure: unknown fields and wrong types (`conform`), strategic merge
(`merge_key`), server-side apply (`keys`, `is_set`, `atomic`), protobuf bodies (`numbers`) and OpenAPI. Shapes of built-in kinds
come from the tables in `types/`, shapes of custom kinds from their CRD's schema (`structural`).

A list or map shape belongs to one field, since how it merges depends on the field; struct shapes are shared and may be recursive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Object = dict[str, Any]  #: a Kubernetes object, or a part of one, as JSON has it

SCALARS = frozenset({"string", "int32", "int64", "number", "bool", "bytes", "Quantity", "IntOrString", "Time", "MicroTime", "any"})


class Shape:
    """A type at one place. `kind` is one of SCALARS, or "struct", "map", "list"."""

    __slots__ = (
        "atomic",
        "element",
        "fields",
        "is_set",
        "keys",
        "kind",
        "merge",
        "merge_key",
        "name",
        "numbers",
        "preserve",
        "required",
        "retain_keys",
        "retained",
        "test",
    )

    def __init__(self, kind: str, *, name: str = "", element: Shape | None = None, fields: dict[str, Shape] | None = None) -> None:
        self.kind = kind
        self.name = name  #: of a struct: "core.v1.PodSpec"; empty for structs of CRDs
        self.element = element  #: of a list or map
        self.fields: dict[str, Shape] = {} if fields is None else fields  #: of a struct
        self.required: tuple[str, ...] = ()  #: of a struct: what OpenAPI calls required
        self.retained: tuple[str, ...] = ()  #: of a struct: fields that are structs of which a patch says which keys stay
        self.numbers: dict[int, str] = {}  #: of a struct: protobuf number to field; "+name" stands for an inlined struct
        self.preserve = False  #: a struct that keeps fields it does not know
        self.merge = False  #: of a list: strategic merge adds to it
        self.merge_key = ""  #: of a list that merges strategically: the key of its items
        self.retain_keys = False
        self.keys: tuple[str, ...] = ()  #: of a list: keys of items for server-side apply
        self.is_set = False  #: of a list: items are their own keys for server-side apply
        self.test: Callable[[Any], bool] | None = None  #: made by `conform` on first use
        self.atomic = False  #: server-side apply treats it as one value

    def child(self, field: str) -> Shape | None:
        """The shape of a field of a struct or of a value of a map."""
        return self.element if self.kind == "map" else self.fields.get(field)

    def with_options(self, options: Iterable[str]) -> Shape:
        """Read the words that follow a field in the tables of types."""
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
