"""What OpenAPI says of lists that merge, and the document of version 2."""

from __future__ import annotations

import gzip
import json

from pumice.cluster.apiserver.openapi import descriptions
from pumice.cluster.apiserver.schema import shape_of
from tests.apiserver.server_process import in_thread
from tests.apiserver.wire import Wire


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


def test_what_is_described_exists() -> None:
    for name in descriptions():
        struct, field = name.rsplit(".", 1) if name.count(".") == 3 else (name, "")
        assert not field or field in shape_of(struct).fields, name


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
