"""The schemas of CustomResourceDefinitions: objects are pruned, defaulted and validated by them in one walk. And the shape of a schema.

Only structural schemas, as apiextensions.k8s.io/v1 requires. Rules in CEL are evaluated after this, see `crd_rules`.
"""

from functools import lru_cache
from typing import Any

import msgspec

from pumice.api import Object, instant
from pumice.api.json_objects import clone
from pumice.api.regular_expressions import PatternError, pattern
from pumice.cluster.apiserver.scheme.builtin_shapes import shape_of
from pumice.cluster.apiserver.scheme.schema import Shape
from pumice.cluster.apiserver.validation.field_rules import Causes, unsupported

PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
EMBEDDED = "x-kubernetes-embedded-resource"

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_COMBINED = frozenset(("allOf", "anyOf", "oneOf", "not"))
_SHORT = 64  #: characters of a text of which is remembered whether it matches a pattern: amounts are always the same few
_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


MOST_CAUSES = 100  #: reported of each sort
MOST_PATH = 1000  #: characters of a path that are reported


class Findings:
    """What a walk found wrong: the paths of fields that the schema does not have, and pairs of a path and a message."""

    def __init__(self, *, checks: bool = True) -> None:
        self.checks = checks  #: whether values are checked, or only types and structure
        self.unknown: list[str] = []
        self.has_wrong_types = False  #: if it has, the object is refused before admission
        self.causes: Causes = []

    def refuse(self, path: str, message: str) -> None:
        _note(self.causes, (path or "<nil>", message))

    def refuse_type(self, path: str, message: str) -> None:
        self.has_wrong_types = True
        self.refuse(path, message)


def _note(found: list[Any], one: Any) -> None:
    """Add a finding, up to MOST_CAUSES: a long list of wrong values is refused without a message for each."""
    if len(found) < MOST_CAUSES:
        found.append(one)


ABSENT: Any = object()  #: there is no stored value


def settle(schema: Object, value: Any, path: str, found: Findings, stored: Any = ABSENT) -> Any:
    """The value without unknown fields and with defaults. What is wrong with it is added to `found`, but for parts that equal those of
    `stored`: a schema that has become stricter does not block updates of other parts."""
    if value == stored:
        return value
    if value is None and not schema.get("nullable"):
        found.refuse_type(path, f'Invalid value: "null": {path} in body must be of type {schema.get("type", "object")}: "null"')
        return value
    if not _right_type(schema, value):
        found.refuse_type(path, f'Invalid value: "{go_type(value)}": {path} in body must be of type {_wanted(schema)}: "{go_type(value)}"')
        if found.checks:
            _check_enum(schema, value, path, found)
        return value
    if isinstance(value, dict):
        value = _settle_object(schema, value, path, found, stored if isinstance(stored, dict) else {})
    elif isinstance(value, list):
        item_schema = schema.get("items")
        if item_schema:
            before = _correlated(schema, value, stored)
            value = [settle(item_schema, item, f"{path}[{index}]", found, before[index]) for index, item in enumerate(value)]
    if value is not None and found.checks:
        check(schema, value, path, found)
    return value


def _correlated(schema: Object, value: list[Any], stored: Any) -> list[Any]:
    """For each item the stored one with the same keys; ABSENT if there is none, or if items have no keys."""
    keys = _map_keys(schema)
    if not keys or not isinstance(stored, list):
        return [ABSENT] * len(value)
    before = {_encoded(_identity(item, keys)): item for item in stored}
    return [before.get(_encoded(_identity(item, keys)), ABSENT) for item in value]


def _settle_object(schema: Object, value: Object, path: str, found: Findings, stored: Object) -> Object:
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    result: Object = {}
    embedded = schema.get(EMBEDDED)
    path = path[:MOST_PATH]
    for key, item in value.items():
        inner = f"{path}.{key}" if path else key
        before = stored.get(key, ABSENT)
        known = properties.get(key)
        if known is not None:
            if item is None and not known.get("nullable") and ("default" in known or key not in (schema.get("required") or ())):
                continue
            result[key] = settle(known, item, inner, found, before)
        elif isinstance(additional, dict) and item is None and not additional.get("nullable"):
            continue
        elif isinstance(additional, dict):
            result[key] = settle(additional, item, inner, found, before)
        elif additional is True or schema.get(PRESERVE) or (embedded and key in ("apiVersion", "kind", "metadata")):
            result[key] = item
        else:
            _note(found.unknown, inner)
    for key, known in properties.items():
        if key not in result and "default" in known:
            result[key] = settle(known, clone(known["default"]), f"{path}.{key}" if path else key, found)
    return result


def check(schema: Object, value: Any, path: str, found: Findings) -> None:
    """Check what a schema requires besides types and structure. What is wrong is added to `found`."""
    _check_enum(schema, value, path, found)
    if isinstance(value, str):
        _check_string(schema, value, path, found)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _check_number(schema, value, path, found)
    elif isinstance(value, dict):
        _check_count(schema, len(value), path, "Properties", found)
        missing = [key for key in schema.get("required") or () if key not in value]
        for key in missing:
            found.refuse(f"{path}.{key}" if path else key, "Required value")
    elif isinstance(value, list):
        _check_count(schema, len(value), path, "Items", found)
        _check_unique(schema, value, path, found)
    if not _COMBINED.isdisjoint(schema):
        _check_combinations(schema, value, path, found)


def _check_enum(schema: Object, value: Any, path: str, found: Findings) -> None:
    for place, text in unsupported(path, value, schema["enum"]) if "enum" in schema else ():
        found.refuse(place, text)


def _check_combinations(schema: Object, value: Any, path: str, found: Findings) -> None:
    for part in schema.get("allOf") or ():
        _check_inside(part, value, path, found)
    if schema.get("anyOf") and not any(_accepts(part, value) for part in schema["anyOf"]):
        found.refuse(path, f'Invalid value: "": "{path}" must validate at least one schema (anyOf)')
    if schema.get("oneOf") and sum(_accepts(part, value) for part in schema["oneOf"]) != 1:
        found.refuse(path, f'Invalid value: "": "{path}" must validate one and only one schema (oneOf)')
    if schema.get("not") and _accepts(schema["not"], value):
        found.refuse(path, f'Invalid value: "": "{path}" must not validate the schema (not)')


def _check_inside(schema: Object, value: Any, path: str, found: Findings) -> None:
    """Check a value by a schema within allOf, anyOf, oneOf or not: only what it requires of values, in nested properties, too."""
    if not _right_type(schema, value):
        found.refuse(path, f'Invalid value: "": {path} in body must be of type {_wanted(schema)}')
        return
    check(schema, value, path, found)
    if isinstance(value, dict):
        for key, known in (schema.get("properties") or {}).items():
            if key in value:
                _check_inside(known, value[key], f"{path}.{key}", found)


def _accepts(schema: Object, value: Any) -> bool:
    if not _right_type(schema, value):
        return False
    if len(schema) == 1 and "type" in schema:
        return True
    found = Findings()
    _check_inside(schema, value, "", found)
    return not found.causes


def _check_string(schema: Object, value: str, path: str, found: Findings) -> None:
    if len(value) > schema.get("maxLength", len(value)):
        found.refuse(path, f"Too long: may not be more than {schema['maxLength']} bytes")
    if len(value) < schema.get("minLength", 0):
        found.refuse(path, f'Invalid value: "{value}": {path} in body should be at least {schema["minLength"]} chars long')
    if schema.get("pattern"):
        _check_pattern(schema["pattern"], value, path, found)
    if schema.get("format") == "date-time":
        try:
            instant(value if "T" in value.upper() else "")
        except ValueError:
            found.refuse(path, f'Invalid value: "{value}": {path} in body must be of type date-time: "{value}"')


def _check_pattern(wanted: str, value: str, path: str, found: Findings) -> None:
    try:
        if _matches_short(wanted, value) if len(value) <= _SHORT else pattern(wanted).found_in(value):
            return
        fault = ""
    except PatternError as error:
        fault = f", but pattern is invalid: {error}"
    found.refuse(path, f"Invalid value: \"{value}\": {path} in body should match '{wanted}{fault}'")


@lru_cache(maxsize=1024)
def _matches_short(wanted: str, value: str) -> bool:
    return pattern(wanted).found_in(value)


def _check_number(schema: Object, value: float, path: str, found: Findings) -> None:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and (value < least or (value == least and schema.get("exclusiveMinimum"))):
        word = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        found.refuse(path, f"Invalid value: {value}: {path} in body should be {word} {least}")
    if most is not None and (value > most or (value == most and schema.get("exclusiveMaximum"))):
        word = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        found.refuse(path, f"Invalid value: {value}: {path} in body should be {word} {most}")
    if schema.get("multipleOf") and value % schema["multipleOf"]:
        found.refuse(path, f"Invalid value: {value}: {path} in body should be a multiple of {schema['multipleOf']}")
    low, high = _RANGES.get(schema.get("format", ""), (value, value))
    if not low <= value <= high:
        found.refuse(path, f"Invalid value: {value}: {path} in body must be of type {schema['format']}")


def _check_count(schema: Object, count: int, path: str, word: str, found: Findings) -> None:
    if count > schema.get(f"max{word}", count):
        found.refuse(path, f"Too many: {count}: must have at most {schema[f'max{word}']} item{'' if schema[f'max{word}'] == 1 else 's'}")
    if count < schema.get(f"min{word}", 0):
        found.refuse(path, f"Invalid value: {count}: {path} in body should have at least {schema[f'min{word}']} items")


def _check_unique(schema: Object, value: list[Any], path: str, found: Findings) -> None:
    keys = _map_keys(schema)
    if not (keys or schema.get("uniqueItems") or schema.get("x-kubernetes-list-type") == "set"):
        return
    seen: set[bytes] = set()
    for index, item in enumerate(value):
        identity = _identity(item, keys)
        text = _encoded(identity)
        if text in seen:
            found.refuse(f"{path}[{index}]", f"Duplicate value: {identity}")
        seen.add(text)


def _map_keys(schema: Object) -> list[str]:
    """The fields that identify the items of a list; empty if none do."""
    return (schema.get("x-kubernetes-list-map-keys") or []) if schema.get("x-kubernetes-list-type") == "map" else []


def _identity(item: Any, keys: list[str]) -> Any:
    return [item.get(key) for key in keys] if keys and isinstance(item, dict) else item


def _encoded(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _right_type(schema: Object, value: Any) -> bool:
    wanted = schema.get("type")
    if type(value) is float and (wanted == "integer" or schema.get(INT_OR_STRING)):
        return value.is_integer()
    if schema.get(INT_OR_STRING):
        return type(value) in (int, str)
    if not wanted or (value is None and schema.get("nullable")):
        return True
    return type(value) in _TYPES.get(wanted, (object,))


def _wanted(schema: Object) -> str:
    return "integer,string" if schema.get(INT_OR_STRING) else str(schema.get("type"))


def go_type(value: Any) -> str:
    names = {dict: "object", list: "array", str: "string", int: "integer", float: "number", bool: "boolean"}
    return names.get(type(value), "null")


def shape_of_schema(schema: Object) -> Shape:
    """The shape of a schema: how its objects merge in a server-side apply, in the same terms as for built-in kinds."""
    if schema.get(INT_OR_STRING):
        return Shape("IntOrString")
    match schema.get("type"):
        case "array":
            shape = Shape("list", element=shape_of_schema(schema.get("items") or {}))
            list_type = schema.get("x-kubernetes-list-type")
            shape.keys = tuple(schema.get("x-kubernetes-list-map-keys") or ()) if list_type == "map" else ()
            shape.is_set = list_type == "set"
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            shape = Shape("map", element=shape_of_schema(schema["additionalProperties"]))
        case "object" | None:
            shape = Shape("struct", fields={key: shape_of_schema(inner) for key, inner in (schema.get("properties") or {}).items()})
            shape.preserve = bool(
                schema.get(PRESERVE) or schema.get(EMBEDDED) or not schema.get("type") or schema.get("additionalProperties")
            )
            shape.required = tuple(schema.get("required") or ())
        case other:
            shape = Shape({"integer": "int64", "boolean": "bool"}.get(str(other), str(other)))
    shape.atomic = schema.get("x-kubernetes-map-type") == "atomic" or schema.get("x-kubernetes-list-type") == "atomic"
    return shape


def root_shape(schema: Object) -> Shape:
    """The shape of a whole custom object, made from the schema of its kind."""
    shape = shape_of_schema(schema)
    shape.fields |= {"apiVersion": Shape("string"), "kind": Shape("string"), "metadata": shape_of("meta.v1.ObjectMeta")}
    return shape
