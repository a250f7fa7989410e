"""Defaults that the tables of types declare: `default=VALUE`, in JSON or as it is. What is left out gets them, in structs inside too."""

from pumice.api import Object
from pumice.api.json_objects import clone
from pumice.cluster.apiserver.scheme.marked_fields import Own, marked, structs_in
from pumice.cluster.apiserver.scheme.schema import Shape


def set_defaults(shape: Shape, value: Object) -> None:
    own, deeper = marked(shape, _declared)
    for name, default in own:
        if name not in value:
            value[name] = default if default.__class__ is not dict else clone(default)
    for name, inner in deeper:
        if name in value:
            held = value[name]
            for each in held if held.__class__ is list else structs_in(shape.fields[name], held):
                set_defaults(inner, each)


def _declared(shape: Shape) -> Own:
    return tuple(shape.defaults.items())
