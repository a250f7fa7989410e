"""Rules of custom kinds (`x-kubernetes-validations`): expressions that an object must satisfy, also compared with what it was.

The rules of a schema are read once, when its definition is, into a tree of the places that have some in or below them. A rule that names
`oldSelf` is asked only about what changed from something: a field, a map's value, an item of a list with keys. Others are not asked again
about parts that an update leaves as they are, so that a new rule holds up nobody who has nothing to do with it. All rules of one object
share a budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pumice.api.cel.evaluate import holds, value_of
from pumice.api.cel.syntax import CelError, Node, names_in, parse
from pumice.api.cel.values import Budget, Instant, Optional, Span
from pumice.api.times import duration, instant
from pumice.apiserver.shapes import Object
from pumice.apiserver.structural import go_type

RULES = "x-kubernetes-validations"
STEPS_EACH_OBJECT = 250_000
_ABSENT: Any = object()
_SENTENCES = {
    "FieldValueForbidden": "Forbidden: {message}",
    "FieldValueRequired": "Required value: {message}",
    "FieldValueDuplicate": 'Duplicate value: "{type}": {message}',
}
_TIMES: dict[str, Callable[[str], Any]] = {
    "date-time": lambda text: Instant(instant(text)),
    "date": lambda text: Instant(instant(f"{text}T00:00:00Z")),
    "duration": lambda text: Span(duration(text)),
}

Causes = list[tuple[str, str]]
Seen = Callable[[Any], Any]  #: a value as expressions see it


class Rule(NamedTuple):
    """One rule, read."""

    text: str
    tree: Node
    is_transition: bool
    old_is_optional: bool
    message: str
    message_tree: Node | None
    sentence: str
    field_path: str


class RuleTree(NamedTuple):
    """The rules of one place of a schema, and the places below it that have some."""

    rules: tuple[Rule, ...]
    fields: dict[str, RuleTree]
    each: RuleTree | None  #: of the items of a list or the values of a map
    keys: tuple[str, ...]  #: that tell the items of a list apart
    seen: Seen | None


def rules_of(schema: Object) -> RuleTree | None:
    """None if there are none. Raises CelError."""
    fields = {name: tree for name, inner in (schema.get("properties") or {}).items() if (tree := rules_of(inner)) is not None}
    inner = schema.get("items") or schema.get("additionalProperties")
    each = rules_of(inner) if isinstance(inner, dict) else None
    rules = tuple(_rule(one) for one in schema.get(RULES) or ())
    if not (rules or fields or each):
        return None
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ()) if schema.get("x-kubernetes-list-type") == "map" else ()
    return RuleTree(rules, fields, each, keys, _seen(schema) if rules else None)


def _rule(stated: Object) -> Rule:
    tree, text = parse(str(stated.get("rule") or "")), stated.get("messageExpression")
    return Rule(
        text=str(stated["rule"]),
        tree=tree,
        is_transition="oldSelf" in names_in(tree),
        old_is_optional=bool(stated.get("optionalOldSelf")),
        message=str(stated.get("message") or f"failed rule: {stated['rule']}"),
        message_tree=parse(str(text)) if text else None,
        sentence=_SENTENCES.get(str(stated.get("reason")), 'Invalid value: "{type}": {message}'),
        field_path=str(stated.get("fieldPath") or ""),
    )


def definition_rule_causes(schema: Object, path: str) -> Causes:
    """Rules that cannot be read."""
    causes: Causes = []
    for index, stated in enumerate(schema.get(RULES) or ()):
        try:
            _rule(stated)
        except CelError as error:
            causes.append((f"{path}.{RULES}[{index}].rule", f'Invalid value: "{stated.get("rule")}": compilation failed: {error}'))
    for name, inner in (schema.get("properties") or {}).items():
        causes += definition_rule_causes(inner, f"{path}.properties[{name}]")
    for field in ("items", "additionalProperties"):
        if isinstance(schema.get(field), dict):
            causes += definition_rule_causes(schema[field], f"{path}.{field}")
    return causes


def rule_causes(tree: RuleTree, obj: Object, old: Object | None) -> Causes:
    """What the rules of a kind have against an object that is well-formed."""
    causes: Causes = []
    budget = Budget(STEPS_EACH_OBJECT)
    _walk(tree, _root(obj), _ABSENT if old is None else _root(old), "", budget, causes)
    return causes


def _root(obj: Object) -> Object:
    """Rules of the whole object see of its metadata only what it is called."""
    metadata = {key: value for key, value in obj["metadata"].items() if key in ("name", "generateName")}
    return obj | {"metadata": metadata}


def _walk(tree: RuleTree, value: Any, old: Any, path: str, budget: Budget, causes: Causes) -> None:
    if value is None or (value == old and not _has_transitions(tree)):
        return
    seen = tree.seen or (lambda same: same)
    for rule in tree.rules:
        if rule.is_transition or value != old:
            cause = _judged(rule, seen, value, old, path, budget)
            causes += [cause] if cause else []
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
    return old.get(name, _ABSENT) if isinstance(old, dict) else _ABSENT


def _items(tree: RuleTree, value: Any, old: Any) -> Iterator[tuple[str, Any, Any]]:
    """What is in a list or map, each with what it was before, as far as that can be told."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"[{key}]", item, _field(old, key)
        return
    before = {_identity(tree, item): item for item in old} if tree.keys and isinstance(old, list) else {}
    for index, item in enumerate(value):
        yield f"[{index}]", item, before.get(_identity(tree, item), _ABSENT) if tree.keys else _ABSENT


def _identity(tree: RuleTree, item: Any) -> str:
    return repr([item.get(key) for key in tree.keys]) if isinstance(item, dict) else ""


def _judged(rule: Rule, seen: Seen, value: Any, old: Any, path: str, budget: Budget) -> tuple[str, str] | None:
    if rule.is_transition and old is _ABSENT and not rule.old_is_optional:
        return None
    names = {"self": seen(value)}
    if rule.is_transition:
        before = None if old is _ABSENT else seen(old)
        names["oldSelf"] = Optional(old is not _ABSENT, before) if rule.old_is_optional else before
    try:
        if holds(rule.tree, names, budget):
            return None
        message = _message(rule, names, budget)
    except CelError as error:
        message = f"{error} evaluating rule: {rule.text}"
    place = (path + rule.field_path).lstrip(".") or "<nil>"
    return place, rule.sentence.format(type=go_type(value), message=message)


def _message(rule: Rule, names: Object, budget: Budget) -> str:
    if rule.message_tree is not None:
        try:
            found = value_of(rule.message_tree, names, budget)
        except CelError:
            return rule.message
        if isinstance(found, str) and found.strip() and "\n" not in found:
            return found
    return rule.message


def _seen(schema: Object) -> Seen | None:
    """How texts that are times become times; None where there are none."""
    make = _TIMES.get(schema.get("format", "")) if schema.get("type") == "string" else None
    if make is not None:
        return lambda value: _made(make, value)
    fields = {name: one for name, inner in (schema.get("properties") or {}).items() if (one := _seen(inner)) is not None}
    inner = schema.get("items") or schema.get("additionalProperties")
    each = _seen(inner) if isinstance(inner, dict) else None
    if not fields and each is None:
        return None
    same: Seen = lambda value: value  # noqa: E731

    def seen(value: Any) -> Any:
        if isinstance(value, list):
            return [(each or same)(item) for item in value]
        if isinstance(value, dict):
            return {key: fields.get(key, each or same)(item) for key, item in value.items()}
        return value

    return seen


def _made(make: Callable[[str], Any], value: Any) -> Any:
    try:
        return make(value)
    except (ValueError, TypeError):
        return value
