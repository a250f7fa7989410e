"""Rules that the tables of types declare of single fields: who breaks them is refused.

Kubernetes declares the validation of its newer kinds at their fields, and so do the tables in `types/`. What is found comes in the order in
which Kubernetes finds it: of a struct first what concerns several fields, then field by field. A field that an update does not touch is not
looked at; a rule that a value may not be there at all, or not change, ends the checks of its field.

    member          one of the fields that are alternatives: exactly one must be set
    with=FIELD      where it is set, FIELD must be set
    filled          it must not be missing, empty or zero
    always          its form is checked even if it is empty
    min= max=       bounds of a number; items= of the length of a list or map; bytes= characters= of that of a text
    format=         of a name, or of each one in a list, as `name_rules` calls it; keyed= of the keys of a map
    others=         the smallest number that is not kept for Kubernetes' own
    enum=           its values
    unique          no two items of a list have the same `keys`, or the same value of unique=KEY, or are the same
    immutable, noset, nounset, noadd, noremove    what an update may not do
    gate=           it is forbidden unless this feature gate is on; whoever writes objects leaves it out before
    drop=           it is left out unless this feature gate is on
"""

import json
from collections.abc import Iterable, Iterator, Set
from typing import Any

from pumice.api import Object
from pumice.cluster.apiserver.scheme.schema import Shape
from pumice.cluster.apiserver.validation.field_rules import Causes, compact, repeated, unsupported
from pumice.cluster.apiserver.validation.name_rules import named


def causes(shape: Shape, value: Object, old: Object | None, place: str, gates: Set[str], *fields: str) -> Causes:
    """The causes for refusing a struct, or only these of its fields. Without `old` it is a new one."""
    return _Reading(gates, old is not None).struct(shape, value, old, place, fields)


class _Reading:
    """One object that is checked."""

    def __init__(self, gates: Set[str], is_update: bool) -> None:
        self._gates = gates
        self._is_update = is_update

    def struct(self, shape: Shape, value: Object, old: Object | None, place: str, only: tuple[str, ...] = ()) -> Causes:
        """`old` is None where an update sets what was not there."""
        found = [] if only else self._union(shape, value, old, place) + self._companions(shape, value, place)
        for name in only or shape.fields:
            if (field := shape.fields.get(name)) is None:
                continue
            now, before = value.get(name), None if old is None else old.get(name)
            if name in shape.required and field.kind == "struct" and "filled" not in shape.rules.get(name, ()):
                now, before = now or {}, before if old is None else before or {}  # it is always there
            unset = not _is_set(shape, name, now)
            if not self._is_update or old is None or unset is _is_set(shape, name, before) or not (unset or now == before):
                found += self._field(shape, name, now, before, f"{place}.{name}" if place else name)
        return found

    def _union(self, shape: Shape, value: Object, old: Object | None, place: str) -> Causes:
        members = [name for name, rules in shape.rules.items() if "member" in rules]
        chosen, before = ([name for name in members if _is_set(shape, name, state.get(name))] for state in (value, old or {}))
        if not members or len(chosen) == 1 or (self._is_update and old is not None and chosen == before):
            return []
        listed = ", ".join(f"`{name}`" for name in members)
        exactly, given = ("exactly one", f"{{{', '.join(chosen)}}}") if chosen else ("one", "")
        return [(place, f'Invalid value: "{given}": must specify {exactly} of: {listed}')]

    def _companions(self, shape: Shape, value: Object, place: str) -> Causes:
        """The causes for fields that others need. None of them can change later, which an update is told instead."""
        if self._is_update:
            return []
        needed = ((name, _option(rules, "with")) for name, rules in shape.rules.items())
        return [
            (f"{place}.{other}", f"Required value: must be set when {name} is set")
            for name, other in needed
            if other and _is_set(shape, name, value.get(name)) and not _is_set(shape, other, value.get(other))
        ]

    def _field(self, owner: Shape, name: str, now: Any, before: Any, place: str) -> Causes:
        rules, shape, is_set = owner.rules.get(name, ()), owner.fields[name], _is_set(owner, name, now)
        ending = list(self._ending(owner, name, now, before, place))
        if ending or not (is_set or "always" in rules):
            return ending
        if shape.kind == "struct":
            return self.struct(shape, now, before, place)
        if shape.element is None:
            return list(plain(rules, now if is_set else "", place))
        if shape.kind == "map":
            return self._map(shape.element, now, before or {}, place, _option(rules, "keyed"))
        return self._list(shape, now, before, place, rules)

    def _map(self, element: Shape, now: Object, before: Object, place: str, keyed: str) -> Causes:
        found = [cause for key in sorted(now) if keyed for cause in plain((f"format={keyed}",), key, place)]
        for key, item in sorted(now.items()) if element.kind == "struct" else ():
            found += self.struct(element, item, before.get(key), f"{place}[{key}]")
        return found

    def _list(self, shape: Shape, now: list[Any], before: Any, place: str, rules: tuple[str, ...]) -> Causes:
        assert shape.element is not None
        key = _option(rules, "unique")
        found = _repeated(shape.element, (key,) if key else shape.keys, now, place) if key or "unique" in rules else []
        had = _by_identity(shape.keys, before)
        for index, item in enumerate(now):
            at = f"{place}[{index}]"
            if shape.element.kind != "struct":
                found += plain(rules, item, at)
                continue
            match = had.get(_identity(shape.keys, item)) if had else None
            if not (self._is_update and match == item):
                found += self.struct(shape.element, item, match, at)
        return found

    def _ending(self, owner: Shape, name: str, now: Any, before: Any, place: str) -> Iterator[tuple[str, str]]:
        """The causes that end the checks of a field."""
        rules, shape = owner.rules.get(name, ()), owner.fields[name]
        is_set, was_set = (_is_set(owner, name, state) for state in (now, before))
        gate, most = _option(rules, "gate"), _option(rules, "items")
        if gate and gate not in self._gates and is_set:
            yield place, "Forbidden"
        if "immutable" in rules and self._is_update:
            yield place, "Invalid value: null: field is immutable"
        if "filled" in rules and not is_set:
            yield place, "Required value"
        if most and len(now or ()) > int(most):
            yield place, f"Too many: {len(now)}: must have at most {most} item{'' if most == '1' else 's'}"
        if not self._is_update:
            return
        if "noset" in rules and is_set and not was_set:
            yield place, "Invalid value: null: field cannot be set once created"
        if "nounset" in rules and was_set and not is_set:
            yield place, "Invalid value: null: field cannot be cleared once set"
        if "noadd" in rules:
            had = _by_identity(shape.keys, before)
            added = (index for index, item in enumerate(now or ()) if _identity(shape.keys, item) not in had)
            yield from ((f"{place}[{index}]", "Forbidden: item may not be added") for index in added)
        if "noremove" in rules:
            gone = _by_identity(shape.keys, before).keys() - _by_identity(shape.keys, now).keys()
            yield from ((place, "Forbidden: item may not be removed") for _ in gone)


def _is_set(owner: Shape, name: str, value: Any) -> bool:
    """Whether a field has a value. The zero value of a list, of a name and of a number is none, where Go has no pointer for it."""
    counts = "zero" in owner.rules.get(name, ())
    if owner.fields[name].kind == "list" or (not counts and (name in owner.omitted or name in owner.required)):
        return bool(value) or (owner.fields[name].kind == "struct" and value is not None)
    return value is not None


def _option(rules: tuple[str, ...], word: str) -> str:
    return next((rule.partition("=")[2] for rule in rules if rule.startswith(f"{word}=")), "")


def _identity(keys: tuple[str, ...], item: Any) -> str:
    """What tells an item of a list from others."""
    return json.dumps([item.get(key) for key in keys] if keys else item, sort_keys=True)


def _by_identity(keys: tuple[str, ...], items: Iterable[Object] | None) -> dict[str, Object]:
    """The items of a list with keys, each by its own."""
    return {_identity(keys, item): item for item in items or () if keys}


def _repeated(element: Shape, keys: tuple[str, ...], items: list[Any], place: str) -> Causes:
    shown = _written if element.kind == "struct" else lambda shape, item: item
    again = repeated(_identity(keys, item) for item in items)
    return [(f"{place}[{index}]", f"Duplicate value: {compact(shown(element, items[index]))}") for index in again]


def plain(rules: tuple[str, ...], value: Any, place: str) -> Iterator[tuple[str, str]]:
    """What is wrong with a value by itself."""
    for rule in rules:
        word, _, option = rule.partition("=")
        if word == "min" and value < int(option):
            yield place, f"Invalid value: {value}: must be greater than or equal to {option}"
        elif word == "max" and value > int(option):
            yield place, f"Invalid value: {value}: must be less than or equal to {option}"
        elif word == "others" and 0 <= value < int(option):
            yield place, f"Invalid value: {value}: priorities 0-{int(option) - 1} are reserved for responders with *.k8s.io suffix"
        elif word == "enum":
            yield from unsupported(place, value, option.split(","))
        elif word in ("bytes", "characters") and len(value.encode()) > int(option):
            yield place, f"Too long: may not be more than {option} {word}"
        elif word == "format":
            yield from named(option, value, place)


def _written(shape: Shape, value: Object) -> Object:
    """A struct as Go writes it: fields in their order, and some of those that are not set."""
    found: Object = {}
    for name, field in shape.fields.items():
        if name in value:
            found[name] = _written(field, value[name]) if field.kind == "struct" else value[name]
        elif "zero" in shape.rules.get(name, ()):
            found[name] = None
        elif name in shape.required:
            found[name] = {} if field.kind == "struct" else _zero(field)
    return found


def internal(shape: Shape, value: Object) -> Object:
    """A struct as Kubernetes' own form of it is shown: every field, under the name that it has in Go."""
    found: Object = {}
    for name, field in shape.fields.items():
        inner = value.get(name)
        if field.kind == "struct" and (name in value or name in shape.required):
            inner = internal(field, inner or {})
        elif field.kind == "list" and inner and field.element is not None and field.element.kind == "struct":
            inner = [internal(field.element, each) for each in inner]
        elif inner is None and (name in shape.omitted or name in shape.required):
            inner = _zero(field)
        found[name[0].upper() + name[1:]] = inner
    return found


def _zero(shape: Shape) -> Any:
    return {"string": "", "int32": 0, "int64": 0, "bool": False}.get(shape.kind)
