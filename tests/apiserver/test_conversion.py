"""Custom kinds with a webhook that converts their versions: written, read, listed and watched in each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.apiserver.server_process import in_thread
from tests.apiserver.webhook_program import Object, Program, patch, serving
from tests.apiserver.wire import Wire

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
V1, V2 = "/apis/example.com/v1/namespaces/default/boxes", "/apis/example.com/v2/namespaces/default/boxes"


def version(name: str, field: str, stored: bool) -> Object:
    spec = {"type": "object", "properties": {field: {"type": "integer", "maximum": 9}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    return {"name": name, "served": True, "storage": stored, "schema": {"openAPIV3Schema": schema}}


def convert(path: str, request: Object) -> Object:
    """`size` in v1 is `amount` in v2."""
    names = {"example.com/v1": "size", "example.com/v2": "amount"}
    wanted = request["desiredAPIVersion"]
    found = [
        {**one, "apiVersion": wanted, "spec": {names[wanted]: one["spec"][names[one["apiVersion"]]]}} if one.get("spec") else one
        for one in request["objects"]
    ]
    return {"result": {"status": "Success"}, "convertedObjects": found}


@pytest.fixture
def program() -> Iterator[Program]:
    with serving() as made:
        made.answer = convert
        yield made


@pytest.fixture
def wire(program: Program) -> Iterator[Wire]:
    with in_thread(plain=True) as server, Wire(server) as connection:
        server.call(lambda store: store.create("namespaces", {"metadata": {"name": "test"}}))
        server.call(lambda store: store.create("services", program.service(), "test"))
        webhook = {"clientConfig": program.client("/convert"), "conversionReviewVersions": ["v1"]}
        names = {"kind": "Box", "plural": "boxes"}
        spec = {"group": "example.com", "scope": "Namespaced", "names": names, "conversion": {"strategy": "Webhook", "webhook": webhook}}
        spec["versions"] = [version("v1", "size", True), version("v2", "amount", False)]
        status, made = connection.ask("POST", CRDS, {"metadata": {"name": "boxes.example.com"}, "spec": spec})
        assert status == 201, made
        yield connection


def box(name: str, api_version: str, **spec: Any) -> Object:
    return {"apiVersion": f"example.com/{api_version}", "kind": "Box", "metadata": {"name": name}, "spec": spec}


def test_each_version_is_written_and_read_in_its_own_form(wire: Wire) -> None:
    status, made = wire.ask("POST", V2, box("b", "v2", amount=3))
    assert (status, made["apiVersion"], made["spec"]) == (201, "example.com/v2", {"amount": 3})
    assert wire.ask("GET", f"{V1}/b")[1]["spec"] == {"size": 3}
    assert wire.ask("GET", f"{V2}/b")[1] == made
    made["spec"]["amount"] = 4
    status, updated = wire.ask("PUT", f"{V2}/b", made)
    assert (status, updated["spec"], updated["metadata"]["generation"]) == (200, {"amount": 4}, 2)
    status, patched = wire.ask("PATCH", f"{V2}/b", {"spec": {"amount": 5}}, "application/merge-patch+json")
    assert (status, patched["spec"]) == (200, {"amount": 5})
    assert wire.ask("GET", f"{V1}/b")[1]["spec"] == {"size": 5}
    assert wire.ask("DELETE", f"{V2}/b")[0] == 200


def test_a_list_is_converted_in_one_call_and_only_once(wire: Wire, program: Program) -> None:
    for number in range(3):
        wire.ask("POST", V1, box(f"b{number}", "v1", size=number + 1))
    assert not program.asked
    for _ in range(2):
        assert [one["spec"]["amount"] for one in wire.ask("GET", V2)[1]["items"]] == [1, 2, 3]
    assert len(program.asked) == 1 and len(program.asked[0][1]["objects"]) == 3


def test_a_watch_shows_its_own_version(wire: Wire) -> None:
    _, listed = wire.ask("GET", V2)
    wire.ask("POST", V1, box("b", "v1", size=1))
    wire.ask("PATCH", f"{V1}/b", {"spec": {"size": 2}}, "application/merge-patch+json")
    wire.ask("DELETE", f"{V1}/b")
    wire.watch(f"{V2}?watch=1&resourceVersion={listed['metadata']['resourceVersion']}")
    seen = [(event["type"], event["object"]["apiVersion"], event["object"]["spec"]) for event in wire.events(3)]
    assert seen == [(sort, "example.com/v2", {"amount": amount}) for sort, amount in (("ADDED", 1), ("MODIFIED", 2), ("DELETED", 2))]


def test_each_version_is_checked_by_its_own_schema(wire: Wire) -> None:
    assert wire.ask("POST", V2, box("b", "v2", amount=10))[0] == 422
    status, made = wire.ask("POST", V2, box("b", "v2", size=1))
    assert status == 201 and "size" not in made["spec"]


def test_a_failed_conversion_is_told_and_nothing_is_written(wire: Wire, program: Program) -> None:
    program.answer = lambda path, request: {"result": {"status": "Failed", "message": "no such size"}}
    status, refusal = wire.ask("POST", V2, box("b", "v2", amount=3))
    assert (status, refusal["message"]) == (500, "conversion webhook for example.com/v2, Kind=Box failed: no such size")
    assert wire.ask("GET", f"{V1}/b")[0] == 404
    wire.ask("POST", V1, box("b", "v1", size=1))
    assert wire.ask("GET", V2)[0] == 500
    wire.watch(f"{V2}?watch=1&resourceVersion=1")
    assert wire.events(1)[0]["type"] == "ERROR"


@pytest.mark.parametrize(
    ("conversion", "why"),
    [
        ({"strategy": "Magic"}, "Unsupported value"),
        ({"strategy": "Webhook"}, "exactly one of url or service"),
        ({"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://x/y"}}}, "must include v1"),
    ],
)
def test_a_conversion_that_cannot_work_is_refused(wire: Wire, conversion: Object, why: str) -> None:
    spec = {"group": "example.org", "scope": "Namespaced", "names": {"kind": "Can", "plural": "cans"}, "conversion": conversion}
    spec["versions"] = [version("v1", "size", True)]
    if "webhook" in conversion:
        conversion["webhook"]["conversionReviewVersions"] = ["v1beta1"]
    status, refusal = wire.ask("POST", CRDS, {"metadata": {"name": "cans.example.org"}, "spec": spec})
    assert status == 422 and why in refusal["message"]


ADMISSION = "/apis/admissionregistration.k8s.io/v1"
ON_V2 = {"apiGroups": ["example.com"], "apiVersions": ["v2"], "resources": ["boxes"], "operations": ["CREATE"]}


@pytest.mark.parametrize("policy", ["Equivalent", "Exact"])
def test_a_webhook_is_shown_the_version_that_its_rules_name(wire: Wire, program: Program, policy: str) -> None:
    def answer(path: str, request: Object) -> Object:
        return convert(path, request) if path == "/convert" else patch({"op": "replace", "path": "/spec/amount", "value": 7})

    program.answer = answer
    hooks = {"metadata": {"name": "hooks"}, "webhooks": [program.hook("/see", ON_V2, matchPolicy=policy)]}
    assert wire.ask("POST", f"{ADMISSION}/mutatingwebhookconfigurations", hooks)[0] == 201
    status, made = wire.ask("POST", V1, box("b", "v1", size=3))
    seen = [asked for path, asked in program.asked if path == "/see"]
    if policy == "Exact":
        assert (status, made["spec"], seen) == (201, {"size": 3}, [])
        return
    assert (status, made["apiVersion"], made["spec"]) == (201, "example.com/v1", {"size": 7})
    (asked,) = seen
    assert (asked["object"]["apiVersion"], asked["object"]["spec"]) == ("example.com/v2", {"amount": 3})
    assert [asked[field]["version"] for field in ("kind", "resource", "requestKind", "requestResource")] == ["v2", "v2", "v1", "v1"]


def test_policies_see_the_version_that_their_rules_name(wire: Wire) -> None:
    limit = [{"expression": "object.spec.amount < 5", "message": "too much"}]
    more = {"applyConfiguration": {"expression": "Object{spec: Object.spec{amount: object.spec.amount + 2}}"}}
    mutation = {"mutations": [{"patchType": "ApplyConfiguration", **more}], "reinvocationPolicy": "Never"}
    for sort, spec, action in (("validating", {"validations": limit}, {"validationActions": ["Deny"]}), ("mutating", mutation, {})):
        spec = {"matchConstraints": {"resourceRules": [ON_V2]}, **spec}
        binding = {"metadata": {"name": "p"}, "spec": {"policyName": "p", **action}}
        for kind, body in (
            (f"{sort}admissionpolicies", {"metadata": {"name": "p"}, "spec": spec}),
            (f"{sort}admissionpolicybindings", binding),
        ):
            status, answer = wire.ask("POST", f"{ADMISSION}/{kind}", body)
            assert status == 201, answer
    assert wire.ask("POST", V1, box("a", "v1", size=2))[1]["spec"] == {"size": 4}
    status, answer = wire.ask("POST", V1, box("b", "v1", size=3))
    assert status == 422 and "too much" in answer["message"]


def test_what_is_not_converted_is_shown_in_one_version_too(wire: Wire, program: Program) -> None:
    group = {"group": "plain.example.com", "scope": "Namespaced", "names": {"kind": "Jar", "plural": "jars"}}
    versions = [version("v1", "size", True), version("v2", "size", False)]
    definition = {"metadata": {"name": "jars.plain.example.com"}, "spec": group | {"versions": versions}}
    assert wire.ask("POST", CRDS, definition)[0] == 201
    program.answer = lambda path, request: {"allowed": True}
    rule = ON_V2 | {
        "apiGroups": ["plain.example.com"],
        "apiVersions": ["v1"],
        "resources": ["jars"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
    }
    hooks = {"metadata": {"name": "hooks"}, "webhooks": [program.hook("/see", rule)]}
    assert wire.ask("POST", f"{ADMISSION}/validatingwebhookconfigurations", hooks)[0] == 201
    path = "/apis/plain.example.com/{}/namespaces/default/jars"
    assert wire.ask("POST", path.format("v2"), {"metadata": {"name": "j"}, "spec": {"size": 1}})[0] == 201
    assert wire.ask("PATCH", f"{path.format('v1')}/j", {"spec": {"size": 2}}, "application/merge-patch+json")[0] == 200
    assert wire.ask("DELETE", f"{path.format('v2')}/j")[0] == 200
    seen = [(one["apiVersion"] if (one := asked[field]) else None) for _, asked in program.asked for field in ("object", "oldObject")]
    assert seen == ["plain.example.com/v1", None, "plain.example.com/v1", "plain.example.com/v1", None, "plain.example.com/v1"]
