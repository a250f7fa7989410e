"""One rule of a custom kind, compiled, and what it says of a value.

Who has no rules does not load this module, as the language takes long to load.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from pumice.api import Object
from pumice.api.cel.check import Environment
from pumice.api.cel.cost import EACH_EXPRESSION, CostBudget
from pumice.api.cel.errors import CelError, CompileError, CostError, EvaluationError
from pumice.api.cel.library.times import instant, span
from pumice.api.cel.program import Program
from pumice.api.cel.syntax import RESERVED, WORDS
from pumice.api.cel.values import BOOL, DYN, STRING, CelType, Optional, kind, list_of, map_of, optional_of
from pumice.cluster.apiserver.scheme.structural_schema import EMBEDDED, INT_OR_STRING, go_type

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


LONGEST_MESSAGE = 5 * 1024  #: the most characters of a message that an expression returns
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

    def cause(self, seen: Seen | None, value: Any, old: Any, path: str, budget: CostBudget) -> tuple[str, str] | None:
        """The cause for refusing a value, if the rule does not hold: path and sentence. `old` is None where there was no value. A budget
        that is spent has less than nothing afterwards."""
        if self.is_transition and old is None and not self.old_is_optional:
            return None
        names = {"self": seen(value) if seen else value}
        if self.is_transition:
            before = None if old is None else seen(old) if seen else old
            names["oldSelf"] = Optional(old is not None, before) if self.old_is_optional else before
        place = (path + self.field_path).lstrip(".") or "<nil>"
        try:
            if _paid(self.program, names, budget) is True:
                return None
            message = _message(self, names, budget)
        except CostError as error:
            message, budget.left = _stopped(error, self, budget), -1
        except EvaluationError as error:
            message = f"{error} evaluating rule: {self.text}"
        return place, self.sentence.format(type=go_type(value), message=message)


def rule_of(stated: Object, schema: Object, is_root: bool) -> ValidationRule:
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


def _paid(program: Program, names: Object, budget: CostBudget) -> Any:
    """The value of an expression. Its cost is taken from the budget and is limited for each expression. Raises EvaluationError."""
    own = CostBudget(min(EACH_EXPRESSION, budget.left))
    before = own.left
    try:
        return program.value(names, own)
    finally:
        budget.left -= before - max(own.left, 0)


def _stopped(error: CostError, rule: ValidationRule, budget: CostBudget) -> str:
    if budget.left <= 0:
        return "validation failed due to running out of cost budget, no further validation rules will be run"
    return f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {rule.text}"


def _message(rule: ValidationRule, names: Object, budget: CostBudget) -> str:
    if rule.message_program is not None:
        try:
            found = _paid(rule.message_program, names, budget)
        except CelError:
            return rule.message
        if isinstance(found, str) and found.strip() and "\n" not in found and len(found) <= LONGEST_MESSAGE:
            return found
    return rule.message
