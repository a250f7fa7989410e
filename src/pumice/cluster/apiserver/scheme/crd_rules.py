"""Rules of custom kinds (`x-kubernetes-validations`): expressions that an object must satisfy, also compared with its old state.

The rules of a schema are compiled once, with its definition, into a tree of the places that have rules in or below them. A rule that names
`oldSelf` is evaluated only where an old value exists (a field, a map's value, an item of a list with keys), unless the rule says that it is
optional. Other rules are not evaluated again for parts that an update does not change, so that a new rule does not block updates of other
parts. All rules of one object share a cost budget.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pumice.api import Object
from pumice.api.cel.cost import CostBudget
from pumice.api.cel.errors import CompileError
from pumice.cluster.apiserver.validation.field_rules import Causes

if TYPE_CHECKING:
    from pumice.cluster.apiserver.scheme.crd_rule import Seen, ValidationRule

RULES = "x-kubernetes-validations"
EACH_OBJECT = 2_000_000  #: the cost budget of all rules of one object


class RuleTree(NamedTuple):
    """The rules of one place of a schema, and the places below it that have rules."""

    rules: tuple[ValidationRule, ...]
    fields: dict[str, RuleTree]
    each: RuleTree | None  #: the rules for the items of a list or the values of a map
    keys: tuple[str, ...]  #: the fields that identify the items of a list
    seen: Seen | None


def rules_of(schema: Object, is_root: bool = True) -> RuleTree | None:
    """The rules of a schema and of the schemas inside it. None if they have no rules. Raises CompileError."""
    fields = {name: tree for name, inner in (schema.get("properties") or {}).items() if (tree := rules_of(inner, False)) is not None}
    inner = schema.get("items") or schema.get("additionalProperties")
    each = rules_of(inner, False) if isinstance(inner, dict) else None
    rules: tuple[ValidationRule, ...] = ()
    seen: Seen | None = None
    if stated := schema.get(RULES):
        from pumice.cluster.apiserver.scheme.crd_rule import rule_of, seen_as  # importing CEL takes 20 ms; many schemas have no rules

        rules, seen = tuple(rule_of(one, schema, is_root) for one in stated), seen_as(schema)
    if not (rules or fields or each):
        return None
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ()) if schema.get("x-kubernetes-list-type") == "map" else ()
    return RuleTree(rules, fields, each, keys, seen)


def definition_rule_causes(schema: Object, path: str, is_root: bool = True) -> Causes:
    """The causes for refusing a schema: rules that cannot be compiled, and items that are no schema, with path and error."""
    causes: Causes = []
    if not isinstance(schema.get("items") or {}, dict):
        causes.append((f"{path}.items", "Forbidden: items must be a schema object and not an array"))
    for index, stated in enumerate(schema.get(RULES) or ()):
        from pumice.cluster.apiserver.scheme.crd_rule import rule_of

        try:
            rule_of(stated, schema, is_root)
        except CompileError as error:
            causes.append((f"{path}.{RULES}[{index}].rule", f'Invalid value: "{stated.get("rule")}": compilation failed: {error}'))
    for name, inner in (schema.get("properties") or {}).items():
        causes += definition_rule_causes(inner, f"{path}.properties[{name}]", False)
    for field in ("items", "additionalProperties"):
        if isinstance(schema.get(field), dict):
            causes += definition_rule_causes(schema[field], f"{path}.{field}", False)
    return causes


def rule_causes(tree: RuleTree, obj: Object, old: Object | None, budget: CostBudget | None = None) -> Causes:
    """The causes for refusing an object by the rules of its kind, which are paid from the budget. The object must be well-formed."""
    causes: Causes = []
    _walk(tree, _root(obj), None if old is None else _root(old), "", budget or CostBudget(EACH_OBJECT), causes)
    return causes


def _root(obj: Object) -> Object:
    """The object with only name and generateName in its metadata, as rules of the whole object see it."""
    metadata = {key: value for key, value in obj["metadata"].items() if key in ("name", "generateName")}
    return obj | {"metadata": metadata}


def _walk(tree: RuleTree, value: Any, old: Any, path: str, budget: CostBudget, causes: Causes) -> None:
    if value is None or budget.left < 0 or (value == old and not _has_transitions(tree)):
        return
    for rule in tree.rules:
        if budget.left >= 0 and (rule.is_transition or value != old) and (cause := rule.cause(tree.seen, value, old, path, budget)):
            causes.append(cause)
    for name, inner in tree.fields.items():
        if isinstance(value, dict) and name in value:
            _walk(inner, value[name], _field(old, name), f"{path}.{name}" if path else name, budget, causes)
    if tree.each is not None:
        for step, item, before in _items(tree, value, old):
            _walk(tree.each, item, before, f"{path}{step}", budget, causes)


def _has_transitions(tree: RuleTree) -> bool:
    below = [*tree.fields.values(), *([tree.each] if tree.each else ())]
    return any(rule.is_transition for rule in tree.rules) or any(map(_has_transitions, below))


def _field(old: Any, name: str) -> Any:
    return old.get(name) if isinstance(old, dict) else None


def _items(tree: RuleTree, value: Any, old: Any) -> Iterator[tuple[str, Any, Any]]:
    """The items of a list or map: the path's step, the item, and its old value; None if there is none or it cannot be identified."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"[{key}]", item, _field(old, key)
        return
    before = {_identity(tree, item): item for item in old} if tree.keys and isinstance(old, list) else {}
    for index, item in enumerate(value):
        yield f"[{index}]", item, before.get(_identity(tree, item)) if tree.keys else None


def _identity(tree: RuleTree, item: Any) -> str:
    return repr([item.get(key) for key in tree.keys]) if isinstance(item, dict) else ""
