"""Fields of gates that are off. A writer leaves them out, unless the stored object has them."""

from collections.abc import Iterable, Set
from functools import cache
from typing import Any

from pumice.api import Object
from pumice.cluster.apiserver.scheme.schema import Gated, Shape
from pumice.cluster.apiserver.validation.declared_rules import _option

_Held = list[tuple[Shape, str, Object]]  #: a struct, the name of a field, and the part of an object that has it


def drop_disabled(shape: Shape, obj: Object, old: Object | None, gates: Set[str]) -> None:
    """Remove the fields of `obj` whose gate is off, if `old` has no such field."""
    found = _disabled(shape, obj, gates, old)
    if found:
        used = {(owner, name) for owner, name, _ in _disabled(shape, old or {}, gates)}
        for owner, name, part in found:
            if (owner, name) not in used:
                part.pop(name, None)


def _disabled(shape: Shape, value: Object, gates: Set[str], shared: Object | None = None) -> _Held:
    """The fields in an object whose gate is off. The parts that it shares with `shared` are not looked at."""
    marked, deeper = shape.gated or _gated(shape)
    found: _Held = []
    for name, gate in marked:
        if name in value and gate not in gates:
            found.append((shape, name, value))
    for name, inner in deeper:
        if (held := value.get(name)) is not None and (shared is None or held is not shared.get(name)):
            for each in _structs_in(shape.fields[name], held):
                found += _disabled(inner, each, gates)
    return found


def _structs_in(field: Shape, held: Any) -> Iterable[Object]:
    if not held:
        return ()
    return held.values() if field.kind == "map" else held if field.kind == "list" else (held,)


def _gated(shape: Shape) -> Gated:
    structs = ((name, _struct_of(field)) for name, field in shape.fields.items())
    deeper = tuple((name, inner) for name, inner in structs if inner is not None and any(map(_marked, _inside(inner))))
    shape.gated = _marked(shape), deeper
    return shape.gated


def _marked(shape: Shape) -> tuple[tuple[str, str], ...]:
    gates = ((name, _option(rules, "gate") or _option(rules, "drop")) for name, rules in shape.rules.items())
    return tuple((name, gate) for name, gate in gates if gate)


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
