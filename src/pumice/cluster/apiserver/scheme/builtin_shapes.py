"""The built-in types, read from the tables in `types/` into shapes. Each group version has a file.

A file is read when a struct of it is named, and the lines of a struct when somebody looks at it: most clusters hold few kinds of objects.

A table has the names of structs at the margin, and below each its fields: name, type, protobuf field number, then options. merge=K is a
strategic merge by key K, keys=A,B server-side apply by keys, set a set, atomic one value, inline no level of its own. A zero value is left
out in JSON, but not that of a *type, or of a field that is required or has the option zero. default=VALUE is that of a field
which is left out. A line with ! is a rule between fields, see `struct_rules`.

A struct is looked up as `shape_of("core.v1.Pod")`. The fields of an inlined struct become fields of its owner, as in JSON.
"""

import json
from pathlib import Path
from threading import RLock
from typing import Any

from pumice.cluster.apiserver.scheme.schema import EITHER, HANDWRITTEN_RULES, RULES, SCALARS, Shape

#: types of which JSON leaves out a value that is zero or empty
_LEFT_OUT = frozenset({"string", "int32", "int64", "number", "bool", "bytes", "list", "map"})
_structs: dict[str, Shape] = {}
_unread: dict[str, list[str]] = {}  #: the heading and the lines of structs that nobody has looked at
_objects: set[str] = set()  #: top-level kinds among them
_lock = RLock()  #: objects are checked on more than one thread


class _Unread(Shape):
    """A struct that nobody has looked at. Afterwards it is a plain shape, whose attributes are found sooner."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        self.kind, self.name = "struct", name

    def __getattr__(self, attribute: str) -> Any:
        with _lock:
            if self.name in _unread:
                read = _read(self.name)
                for slot in Shape.__slots__:
                    setattr(self, slot, getattr(read, slot))
                self.__class__ = Shape  # type: ignore[assignment]
                del _unread[self.name]
        return getattr(self, attribute)


def shape_of(name: str) -> Shape:
    """The struct called `group.version.Type`. Raises KeyError."""
    if name not in _structs:
        with _lock:
            _load(name.rpartition(".")[0])
    return _structs[name]


def _load(module: str) -> None:
    lines: list[str] = []
    for line in (Path(__file__).parent / "types" / f"{module}.txt").read_text().splitlines():
        if line.startswith(" "):
            lines.append(line)
        elif not line.startswith("#"):
            name, lines = f"{module}.{line.split(maxsplit=1)[0]}", [line]
            if name not in _structs:
                _unread[name] = lines
                _structs[name] = _Unread(name)


def _read(name: str) -> Shape:
    (heading, *lines), module, struct = _unread[name], name.rpartition(".")[0], Shape("struct", name=name)
    struct.atomic = "atomic" in heading.split()[1:]
    for line in lines:
        if line.startswith("  ! "):
            struct.between.append(line[4:])
            continue
        field, type_name, number, *options = line.split()
        shape = _resolve(type_name.removeprefix("*"), module)
        if "inline" in options:
            struct.numbers[int(number)] = f"+{shape.name}"
            struct.fields.update(shape.fields)
            struct.required = (*struct.required, *shape.required)
            struct.omitted |= shape.omitted
            struct.rules |= shape.rules
            struct.handwritten |= shape.handwritten
            struct.between += shape.between
            struct.defaults |= shape.defaults
            continue
        for each in options:
            if each.startswith("default="):
                struct.defaults[field] = _read_default(each[8:])
        if rules := tuple(option for option in options if option.partition("=")[0] in RULES):
            struct.rules[field] = rules
        if handwritten := tuple(option for option in options if option.partition("=")[0] in HANDWRITTEN_RULES):
            struct.handwritten[field] = handwritten
        if options and shape.kind in ("list", "map"):
            shape.with_options(options)
        elif "retainKeys" in options:
            struct.retained = (*struct.retained, field)
        struct.fields[field] = shape
        struct.numbers[int(number)] = field
        if "required" in options:
            struct.required = (*struct.required, field)
        elif shape.kind in _LEFT_OUT and type_name[0] != "*" and "zero" not in options:
            struct.omitted.add(field)
    return _with_head(struct) if name in _objects else struct


def _read_default(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


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
    with _lock:
        _objects.add(name)
        return struct if name in _unread else _with_head(struct)


def _with_head(struct: Shape) -> Shape:
    for field in ("apiVersion", "kind"):
        struct.fields.setdefault(field, Shape("string"))
    return struct
