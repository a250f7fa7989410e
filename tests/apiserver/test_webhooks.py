"""Webhooks: which writes they are shown, how they change and refuse them, and what happens when they do not answer."""

from __future__ import annotations

import base64
import datetime
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pumice.client.certificates import Authority, private_pem
from pumice.client.tls import KeyPair
from tests.apiserver.server_process import Running, in_thread
from tests.apiserver.webhook_program import NAME, Object, Program, issued, patch, serving
from tests.apiserver.wire import Wire

MAPS = "/api/v1/namespaces/default/configmaps"
HOOKS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
ON_MAPS = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE", "DELETE"]}


@pytest.fixture
def program() -> Iterator[Program]:
    with serving() as made:
        yield made


@pytest.fixture
def running(program: Program) -> Iterator[Running]:
    with in_thread(plain=True) as server:
        server.call(lambda store: store.create("namespaces", {"metadata": {"name": "test"}}))
        server.call(lambda store: store.create("services", program.service(), "test"))
        yield server


@pytest.fixture
def wire(running: Running) -> Iterator[Wire]:
    with Wire(running) as connection:
        yield connection


def register(wire: Wire, sort: str, *hooks: Object, name: str = "hooks") -> Object:
    status, made = wire.ask("POST", HOOKS.format(sort), {"metadata": {"name": name}, "webhooks": list(hooks)})
    assert status == 201, made
    return dict(made)


def config_map(name: str = "m", **data: str) -> Object:
    return {"metadata": {"name": name}, "data": data}


def test_a_mutating_webhook_changes_what_is_stored(wire: Wire, program: Program) -> None:
    register(wire, "mutating", program.hook("/add", ON_MAPS))
    program.answer = lambda path, request: patch({"op": "add", "path": "/data/added", "value": request["object"]["metadata"]["uid"]})
    status, made = wire.ask("POST", MAPS, config_map(a="1"))
    assert (status, made["data"]) == (201, {"a": "1", "added": made["metadata"]["uid"]})
    ((path, request),) = program.asked
    assert (path, request["operation"], request["namespace"], request["name"]) == ("/add", "CREATE", "default", "m")
    assert request["resource"] == {"group": "", "version": "v1", "resource": "configmaps"} and request["oldObject"] is None
    assert request["userInfo"]["username"] and request["dryRun"] is False


def test_a_pod_that_a_webhook_gates_begins_as_one_with_gates(wire: Wire, program: Program) -> None:
    register(wire, "mutating", program.hook("/gate", ON_MAPS | {"resources": ["pods"]}))
    program.answer = lambda path, request: patch(
        {"op": "add", "path": "/spec/schedulingGates", "value": [{"name": "example.com/wait"}]},
        {"op": "add", "path": "/status/phase", "value": "Running"},
    )
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    _, made = wire.ask("POST", "/api/v1/namespaces/default/pods", pod)
    assert [condition["reason"] for condition in made["status"]["conditions"]] == ["SchedulingGated"]
    assert (made["status"]["phase"], made["status"]["qosClass"]) == ("Pending", "BestEffort")


def test_it_may_not_make_another_object_of_it_or_one_that_is_malformed(wire: Wire, program: Program) -> None:
    register(wire, "mutating", program.hook("/add", ON_MAPS))
    program.answer = lambda path, request: patch({"op": "replace", "path": "/metadata/uid", "value": "x"})
    status, made = wire.ask("POST", MAPS, config_map(a="1"))
    assert status == 201 and made["metadata"]["uid"] != "x"
    program.answer = lambda path, request: patch({"op": "add", "path": "/data", "value": ["x"]})
    assert wire.ask("POST", MAPS, config_map("n"))[0] == 400
    program.answer = lambda path, request: patch({"op": "remove", "path": "/none"})
    status, refusal = wire.ask("POST", MAPS, config_map("n"))
    assert status == 500 and "its patch" in refusal["message"]


def test_a_name_that_is_generated_is_the_one_that_the_webhook_saw(wire: Wire, program: Program) -> None:
    register(wire, "validating", program.hook("/see", ON_MAPS))
    status, made = wire.ask("POST", MAPS, {"metadata": {"generateName": "g-"}})
    assert status == 201 and program.asked[0][1]["object"]["metadata"]["name"] == made["metadata"]["name"]
    assert program.asked[0][1]["object"]["metadata"]["uid"] == made["metadata"]["uid"]


def test_an_eviction_that_webhooks_are_asked_about_uses_up_one_disruption(wire: Wire, program: Program) -> None:
    register(wire, "validating", program.hook("/see", ON_MAPS | {"resources": ["pods"], "operations": ["DELETE"]}))
    space = "/api/v1/namespaces/default"
    wire.ask("POST", f"{space}/pods", {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}})
    merge = "application/merge-patch+json"
    wire.ask("PATCH", f"{space}/pods/p/status", {"status": {"phase": "Running"}}, merge)
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    wire.ask("POST", budgets, {"metadata": {"name": "b"}, "spec": {"selector": {}}})
    wire.ask("PATCH", f"{budgets}/b/status", {"status": {"observedGeneration": 1, "disruptionsAllowed": 2}}, merge)
    assert wire.ask("POST", f"{space}/pods/p/eviction", {"metadata": {"name": "p"}})[0] == 201
    assert len(program.asked) == 1 and wire.ask("GET", f"{budgets}/b")[1]["status"]["disruptionsAllowed"] == 1


def test_a_validating_webhook_refuses_in_its_own_words(wire: Wire, program: Program) -> None:
    register(wire, "validating", program.hook("/no", ON_MAPS))
    program.answer = lambda path, request: {"allowed": False, "warnings": ["be careful"], "status": {"message": "not today", "code": 409}}
    status, refusal = wire.ask("POST", MAPS, config_map())
    assert (status, refusal["message"]) == (409, 'admission webhook "no.example.com" denied the request: not today')
    program.answer = lambda path, request: {"allowed": False}
    status, refusal = wire.ask("POST", MAPS, config_map())
    assert (status, refusal["message"]) == (400, 'admission webhook "no.example.com" denied the request without explanation')
    assert wire.ask("GET", f"{MAPS}/m")[0] == 404


def test_it_sees_updates_patches_and_deletes_with_the_old_object(wire: Wire, program: Program) -> None:
    wire.ask("POST", MAPS, config_map(a="1"))
    register(wire, "validating", program.hook("/see", ON_MAPS))
    assert wire.ask("PUT", f"{MAPS}/m", config_map(a="2"))[0] == 200
    assert wire.ask("PATCH", f"{MAPS}/m", {"data": {"a": "3"}}, "application/merge-patch+json")[0] == 200
    assert wire.ask("DELETE", f"{MAPS}/m")[0] == 200
    seen = [
        (request["operation"], request["oldObject"]["data"]["a"], (request["object"] or {}).get("data")) for _, request in program.asked
    ]
    assert seen == [("UPDATE", "1", {"a": "2"}), ("UPDATE", "2", {"a": "3"}), ("DELETE", "3", None)]


def test_mutating_webhooks_run_by_name_and_again_if_they_ask_for_it(wire: Wire, program: Program) -> None:
    register(wire, "mutating", program.hook("/second", ON_MAPS), name="b")
    register(wire, "mutating", program.hook("/first", ON_MAPS, reinvocationPolicy="IfNeeded"), name="a")
    program.answer = lambda path, request: patch(
        {"op": "add", "path": "/data", "value": {"order": request["object"].get("data", {}).get("order", "") + path}}
    )
    _, made = wire.ask("POST", MAPS, {"metadata": {"name": "m"}})
    assert made["data"] == {"order": "/first/second/first"}


@pytest.mark.parametrize(
    ("spec", "is_asked"),
    [
        ({}, True),
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, True),
        ({"objectSelector": {"matchLabels": {"a": "c"}}}, False),
        ({"namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["x"]}]}}, False),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True),
        ({"matchConditions": [{"name": "c", "expression": "object.data.a == '1' && request.operation == 'CREATE'"}]}, True),
        ({"matchConditions": [{"name": "c", "expression": "object.data.a == '2'"}]}, False),
        ({"matchConditions": [{"name": "c", "expression": "object.none == '2'"}], "failurePolicy": "Ignore"}, False),
        ({"rules": [{**ON_MAPS, "scope": "Cluster"}]}, False),
        ({"rules": [{**ON_MAPS, "resources": ["*"]}]}, True),
        ({"rules": [{**ON_MAPS, "resources": ["configmaps/status", "pods"]}]}, False),
        ({"rules": [{**ON_MAPS, "apiGroups": ["apps"]}]}, False),
        ({"rules": [{**ON_MAPS, "operations": ["UPDATE"]}]}, False),
        ({"rules": [{**ON_MAPS, "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]}, True),
    ],
)
def test_rules_selectors_and_conditions_say_which_writes_it_sees(wire: Wire, program: Program, spec: Object, is_asked: bool) -> None:
    register(wire, "validating", program.hook("/see", ON_MAPS, **spec))
    body = config_map(a="1")
    body["metadata"]["labels"] = {"a": "b"}
    assert wire.ask("POST", MAPS, body)[0] == 201
    assert bool(program.asked) == is_asked


def test_a_condition_without_a_value_refuses_the_write_if_failures_do(wire: Wire, program: Program) -> None:
    register(wire, "validating", program.hook("/see", ON_MAPS, matchConditions=[{"name": "c", "expression": "object.none == '2'"}]))
    assert wire.ask("POST", MAPS, config_map())[0] == 403


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
@pytest.mark.parametrize("fault", ["nobody listens", "no service", "wrong authority", "too slow", "another uid"])
def test_a_webhook_that_does_not_answer_is_treated_as_its_policy_says(wire: Wire, program: Program, fault: str, policy: str) -> None:
    hook = program.hook("/see", ON_MAPS, failurePolicy=policy, timeoutSeconds=1)
    match fault:
        case "nobody listens":
            hook["clientConfig"] = {"url": "https://127.0.0.1:1/x"}
        case "no service":
            hook["clientConfig"]["service"] = {"namespace": "test", "name": "other"}
        case "wrong authority":
            del hook["clientConfig"]["caBundle"]
        case "too slow":
            program.answer = lambda path, request: time.sleep(1.5) or {"allowed": False}
        case _:
            program.answer = lambda path, request: {"allowed": False, "uid": "x"}
    register(wire, "validating", hook)
    status, answer = wire.ask("POST", MAPS, config_map())
    if policy == "Ignore":
        assert status == 201
    else:
        assert (status, answer["reason"]) == (500, "InternalError")
        assert answer["message"].startswith('Internal error occurred: failed calling webhook "see.example.com": failed to call webhook: ')


def namesake(authority: Authority, signer: Authority | None = None) -> KeyPair:
    """A certificate that has the name of its authority and does not say which key has signed it."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.load_pem_x509_certificate(authority.pem).subject
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    built = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - day, now + day)
    built = built.add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
    by: Any = serialization.load_pem_private_key((signer or authority).pair.key, None)
    return KeyPair(built.sign(by, hashes.SHA256()).public_bytes(serialization.Encoding.PEM), private_pem(key))


@pytest.mark.parametrize("is_signed", [True, False])
def test_an_authority_may_have_the_name_of_what_it_signs(is_signed: bool) -> None:
    signer = None if is_signed else Authority(time.time(), 1)
    with serving(lambda authority: namesake(authority, signer)) as program, in_thread(plain=True) as server, Wire(server) as wire:
        server.call(lambda store: store.create("namespaces", {"metadata": {"name": "test"}}))
        server.call(lambda store: store.create("services", program.service(), "test"))
        register(wire, "validating", program.hook("/see", ON_MAPS))
        status, answer = wire.ask("POST", MAPS, config_map())
        assert (status == 201) is is_signed, answer["message"]
        assert len(program.asked) == is_signed


@pytest.mark.parametrize("is_own", [True, False])
def test_the_bundle_may_be_the_programs_own_certificate(is_own: bool) -> None:
    def known(authority: Authority) -> KeyPair:
        presented, another = issued(authority), issued(authority)
        bundle.append(presented if is_own else another)
        return presented

    bundle: list[KeyPair] = []
    with serving(known) as program, in_thread(plain=True) as server, Wire(server) as wire:
        program.authority = base64.b64encode(bundle[0].certificate).decode()
        server.call(lambda store: store.create("namespaces", {"metadata": {"name": "test"}}))
        server.call(lambda store: store.create("services", program.service(), "test"))
        register(wire, "validating", program.hook("/see", ON_MAPS))
        status, answer = wire.ask("POST", MAPS, config_map())
        assert (status == 201) is is_own, answer["message"]


def test_a_path_is_asked_without_empty_parts(wire: Wire, program: Program) -> None:
    register(wire, "validating", program.hook("/see", ON_MAPS) | {"clientConfig": program.client("//see//twice/")})
    assert wire.ask("POST", MAPS, config_map())[0] == 201
    assert program.asked[0][0] == "/see/twice"


def test_a_dry_run_is_not_shown_to_a_webhook_with_side_effects(wire: Wire, program: Program) -> None:
    made = program.hook("/see", ON_MAPS) | {"sideEffects": "NoneOnDryRun"}
    register(wire, "validating", made)
    assert wire.ask("POST", f"{MAPS}?dryRun=All", config_map())[0] == 201
    assert program.asked[0][1]["dryRun"] is True


def test_warnings_reach_the_client(wire: Wire, program: Program) -> None:
    register(wire, "validating", program.hook("/see", ON_MAPS))
    program.answer = lambda path, request: {"allowed": True, "warnings": ["mind the gap"]}
    wire.send(wire.request("POST", MAPS, config_map()))
    status, headers, _ = wire.answer()
    assert status == 201 and headers["warning"] == '299 - "mind the gap"'


def test_other_requests_are_answered_while_a_webhook_thinks(running: Running, wire: Wire, program: Program) -> None:
    register(wire, "validating", program.hook("/see", ON_MAPS))
    program.answer = lambda path, request: time.sleep(1) or {"allowed": True}
    wire.send(wire.request("POST", MAPS, config_map()))
    with Wire(running) as other:
        assert other.ask("GET", "/api/v1/namespaces/test")[0] == 200
        assert other.ask("GET", f"{MAPS}/m")[0] == 404
    assert wire.answer()[0] == 201


def test_bindings_evictions_and_connections_are_shown_to_webhooks(wire: Wire, program: Program) -> None:
    parts = ("binding", "eviction", "exec", "attach", "portforward")
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "CONNECT"], "resources": [f"pods/{part}" for part in parts]}
    register(wire, "validating", program.hook("/see", rule))
    program.answer = lambda path, request: {"allowed": False, "status": {"message": f"no {request['kind']['kind']}"}}
    pods = "/api/v1/namespaces/default/pods"
    wire.ask("POST", pods, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    asked = {
        "binding": {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}},
        "eviction": {"metadata": {"name": "p"}},
        "exec?command=ls&stdout=true": None,
        "attach?container=c": None,
        "portforward": None,
    }
    told = [wire.ask("POST", f"{pods}/p/{part}", body)[1]["message"].rpartition(": ")[2] for part, body in asked.items()]
    assert told == ["no Binding", "no Eviction", "no PodExecOptions", "no PodAttachOptions", "no PodPortForwardOptions"]
    seen = [request for _, request in program.asked]
    assert [one["operation"] for one in seen] == ["CREATE", "CREATE", "CONNECT", "CONNECT", "CONNECT"]
    assert seen[0]["resource"]["resource"] == "pods" and seen[1]["kind"]["group"] == "policy" and seen[1]["resource"]["group"] == ""
    assert seen[2]["object"]["command"] == ["ls"] and seen[2]["object"]["stdout"] and seen[3]["object"]["container"] == "c"
    assert "nodeName" not in wire.ask("GET", f"{pods}/p")[1]["spec"]


def test_a_request_waits_for_a_webhook_as_long_as_it_says(wire: Wire, program: Program) -> None:
    register(wire, "validating", program.hook("/see", ON_MAPS))
    goes_on = threading.Event()
    program.answer = lambda path, request: {"allowed": goes_on.wait(60)}
    status, body = wire.ask("POST", f"{MAPS}?timeout=10ms", config_map())
    goes_on.set()
    assert (status, body["reason"]) == (504, "Timeout")
    assert wire.ask("POST", f"{MAPS}?timeout=0s", config_map())[0] == 201
    status, body = wire.ask("GET", f"{MAPS}?timeout=invalid")
    assert status == 400 and "invalid timeout specified in the request URL" in body["message"]


def test_an_update_that_has_become_stale_meanwhile_is_tried_on_the_new_object(running: Running, wire: Wire, program: Program) -> None:
    wire.ask("POST", MAPS, config_map(a="1"))
    register(wire, "validating", program.hook("/see", ON_MAPS))

    def meanwhile(path: str, request: Object) -> Object:
        if len(program.asked) == 1:
            running.call(lambda store: store.storage.put("configmaps", ("default", "m"), changed(store)))
        return {"allowed": True}

    def changed(store: Any) -> Object:
        old = store.find("configmaps", "default", "m")
        return {**old, "metadata": dict(old["metadata"]), "data": {"a": "1", "b": "9"}}

    program.answer = meanwhile
    status, made = wire.ask("PATCH", f"{MAPS}/m", {"data": {"a": "2"}}, "application/merge-patch+json")
    assert (status, made["data"], len(program.asked)) == (200, {"a": "2", "b": "9"}, 2)


def test_configurations_themselves_are_shown_to_no_webhook(wire: Wire, program: Program) -> None:
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}
    register(wire, "validating", program.hook("/see", everything))
    assert wire.ask("DELETE", f"{HOOKS.format('validating')}/hooks")[0] == 200
    assert wire.ask("POST", MAPS, config_map())[0] == 201
    assert not program.asked


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"name": "short"}, "should be a domain with at least three segments"),
        ({"sideEffects": "Some"}, "Unsupported value"),
        ({"clientConfig": {}}, "exactly one of url or service is required"),
        ({"clientConfig": {"url": "http://x/y"}}, "must begin with https://"),
        ({"timeoutSeconds": 31}, "between 1 and 30"),
        ({"failurePolicy": "Perhaps"}, "Unsupported value"),
        ({"admissionReviewVersions": []}, "must specify one of"),
        ({"matchConditions": [{"name": "c", "expression": "object."}]}, "compilation failed"),
        ({"matchConditions": [{"name": "c", "expression": "'text'"}]}, "must evaluate to bool"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused(wire: Wire, program: Program, change: Object, why: str) -> None:
    body = {"metadata": {"name": "x"}, "webhooks": [{**program.hook("/see", ON_MAPS), **change}]}
    status, refusal = wire.ask("POST", HOOKS.format("validating"), body)
    assert status == 422 and why in refusal["message"], refusal
