"""Fields with an option in the tables of types, and the way to those in structs further inside."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from pumice.api import Object
from pumice.cluster.apiserver.scheme.schema import Shape

Own = tuple[tuple[str, Any], ...]  #: fields of a struct, each with the value of its option


@cache
def marked(shape: Shape, own_of: Callable[[Shape], Own]) -> tuple[Own, tuple[tuple[str, Shape], ...]]:
    """The fields of a struct that are marked, and those with such fields somewhere inside, each with its struct."""
    structs = ((name, _struct_of(field)) for name, field in shape.fields.items())
    deeper = tuple((name, inner) for name, inner in structs if inner is not None and any(map(own_of, _inside(inner))))
    return own_of(shape), deeper


def structs_in(field: Shape, held: Any) -> Iterable[Object]:
    if not held and field.kind != "struct":
        return ()
    return held.values() if field.kind == "map" else held if field.kind == "list" else (held,)


@cache
def _inside(shape: Shape) -> frozenset[Shape]:
    """All structs of which a struct consists, and itself."""
    found, left = {shape}, [shape]
    while left:
        for inner in map(_struct_of, left.pop().fields.values()):
            if inner is not None and inner not in found:
                found.add(inner)
                left.append(inner)
    return frozenset(found)


def _struct_of(shape: Shape) -> Shape | None:
    inner = shape.element if shape.kind in ("list", "map") and shape.element is not None else shape
    return inner if inner.kind == "struct" else None
