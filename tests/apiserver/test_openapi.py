"""What OpenAPI says of lists that merge, and the document of version 2."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from typing import Any

from pumice.cluster.apiserver.openapi.v2 import ANSWERED, PROTOBUF
from pumice.cluster.apiserver.openapi.v3 import descriptions
from pumice.cluster.apiserver.scheme.builtin_shapes import shape_of
from tests.apiserver.server_process import in_thread
from tests.apiserver.wire import Wire

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def test_patch_strategies_are_told_with_the_keys_that_are_retained() -> None:
    with in_thread(plain=True) as running, Wire(running) as wire:
        core = wire.ask("GET", "/openapi/v3/api/v1")[1]["components"]["schemas"]
        spec = core["core.v1.PodSpec"]["properties"]
        for field, strategy, key in (("volumes", "merge,retainKeys", "name"), ("containers", "merge", "name"), ("tolerations", None, None)):
            told = spec[field].get("x-kubernetes-patch-strategy"), spec[field].get("x-kubernetes-patch-merge-key")
            assert told == (strategy, key)
        apps = wire.ask("GET", "/openapi/v3/apis/apps/v1")[1]["components"]["schemas"]["apps.v1.DeploymentSpec"]["properties"]
        assert apps["strategy"]["x-kubernetes-patch-strategy"] == "retainKeys"
        assert spec["nodeName"]["description"].startswith("The node that it is bound to")


def test_a_definitions_schema_is_told_with_its_descriptions_and_without_flags_that_are_false() -> None:
    off = {"nullable": False, "exclusiveMinimum": False, "x-kubernetes-int-or-string": False}
    many = {"type": "array", "description": "Some.", "uniqueItems": False, "items": {"type": "integer", **off}}
    spec = {"type": "object", "description": "What it is.", "properties": {"nullable": {"type": "boolean", "default": False}, "many": many}}
    spec |= {"oneOf": [{"required": ["many"], **off}], **off}
    schema = {"type": "object", "description": "A box.", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Box", "plural": "boxes"}
    body = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    with in_thread(plain=True) as running, Wire(running) as wire:
        wire.ask("POST", CRDS, {"metadata": {"name": "boxes.example.com"}, "spec": body})
        told = wire.ask("GET", "/openapi/v3/apis/example.com/v1")[1]["components"]["schemas"]["com.example.v1.Box"]
    assert (told["description"], told["properties"]["spec"]) == (
        "A box.",
        {
            "type": "object",
            "description": "What it is.",
            "properties": {
                "nullable": {"type": "boolean", "default": False},
                "many": {"type": "array", "description": "Some.", "items": {"type": "integer"}},
            },
            "oneOf": [{"required": ["many"]}],
        },
    )


def test_the_parameters_of_an_operation_are_those_that_are_served() -> None:
    with in_thread(plain=True) as running, Wire(running) as wire:
        pods = wire.ask("GET", "/openapi/v3/api/v1")[1]["paths"]["/api/v1/namespaces/{namespace}/pods"]
        told = {method: {parameter["name"] for parameter in pods[method]["parameters"]} for method in ("get", "post", "delete")}
        selects = {"labelSelector", "fieldSelector"}
        assert told["get"] >= {*selects, "limit", "continue", "resourceVersion", "resourceVersionMatch"}
        assert told["delete"] == {*selects, "dryRun", "propagationPolicy", "gracePeriodSeconds"}
        assert told["post"] == {"dryRun", "fieldValidation", "fieldManager"}


def test_documents_have_the_version_that_the_server_says_of_itself() -> None:
    with in_thread(plain=True) as running, Wire(running) as wire:
        for version in ("v1.36.1", "v1.37.2"):
            running.server.store.version = f"{version}+pumice"
            group = "apps" if version == "v1.36.1" else "batch"  # a document is kept once it is made
            assert wire.ask("GET", f"/openapi/v3/apis/{group}/v1")[1]["info"] == {"title": "Pumice", "version": version}
        assert wire.ask("GET", "/openapi/v2")[1]["info"]["version"] == "v1.37.2"


def test_what_is_described_exists() -> None:
    for name in descriptions():
        struct, field = name.rsplit(".", 1) if name.count(".") == 3 else (name, "")
        if struct.startswith("object."):
            continue  # of every object of a custom kind
        assert not field or field in shape_of(struct).fields, name


def fields(message: bytes) -> dict[int, list[bytes]]:
    """A message of gnostic's: its fields are text or messages."""
    found: dict[int, list[bytes]] = defaultdict(list)
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value

    while at < len(message):
        key, size = divmod(number(), 8), number()
        assert key[1] == 2
        found[key[0]].append(message[at : at + size])
        at += size
    return found


def named(messages: list[bytes]) -> dict[str, bytes]:
    pairs = [fields(message) for message in messages]
    return {pair[1][0].decode(): pair[2][0] for pair in pairs}


def schema(message: bytes) -> dict[str, Any]:
    """In JSON, by the numbers of openapiv2.proto."""
    found: dict[str, Any] = {}
    for number, values in fields(message).items():
        match number:
            case 1 | 2 | 3 | 4 | 13:
                found[{1: "$ref", 2: "format", 3: "title", 4: "description", 13: "pattern"}[number]] = values[0].decode()
            case 5:
                found["default"] = json.loads(fields(values[0])[2][0])
            case 20:
                found["enum"] = [json.loads(fields(value)[2][0]) for value in values]
            case 19:
                found["required"] = [value.decode() for value in values]
            case 21:
                found["additionalProperties"] = schema(fields(values[0])[1][0])
            case 22:
                found["type"] = fields(values[0])[1][0].decode()
            case 23:
                found["items"] = schema(fields(values[0])[1][0])
            case 25:
                found["properties"] = {name: schema(value) for name, value in named(fields(values[0])[1]).items()}
            case 31:
                found |= extensions(values)
            case _:
                raise AssertionError(number)
    return found


def unbounded(value: Any) -> Any:
    """Without the bounds of amounts and lengths, which are said in JSON only."""
    if isinstance(value, list):
        return [unbounded(each) for each in value]
    if not isinstance(value, dict):
        return value
    bounds = {"maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf", "uniqueItems", "example"}
    bounds |= {f"{end}{what}" for end in ("max", "min") for what in ("Length", "Items", "Properties")}
    return {key: unbounded(inner) for key, inner in value.items() if key not in bounds or isinstance(inner, dict)}


def extensions(messages: list[bytes]) -> dict[str, Any]:
    return {name: json.loads(fields(value)[2][0]) for name, value in named(messages).items()}


def operation(path: bytes) -> dict[str, Any]:
    (patch,) = fields(path).pop(8)
    found = fields(patch)
    parameters = [fields(fields(fields(fields(each)[1][0])[2][0])[3][0]) for each in found[8]]
    ((code, response),) = named(fields(found[9][0])[1]).items()
    return {
        "operationId": found[5][0].decode(),
        "parameters": [{"name": each[4][0].decode(), "in": each[2][0].decode(), "type": each[6][0].decode()} for each in parameters],
        "responses": {code: {"description": fields(fields(response)[1][0])[1][0].decode()}},
        **extensions(found[13]),
    }


def test_version_2_says_in_protobuf_what_it_says_in_json() -> None:
    with in_thread(plain=True) as running, Wire(running) as wire:
        wire.send(wire.request("GET", "/openapi/v2", Accept=PROTOBUF))
        _, headers, body = wire.answer()
        assert headers["content-type"] == ANSWERED
        plain, found = wire.ask("GET", "/openapi/v2")[1], fields(body)
        assert found[1] == [plain["swagger"].encode()]
        title, version = (fields(found[2][0])[number][0].decode() for number in (1, 2))
        assert {"title": title, "version": version} == plain["info"]
        assert {path: {"patch": operation(item)} for path, item in named(fields(found[8][0])[2]).items()} == plain["paths"]
        assert {name: schema(value) for name, value in named(fields(found[9][0])[1]).items()} == unbounded(plain["definitions"])


def test_version_2_has_every_kind_and_only_references_that_lead_somewhere() -> None:
    with in_thread(plain=True) as running, Wire(running) as wire:
        wire.send(wire.request("GET", "/openapi/v2", Accept_Encoding="gzip"))
        _, headers, body = wire.answer()
        assert headers["content-encoding"] == "gzip"
        definitions = json.loads(gzip.decompress(body))["definitions"]
        named = {each["kind"] for schema in definitions.values() for each in schema.get("x-kubernetes-group-version-kind", ())}
        assert {"Pod", "Job", "Queue", "PodGroup", "ResourceClaim", "CustomResourceDefinition"} <= named
        text = json.dumps(definitions)
        references = {part.split('"')[0] for part in text.split('"#/definitions/')[1:]}
        assert references <= definitions.keys()
        assert "components" not in text
        plain = wire.ask("GET", "/openapi/v2")[1]
        assert plain["definitions"] == definitions
