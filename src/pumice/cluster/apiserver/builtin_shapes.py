"""The built-in types, read from the tables in `types/` into shapes on first use. Each group version has a file.

A table has the names of structs at the margin, and below each its fields: name, type, protobuf field number, then options. merge=K is a
strategic merge by key K, keys=A,B server-side apply by keys, set a set, atomic one value, inline no level of its own. A zero value is left
out in JSON, but not that of a *type, or of a field that is required or has the option zero.

A struct is looked up as `shape_of("core.v1.Pod")`. The fields of an inlined struct become fields of its owner, as in JSON.
"""

from importlib.resources import files

from pumice.cluster.apiserver.schema import EITHER, RULES, SCALARS, Shape

_structs: dict[str, Shape] = {}
_unread: dict[str, list[list[str]]] = {}  #: the fields of structs whose fields have not been read yet


def shape_of(name: str) -> Shape:
    """The struct called `group.version.Type`. Raises KeyError."""
    if name not in _structs:
        _load(name.rpartition(".")[0])
    return _structs[name]


def _load(module: str) -> None:
    fields: list[list[str]] = []
    for line in (files(__package__) / "types" / f"{module}.txt").read_text().splitlines():
        if line.startswith(" "):
            fields.append(line.split())
        elif not line.startswith("#"):
            name, *options = line.split()
            struct = Shape("struct", name=f"{module}.{name}")
            struct.atomic = "atomic" in options
            _structs[struct.name] = struct
            _unread[struct.name] = fields = []
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
