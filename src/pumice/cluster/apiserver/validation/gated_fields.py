"""Fields of gates that are off. A writer leaves them out, unless the stored object has them."""

from collections.abc import Set

from pumice.api import Object
from pumice.cluster.apiserver.scheme.marked_fields import Own, marked, structs_in
from pumice.cluster.apiserver.scheme.schema import Shape
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
    own, deeper = marked(shape, _gated)
    found: _Held = []
    for name, gate in own:
        if name in value and gate not in gates:
            found.append((shape, name, value))
    for name, inner in deeper:
        if (held := value.get(name)) is not None and (shared is None or held is not shared.get(name)):
            for each in structs_in(shape.fields[name], held):
                found += _disabled(inner, each, gates)
    return found


def _gated(shape: Shape) -> Own:
    gates = ((name, _option(rules, "gate") or _option(rules, "drop")) for name, rules in shape.rules.items())
    return tuple((name, gate) for name, gate in gates if gate)
