"""What is wrong with a version of a definition: its schema must be structural, as apiextensions.k8s.io/v1 requires, and its selectable
fields must name paths.

A schema is structural if it states the type of each value, and if what it demands in `allOf`, `anyOf`, `oneOf` and `not` is about fields
that it has outside of them.
"""

from collections.abc import Iterator, Sequence

from pumice.api import Object
from pumice.api.json_objects import clone
from pumice.api.regular_expressions import PatternError, pattern
from pumice.cluster.apiserver.scheme.structural_schema import EMBEDDED, INT_OR_STRING, PRESERVE, Findings, settle
from pumice.cluster.apiserver.validation.field_rules import Cause, Causes, forbidden, invalid, repeated, unsupported

_LIST_TYPE, _KEYS, _MAP_TYPE = "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_NEVER = ("$ref", "id", "patternProperties", "additionalItems", "definitions", "dependencies")
#: the fields that must not be inside of allOf, anyOf, oneOf and not, and what they must be there
_OUTSIDE = {"additionalProperties": "undefined", "default": "undefined", "description": "empty", "nullable": "false", "title": "empty"}
_SELECTABLE = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."


def schema_causes(schema: Object, path: str) -> Causes:
    """What is wrong with the schema of a version."""
    kind = schema.get("type")
    if kind != "object":
        rule = "must be object at the root" if kind else "must not be empty at the root"
        return [invalid(f"{path}.type", kind, rule) if kind else (f"{path}.type", f"Required value: {rule}")]
    causes = [forbidden(f"{path}.nullable", "nullable cannot be true at the root")] if schema.get("nullable") else []
    for field, wanted in (("apiVersion", "string"), ("kind", "string"), ("metadata", "object")):
        own = (schema.get("properties") or {}).get(field)
        if own is not None and own.get("type") != wanted:
            causes.append(invalid(f"{path}.properties[{field}].type", own.get("type", ""), f"must be {wanted}"))
        elif field == "metadata" and own is not None and own.get("properties", {}).keys() - {"name", "generateName"}:
            text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            causes.append(forbidden(f"{path}.properties[metadata]", text))
    return causes + list(_structural(schema, path, ""))


def _structural(schema: Object, path: str, what: str) -> Iterator[Cause]:
    """`what` says of what the schema is; empty: of the whole object."""
    kind, each, items = schema.get("type"), schema.get("additionalProperties"), schema.get("items")
    yield from (forbidden(f"{path}.{field}", f"{field} is not supported") for field in _NEVER if field in schema)
    if kind:
        yield from unsupported(f"{path}.type", kind, _TYPES)
    elif what and not (schema.get(PRESERVE) or schema.get(INT_OR_STRING) or "$ref" in schema):
        yield f"{path}.type", f"Required value: must not be empty for specified {what}"
    if schema.get(PRESERVE) is False:
        yield invalid(f"{path}.{PRESERVE}", False, "must be true or undefined")
    if schema.get(EMBEDDED) and not (schema.get("properties") or schema.get(PRESERVE)):
        yield f"{path}.properties", f"Required value: must not be empty if {EMBEDDED} is true without {PRESERVE}"
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", text)
    if schema.get("properties") and each not in (None, True):
        yield forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")
    if each is not None and not what:
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if kind == "array" and items is None:
        yield f"{path}.items", "Required value: must be specified"
    yield from _merging(schema, path)
    yield from _pattern(schema, path)
    for sort in ("allOf", "anyOf", "oneOf"):
        for index, part in enumerate(schema.get(sort) or ()):
            yield from _part(part, f"{path}.{sort}[{index}]", schema, path)
    yield from _part(schema.get("not") or {}, f"{path}.not", schema, path)
    below = [(inner, f"properties[{name}]", "object fields") for name, inner in (schema.get("properties") or {}).items()]
    below += [(each, "additionalProperties", "object fields")] if isinstance(each, dict) else []
    below += [(items, "items", "array items")] if isinstance(items, dict) else []
    found = [cause for inner, place, of in below for cause in _structural(inner, f"{path}.{place}", of)]
    yield from found
    if "default" in schema and not found:
        yield from _default(schema, f"{path}.default")


def _merging(schema: Object, path: str) -> Iterator[Cause]:
    """What is wrong with how a list or a map merges."""
    kind, list_type, map_type, keys = schema.get("type", ""), schema.get(_LIST_TYPE), schema.get(_MAP_TYPE), schema.get(_KEYS) or []
    stated = schema.get("items")
    items: Object = stated if isinstance(stated, dict) else {}
    if list_type is not None:
        yield from unsupported(f"{path}.{_LIST_TYPE}", list_type, ("atomic", "set", "map"))
        if kind != "array":
            yield invalid(f"{path}.type", kind, f"must be array if {_LIST_TYPE} is specified")
    if map_type is not None:
        yield from unsupported(f"{path}.{_MAP_TYPE}", map_type, ("atomic", "granular"))
        if kind != "object":
            yield invalid(f"{path}.type", kind, f"must be object if {_MAP_TYPE} is specified")
    if keys and list_type != "map":
        yield f"{path}.{_LIST_TYPE}", f"Required value: must be map if {_KEYS} is non-empty"
    if list_type == "set" and items.get("type") == "object" and items.get(_MAP_TYPE) != "atomic":
        yield invalid(f"{path}.items.{_MAP_TYPE}", items.get(_MAP_TYPE), f"must be atomic as item of a list with {_LIST_TYPE}=set")
    if list_type == "map":
        yield from _keyed(keys, items, path)


def _keyed(keys: Sequence[str], items: Object, path: str) -> Iterator[Cause]:
    if not keys:
        yield f"{path}.{_KEYS}", f"Required value: must not be empty if {_LIST_TYPE} is map"
    if items.get("type") not in (None, "object"):
        yield invalid(f"{path}.items.type", items["type"], f"must be object if parent array's {_LIST_TYPE} is map")
    fields = items.get("properties") or {}
    if [key for key in keys if key not in fields]:
        yield invalid(f"{path}.{_KEYS}", keys, "entries must all be names of item properties")
    for key in keys:
        if key in fields and "default" not in fields[key] and key not in (items.get("required") or ()):
            text = f"this property is in {_KEYS}, so it must have a default or be a required property"
            yield f"{path}.items.properties[{key}].default", f"Required value: {text}"


def _pattern(schema: Object, path: str) -> Iterator[Cause]:
    if "pattern" not in schema:
        return
    try:
        pattern(schema["pattern"])
    except PatternError as error:
        yield invalid(f"{path}.pattern", schema["pattern"], f"must be a valid regular expression, but isn't: {error}")


def _part(part: Object, path: str, schema: Object, outer: str) -> Iterator[Cause]:
    """What is wrong with a schema inside of allOf, anyOf, oneOf or not of another."""
    for field, state in _OUTSIDE.items():
        if part.get(field):
            yield forbidden(f"{path}.{field}", f"must be {state} to be structural")
    if part.get("type") and not schema.get(INT_OR_STRING):
        yield forbidden(f"{path}.type", "must be empty to be structural")
    yield from _pattern(part, path)
    known = schema.get("properties") or {}
    for name, inner in (part.get("properties") or {}).items():
        place = f"properties[{name}]"
        if name in known:
            yield from _part(inner, f"{path}.{place}", known[name], f"{outer}.{place}")
        elif not (schema.get(PRESERVE) or schema.get("additionalProperties")):
            yield f"{outer}.{place}", f"Required value: because it is defined in {path}.{place}"


def _default(schema: Object, path: str) -> Iterator[Cause]:
    found = Findings()
    settle(schema, clone(schema["default"]), "", found)
    if found.unknown:
        yield invalid(path, schema["default"], "must not have unknown fields")
    yield from ((path, text) for _, text in found.causes)


def selectable_causes(version: Object, path: str) -> Iterator[Cause]:
    """What is wrong with the selectable fields of a version."""
    paths = [str(field.get("jsonPath") or "") for field in version.get("selectableFields") or ()]
    root = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    for index, stated in enumerate(paths):
        place = f"{path}.selectableFields[{index}].jsonPath"
        schema: Object | None = root if stated.startswith(".") else None
        for step in stated.split(".")[1:]:
            schema = ((schema or {}).get("properties") or {}).get(step) if step != "metadata" or schema is not root else None
        if schema is None:
            yield invalid(place, stated, "is an invalid path: does not refer to a valid field")
        elif schema.get("type") not in ("string", "boolean", "integer"):
            yield invalid(place, stated, _SELECTABLE)
    yield from ((f"{path}.selectableFields[{index}].jsonPath", f'Duplicate value: "{paths[index]}"') for index in repeated(paths))
