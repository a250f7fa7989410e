"""Type checking: each expression once more, with the types of the built-in kinds that a policy names.

A fault is a warning in the status of the policy.
"""

from collections.abc import Iterator
from itertools import product

from pumice.api import Object
from pumice.api.cel.check import Environment
from pumice.api.cel.errors import CompileError
from pumice.api.cel.program import Program
from pumice.api.cel.values import AUTHORIZER_FIELDS, DYN, STRING, CelType, kind as cel_kind, list_of, map_of
from pumice.cluster.apiserver.admission.attributes import AdmissionAttributes, AdmissionLister
from pumice.cluster.apiserver.admission.conditions import EXPRESSIONS
from pumice.cluster.apiserver.scheme.builtin_kinds import builtin_kinds
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.scheme.schema import Shape
from pumice.cluster.apiserver.validation.admission_checks import policy_causes

_PLAIN = {"int32": "int", "int64": "int", "number": "double", "bytes": "bytes", "Time": "timestamp", "MicroTime": "timestamp"}


def with_type_checking(review: AdmissionAttributes, lister: AdmissionLister) -> Object:
    """The policy with what type checking finds in its status, unless it is invalid. This is an admission rule."""
    policy = review.obj
    if policy_causes(policy, None):
        return policy
    warnings = list(_type_warnings(policy["spec"]))
    policy["status"] = (policy.get("status") or {}) | {
        "observedGeneration": policy["metadata"].get("generation", 1),
        "typeChecking": {"expressionWarnings": warnings} if warnings else {},
    }
    return policy


def _type_warnings(spec: Object) -> Iterator[Object]:
    rules = (spec.get("matchConstraints") or {}).get("resourceRules") or ()
    named = {(group, version, plural) for rule in rules for group, version, plural in product(*map(rule.get, _NAMED_IN_RULES))}
    kinds = [kind for kind in builtin_kinds() if (kind.group, kind.version, kind.plural) in named]
    for index, one in enumerate(spec.get("validations") or ()):
        for field in ("expression", "messageExpression"):
            found = [text for kind in kinds if one.get(field) and (text := _type_fault(kind, one[field]))]
            if found:
                yield {"fieldRef": f"spec.validations[{index}].{field}", "warning": "\n".join(found)}


_NAMED_IN_RULES = ("apiGroups", "apiVersions", "resources")


def _type_fault(kind: ServedKind, expression: str) -> str:
    fields: dict[str, dict[str, CelType]] = {}
    own = _type_of(kind.shape, fields)
    try:
        Program(expression, Environment(EXPRESSIONS.names | {"object": own, "oldObject": own}, fields | AUTHORIZER_FIELDS))
    except CompileError as error:
        return f"{kind.api_version}, Kind={kind.kind}: ERROR: {error}"
    return ""


def _type_of(shape: Shape, fields: dict[str, dict[str, CelType]]) -> CelType:
    match shape.kind:
        case "struct" if shape.name:
            if shape.name not in fields:
                fields[shape.name] = {}
                fields[shape.name] |= {name: _type_of(inner, fields) for name, inner in shape.fields.items()}
            return CelType(shape.name)
        case "list" if shape.element is not None:
            return list_of(_type_of(shape.element, fields))
        case "map" if shape.element is not None:
            return map_of(STRING, _type_of(shape.element, fields))
        case "any" | "IntOrString" | "struct":
            return DYN
    return cel_kind({"bool": "bool"}.get(shape.kind, _PLAIN.get(shape.kind, "string")))
