"""OpenAPI v2 of all kinds in one document, made from the schemas of v3: kubectl validates lists and older kinds by it.

kubectl reads it in protobuf; the messages are those of gnostic, and bounds of amounts and lengths are left out of them. Parts of custom
schemas that v2 cannot express are left out, as the API server does it.
"""

from collections.abc import Sequence

from pumice.api import Object

PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
ANSWERED = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"  #: an @ is not allowed in a content type
_WORDS = "type format required description title enum default pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"
_LIMITS = "minLength maxLength minItems maxItems uniqueItems minProperties maxProperties example"
_KEPT = frozenset(f"{_WORDS} {_LIMITS}".split())
_REFERENCE, _DEFINITION = "#/components/schemas/", "#/definitions/"


def document(documents: Sequence[Object]) -> Object:
    """The v2 document, made from the v3 documents of all group versions. Its paths have only PATCH operations and their parameters."""
    definitions: Object = {}
    paths: Object = {}
    for each in documents:
        for name, schema in each["components"]["schemas"].items():
            definitions.setdefault(name, _whole(schema))
        paths |= {path: {"patch": _operation(item["patch"])} for path, item in each["paths"].items() if "patch" in item}
    return {"swagger": "2.0", "info": documents[0]["info"], "paths": paths, "definitions": definitions}


def _whole(schema: Object) -> Object:
    """The schema of a kind. Of one that takes any field none is told, since kubectl would refuse the others."""
    if schema.get("x-kubernetes-preserve-unknown-fields") and schema.get("type") == "object":
        return {"type": "object", "x-kubernetes-group-version-kind": schema.get("x-kubernetes-group-version-kind", [])}
    return _schema(schema)


def _schema(schema: Object) -> Object:
    reference = schema.get("$ref") or next((part["$ref"] for part in schema.get("allOf") or () if "$ref" in part), None)
    found = {key: value for key, value in schema.items() if key.startswith("x-kubernetes-") and value is not False}
    if reference is not None:
        return found | {"$ref": _DEFINITION + reference.removeprefix(_REFERENCE)}
    if schema.get("format") == "int-or-string":
        return found | {"type": "string", "format": "int-or-string"}
    found |= {key: value for key, value in schema.items() if key in _KEPT and value is not False}
    if any(schema.get(key) for key in ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields", "nullable")):
        found.pop("type", None)  # kubectl takes anything where it finds no type, and refuses what is told beside that
        return found
    if "oneOf" in schema and "type" not in schema:  # a quantity
        return found | {"type": "string"}
    if schema.get("type") == "array" and "items" not in schema:
        del found["type"]
    if isinstance(schema.get("properties"), dict):
        found["properties"] = {name: _schema(inner) for name, inner in schema["properties"].items()}
        required = [name for name in schema.get("required") or () if not (schema["properties"].get(name) or {}).get("nullable")]
        found.pop("required", None)
        if required:
            found["required"] = required
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            found[key] = _schema(schema[key])
    return found


def _operation(operation: Object) -> Object:
    found = {key: operation[key] for key in ("operationId", "x-kubernetes-action", "x-kubernetes-group-version-kind")}
    queries = [{"name": each["name"], "in": "query", "type": "string"} for each in operation.get("parameters") or ()]
    return found | {"parameters": queries, "responses": {"200": {"description": "OK"}}}
