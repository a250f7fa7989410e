"""Rules between the fields of a struct, which the tables of types declare. Such a line begins with `!`, and two spaces part its columns:

    ! PLACE  CONDITION  TEXT

If the condition holds, an object is refused with this text at this place; `.` is the struct itself. Fields are called by their names: one
that is not there has the zero value that it has in Go, None if it is a pointer there. `a.b` is a field of a field, `this` the struct, `old`
what it was before an update. A condition that begins with `for` is asked of each item. In a text, `{}` is the value at the place, and `{a}`
that of a. A place `*function(...)`, without a text, stands for all causes that the function finds. `! as STRUCT`: the rules of another
struct hold as well.
"""

import ast
from collections.abc import Callable, Sequence
from math import ceil, log2
from typing import Any

from pumice.api import Object
from pumice.api.defaults import SYSTEM_CLASSES
from pumice.cluster.apiserver.scheme.builtin_shapes import shape_of
from pumice.cluster.apiserver.scheme.schema import Shape
from pumice.cluster.apiserver.validation import device_rules, job_rules, object_checks, pod_spec, pod_updates, quota_rules, secret_checks
from pumice.cluster.apiserver.validation.declared_rules import internal
from pumice.cluster.apiserver.validation.field_rules import Causes, compact, duplicates, repeated
from pumice.cluster.apiserver.validation.group_checks import job_scheduling_causes
from pumice.cluster.apiserver.validation.ip_rules import fault_of_cidr, fault_of_ip, is_within, special_faults
from pumice.cluster.apiserver.validation.name_rules import misnamed, named, named_object
from pumice.cluster.apiserver.validation.resource_rules import pod_resource_causes

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


_CALLED = (
    *(pod_updates.may_become, pod_updates.may_tolerate),
    *(device_rules.chosen, device_rules.expression_causes, device_rules.no_extended_resource, device_rules.pool_causes),
    *(device_rules.qualified, device_rules.skipping_causes),
    *(ceil, compact, duplicates, fault_of_cidr, fault_of_ip, is_within, log2, named, named_object, repeated, special_faults),
    *(job_rules.on_failure, job_rules.success_causes, job_scheduling_causes, quota_rules.limit_causes, quota_rules.quota_causes),
    *(object_checks.is_time_zone, object_checks.restart_causes, object_checks.selection_causes, pod_resource_causes),
    *(
        secret_checks.key_causes,
        secret_checks.secret_value_causes,
        pod_spec.claim_causes,
        pod_spec.container_causes,
        pod_spec.mount_causes,
        pod_spec.resource_causes,
        pod_spec.responder_causes,
    ),
)
_NAMES = {called.__name__: called for called in _CALLED} | {
    "FIELDS_OF_PODS": pod_spec.FIELDS_OF_PODS,
    "FLOW_VERBS": {"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch", "*"},
    "HANDLERS": pod_spec.HANDLERS,
    "METRIC_SOURCES": ("object", "external", "pods", "resource", "containerResource"),
    "SECRET_KEYS": secret_checks.SECRET_KEYS,
    "SHARED_SYSCTLS": pod_spec.SHARED_SYSCTLS,
    "SYSCTL": pod_spec.SYSCTL,
    "SYSTEM_CLASSES": SYSTEM_CLASSES,
    "expressions": _expressions,
    "misnamed": misnamed,
    "shown": _shown,
    "shown_field": _shown_field,
}
