"""Rules of custom kinds (`x-kubernetes-validations`): expressions that an object must satisfy, also compared with its old state.

The rules of a schema are compiled once, with its definition, into a tree of the places that have rules in or below them. A rule that names
`oldSelf` is evaluated only where an old value exists (a field, a map's value, an item of a list with keys), unless the rule says that it is
optional. Other rules are not evaluated again for parts that an update does not change, so that a new rule does not block updates of other
parts. All rules of one object share a cost budget.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pumice.api import Object
from pumice.api.cel import Program
from pumice.api.cel.activation import EACH_EXPRESSION, Purse
from pumice.api.cel.check import Environment
from pumice.api.cel.library.times import instant, span
from pumice.api.cel.syntax import RESERVED, WORDS
from pumice.api.cel.tree import CelError, CompileError, CostError, EvaluationError
from pumice.api.cel.values import BOOL, DYN, STRING, CelType, Optional, kind, list_of, map_of, optional_of
from pumice.cluster.apiserver.field_rules import Causes
from pumice.cluster.apiserver.structural_schema import EMBEDDED, INT_OR_STRING, go_type

Seen = Callable[[Any], Any]  #: returns a JSON value as expressions see it
_PLAIN = {"integer": "int", "number": "double", "boolean": "bool", "string": "string"}
_FORMATS = {"byte": "bytes", "date-time": "timestamp", "date": "timestamp", "duration": "duration"}
_MAKERS: dict[str, Seen] = {
    "byte": base64.b64decode,
    "date-time": instant,
    "date": lambda text: instant(f"{text}T00:00:00Z"),
    "duration": span,
    "number": float,
    "integer": int,
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IN_NAMES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_METADATA = {"name": STRING, "generateName": STRING}


def environment_of(schema: Object, optional_old: bool, is_root: bool) -> Environment:
    """The names that a rule at this place of a schema may use, with their types."""
    fields: dict[str, dict[str, CelType]] = {}
    own = _kind(schema, fields, "self", is_root)
    return Environment({"self": own, "oldSelf": optional_of(own) if optional_old else own}, fields)


def _kind(schema: Object, fields: dict[str, dict[str, CelType]], path: str, is_root: bool = False) -> CelType:
    if schema.get(INT_OR_STRING):
        return DYN
    each = schema.get("additionalProperties")
    match schema.get("type"):
        case "array":
            return list_of(_kind(schema.get("items") or {}, fields, f"{path}.items"))
        case "object" if isinstance(each, dict):
            return map_of(STRING, _kind(each, fields, f"{path}.values"))
        case "object":
            inner = {key: _kind(one, fields, f"{path}.{key}") for key, one in (schema.get("properties") or {}).items()}
            if is_root or schema.get(EMBEDDED):
                fields[f"{path}.metadata"] = {**fields.get(f"{path}.metadata", {}), **_METADATA}
                inner |= {"apiVersion": STRING, "kind": STRING, "metadata": CelType(f"{path}.metadata")}
            fields[path] = {name: one for key, one in inner.items() if (name := _name(key)) is not None}
            return CelType(path)
        case str(plain) if plain in _PLAIN:
            special = _FORMATS.get(schema.get("format", "")) if plain == "string" else None
            return kind(special or _PLAIN[plain])
    return DYN


def _name(key: str) -> str | None:
    """The name of a field in expressions; None if expressions cannot name the field."""
    if key in RESERVED or key in WORDS:
        return f"__{key}__"
    name = re.sub(r"__|[./-]", lambda match: _IN_NAMES[match[0]], key)
    return name if _NAME.fullmatch(name) else None


def seen_as(schema: Object) -> Seen | None:
    """The function that converts JSON values of a schema to what expressions see; None if they are the same."""
    known = schema.get("type")
    make = _MAKERS.get(schema.get("format", "")) if known == "string" else _MAKERS.get(str(known))
    if make is not None and not schema.get(INT_OR_STRING):
        return lambda value: _made(make, value)
    fields = {name: one for name, inner in (schema.get("properties") or {}).items() if (one := seen_as(inner)) is not None}
    inner = schema.get("items") or schema.get("additionalProperties")
    each = seen_as(inner) if isinstance(inner, dict) else None
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


def _made(make: Seen, value: Any) -> Any:
    try:
        return make(value)
    except (EvaluationError, ValueError, TypeError):
        return value


RULES = "x-kubernetes-validations"
LONGEST_MESSAGE = 5 * 1024  #: the most characters of a message that an expression returns
EACH_OBJECT = 2_000_000  #: the cost budget of all rules of one object
_ABSENT: Any = object()
_SENTENCES = {
    "FieldValueForbidden": "Forbidden: {message}",
    "FieldValueRequired": "Required value: {message}",
    "FieldValueDuplicate": 'Duplicate value: "{type}": {message}',
}


class ValidationRule(NamedTuple):
    """One rule, compiled."""

    text: str
    program: Program
    is_transition: bool
    old_is_optional: bool
    message: str
    message_program: Program | None
    sentence: str
    field_path: str


class RuleTree(NamedTuple):
    """The rules of one place of a schema, and the places below it that have rules."""

    rules: tuple[ValidationRule, ...]
    fields: dict[str, RuleTree]
    each: RuleTree | None  #: the rules for the items of a list or the values of a map
    keys: tuple[str, ...]  #: the fields that identify the items of a list
    seen: Seen | None


class _Spent(Exception):
    """The cost budget is spent, so no further rules are evaluated. Its argument is the cause."""


def rules_of(schema: Object, is_root: bool = True) -> RuleTree | None:
    """The rules of a schema and of the schemas inside it. None if they have no rules. Raises CompileError."""
    fields = {name: tree for name, inner in (schema.get("properties") or {}).items() if (tree := rules_of(inner, False)) is not None}
    inner = schema.get("items") or schema.get("additionalProperties")
    each = rules_of(inner, False) if isinstance(inner, dict) else None
    rules = tuple(_rule(one, schema, is_root) for one in schema.get(RULES) or ())
    if not (rules or fields or each):
        return None
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ()) if schema.get("x-kubernetes-list-type") == "map" else ()
    return RuleTree(rules, fields, each, keys, seen_as(schema) if rules else None)


def _rule(stated: Object, schema: Object, is_root: bool) -> ValidationRule:
    """One rule, compiled. Raises CompileError."""
    optional = bool(stated.get("optionalOldSelf"))
    environment, text = environment_of(schema, optional, is_root), stated.get("messageExpression")
    program = _of_kind(Program(str(stated.get("rule") or ""), environment), BOOL)
    return ValidationRule(
        text=str(stated["rule"]),
        program=program,
        is_transition="oldSelf" in program.names,
        old_is_optional=optional,
        message=str(stated.get("message") or f"failed rule: {stated['rule']}"),
        message_program=_of_kind(Program(str(text), environment), STRING) if text else None,
        sentence=_SENTENCES.get(str(stated.get("reason")), 'Invalid value: "{type}": {message}'),
        field_path=str(stated.get("fieldPath") or ""),
    )


def _of_kind(program: Program, wanted: CelType) -> Program:
    """The program itself. Raises CompileError if its value cannot be of this type."""
    if program.kind not in (wanted, DYN):
        raise CompileError(f"must evaluate to a {wanted}")
    return program


def definition_rule_causes(schema: Object, path: str, is_root: bool = True) -> Causes:
    """The causes for refusing a schema: rules that cannot be compiled, and items that are no schema, with path and error."""
    causes: Causes = []
    if not isinstance(schema.get("items") or {}, dict):
        causes.append((f"{path}.items", "Forbidden: items must be a schema object and not an array"))
    for index, stated in enumerate(schema.get(RULES) or ()):
        try:
            _rule(stated, schema, is_root)
        except CompileError as error:
            causes.append((f"{path}.{RULES}[{index}].rule", f'Invalid value: "{stated.get("rule")}": compilation failed: {error}'))
    for name, inner in (schema.get("properties") or {}).items():
        causes += definition_rule_causes(inner, f"{path}.properties[{name}]", False)
    for field in ("items", "additionalProperties"):
        if isinstance(schema.get(field), dict):
            causes += definition_rule_causes(schema[field], f"{path}.{field}", False)
    return causes


def rule_causes(tree: RuleTree, obj: Object, old: Object | None, purse: Purse | None = None) -> Causes:
    """The causes for refusing an object by the rules of its kind, which are paid from the purse. The object must be well-formed."""
    causes: Causes = []
    try:
        _walk(tree, _root(obj), _ABSENT if old is None else _root(old), "", purse or Purse(EACH_OBJECT), causes)
    except _Spent as spent:
        causes.append(spent.args[0])
    return causes


def _root(obj: Object) -> Object:
    """The object with only name and generateName in its metadata, as rules of the whole object see it."""
    metadata = {key: value for key, value in obj["metadata"].items() if key in ("name", "generateName")}
    return obj | {"metadata": metadata}


def _walk(tree: RuleTree, value: Any, old: Any, path: str, purse: Purse, causes: Causes) -> None:
    if value is None or (value == old and not _has_transitions(tree)):
        return
    seen = tree.seen or (lambda same: same)
    for rule in tree.rules:
        if rule.is_transition or value != old:
            cause = _judged(rule, seen, value, old, path, purse)
            causes += [cause] if cause else []
    for name, inner in tree.fields.items():
        if isinstance(value, dict) and name in value:
            _walk(inner, value[name], _field(old, name), f"{path}.{name}" if path else name, purse, causes)
    if tree.each is not None:
        for step, item, before in _items(tree, value, old):
            _walk(tree.each, item, before, f"{path}{step}", purse, causes)


def _has_transitions(tree: RuleTree) -> bool:
    below = [*tree.fields.values(), *([tree.each] if tree.each else ())]
    return any(rule.is_transition for rule in tree.rules) or any(map(_has_transitions, below))


def _field(old: Any, name: str) -> Any:
    return old.get(name, _ABSENT) if isinstance(old, dict) else _ABSENT


def _items(tree: RuleTree, value: Any, old: Any) -> Iterator[tuple[str, Any, Any]]:
    """The items of a list or map: the path's step, the item, and its old value (`_ABSENT` if there is none or it cannot be identified)."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"[{key}]", item, _field(old, key)
        return
    before = {_identity(tree, item): item for item in old} if tree.keys and isinstance(old, list) else {}
    for index, item in enumerate(value):
        yield f"[{index}]", item, before.get(_identity(tree, item), _ABSENT) if tree.keys else _ABSENT


def _identity(tree: RuleTree, item: Any) -> str:
    return repr([item.get(key) for key in tree.keys]) if isinstance(item, dict) else ""


def _judged(rule: ValidationRule, seen: Seen, value: Any, old: Any, path: str, purse: Purse) -> tuple[str, str] | None:
    if rule.is_transition and old is _ABSENT and not rule.old_is_optional:
        return None
    names = {"self": seen(value)}
    if rule.is_transition:
        before = None if old is _ABSENT else seen(old)
        names["oldSelf"] = Optional(old is not _ABSENT, before) if rule.old_is_optional else before
    place = (path + rule.field_path).lstrip(".") or "<nil>"
    try:
        if _paid(rule.program, names, purse) is True:
            return None
        message = _message(rule, names, purse)
    except CostError as error:
        raise _Spent((place, rule.sentence.format(type=go_type(value), message=_stopped(error, rule, purse)))) from None
    except EvaluationError as error:
        message = f"{error} evaluating rule: {rule.text}"
    return place, rule.sentence.format(type=go_type(value), message=message)


def _paid(program: Program, names: Object, purse: Purse) -> Any:
    """The value of an expression. Its cost is taken from the purse and is limited for each expression. Raises EvaluationError."""
    own = Purse(min(EACH_EXPRESSION, purse.left))
    before = own.left
    try:
        return program.value(names, own)
    finally:
        purse.left -= before - max(own.left, 0)


def _stopped(error: CostError, rule: ValidationRule, purse: Purse) -> str:
    if purse.left <= 0:
        return "validation failed due to running out of cost budget, no further validation rules will be run"
    return f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {rule.text}"


def _message(rule: ValidationRule, names: Object, purse: Purse) -> str:
    if rule.message_program is not None:
        try:
            found = _paid(rule.message_program, names, purse)
        except CelError:
            return rule.message
        if isinstance(found, str) and found.strip() and "\n" not in found and len(found) <= LONGEST_MESSAGE:
            return found
    return rule.message
