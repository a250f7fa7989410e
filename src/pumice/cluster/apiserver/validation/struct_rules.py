"""Rules between the fields of a struct, which the tables of types declare. Such a line begins with `!`, and two spaces part its columns:

    ! PLACE  CONDITION  TEXT

If the condition holds, an object is refused with this text at this place; `.` is the struct itself. Fields are called by their names: one
that is not there has the zero value that it has in Go, None if it is a pointer there. `a.b` is a field of a field, `this` the struct, `old`
what it was before an update. A condition that begins with `for` is asked of each item. In a text, `{}` is the value at the place, and `{a}`
that of a. A place `*function(...)`, without a text, stands for all causes that the function finds. `! as STRUCT`: the rules of another
struct hold as well. Conditions are expressions of Python, and the rules of a struct become one function when they are first asked for.
"""

import ast
from collections.abc import Callable, Sequence
from math import ceil, log2
from types import ModuleType
from typing import Any

from pumice.api import Object
from pumice.api.defaults import SYSTEM_CLASSES
from pumice.api.json_objects import is_true
from pumice.cluster.apiserver.scheme.builtin_shapes import shape_of
from pumice.cluster.apiserver.scheme.schema import Shape
from pumice.cluster.apiserver.validation import (
    device_rules,
    field_rules,
    group_checks,
    ip_rules,
    job_rules,
    label_rules,
    name_rules,
    object_checks,
    pod_spec,
    pod_updates,
    quota_rules,
    resource_rules,
    secret_checks,
)
from pumice.cluster.apiserver.validation.declared_rules import internal
from pumice.cluster.apiserver.validation.field_rules import Causes, compact

Between = Callable[[Object, Object | None], Causes]  #: of a struct and what it was before: what is wrong between its fields
_ZERO = {"string": "", "int32": 0, "int64": 0, "bool": False, "list": (), "map": {}}


def between(shape: Shape) -> Between | None:
    """The rules of a struct as one function; None if it has none."""
    if not (lines := _lines(shape)):
        return None
    tree = _Fields().visit(ast.parse("\n".join(["def causes(this, old):", " found = []", *map(_source, lines), " return found"])))
    used = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & shape.fields.keys())
    read = ast.parse("\n".join(f"{name} = this.get({name!r}, {_zero(shape, name)!r})" for name in used))
    tree.body[0].body[:0] = read.body
    made: dict[str, Between] = {}
    exec(compile(ast.fix_missing_locations(tree), shape.name, "exec"), _NAMES, made)
    return made["causes"]


def _lines(shape: Shape) -> list[str]:
    module = shape.name.rpartition(".")[0]
    return [each for line in shape.between for each in (_lines(shape_of(f"{module}.{line[3:]}")) if line.startswith("as ") else [line])]


def _source(line: str) -> str:
    """A rule as a statement."""
    place, condition, text = (*line.split("  "), "", "")[:3]
    if place.startswith("*"):
        return f" if {condition or True}: found.extend({place[1:]})"
    cause = f'(f"{place.strip(".")}", f"""{text.replace("{}", f"{{compact({place})}}")} """[:-1])'
    return f" found += [{cause} {condition}]" if condition.startswith("for ") else f" if {condition}: found.append({cause})"


def _zero(shape: Shape, name: str) -> Any:
    kind, is_zero = shape.fields[name].kind, name in shape.omitted or name in shape.required or "zero" in shape.rules.get(name, ())
    return _ZERO.get(kind) if is_zero or kind in ("list", "map") else None


class _Fields(ast.NodeTransformer):
    """Makes `a.b` the field b of a, except where a method is called."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Attribute):
            node.func.value = self.visit(node.func.value)
        node.args = [self.visit(each) for each in node.args]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        there = ast.BoolOp(ast.Or(), [self.visit(node.value), ast.Dict([], [])])
        return ast.Call(ast.Attribute(there, "get", ast.Load()), [ast.Constant(node.attr)], [])


def _shown(struct: str, value: Object) -> str:
    """A struct as Kubernetes shows it."""
    return compact(internal(shape_of(struct), value))


def _expressions(place: str, conditions: Sequence[Object]) -> Causes:
    from pumice.cluster.apiserver.admission.conditions import condition_causes  # importing CEL takes 20 ms; most webhooks have none

    return condition_causes(place, conditions)


def _shown_field(struct: str, owner: Object, field: str) -> str:
    shape, value = shape_of(struct).fields[field], owner.get(field)
    return compact(internal(shape, value) if shape.kind == "struct" and value is not None else value)


#: whose functions and constants conditions may name
_MODULES: tuple[ModuleType, ...] = (device_rules, field_rules, group_checks, ip_rules, job_rules, label_rules, name_rules, object_checks)
_MODULES += (pod_spec, pod_updates, quota_rules, resource_rules, secret_checks)
_NAMES = {name: value for module in _MODULES for name, value in vars(module).items() if name[0] != "_"} | {
    "FLOW_VERBS": {"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch", "*"},
    "METRIC_SOURCES": ("object", "external", "pods", "resource", "containerResource"),
    "SYSTEM_CLASSES": SYSTEM_CLASSES,
    "ceil": ceil,
    "expressions": _expressions,
    "is_true": is_true,
    "log2": log2,
    "shown": _shown,
    "shown_field": _shown_field,
}
