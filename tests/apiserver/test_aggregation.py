"""APIServices: requests that another server answers, and what is told of whether it does."""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pumice.client.certificates import Authority, server_context
from pumice.cluster.apiserver import UserInfo
from tests.apiserver.server_process import Running, in_thread
from tests.apiserver.test_rights import grant, rule
from tests.apiserver.wire import Wire

ROOT = "/apis/fruit.example.com/v1"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
LISTED = {
    "resources": [
        {"name": "apples", "singularName": "apple", "namespaced": True, "kind": "Apple", "verbs": ["get"], "shortNames": ["ap"]},
        {"name": "apples/bite", "singularName": "", "namespaced": True, "kind": "Bite", "verbs": ["create"]},
    ]
}


FLOOD = 20_000_000


class Other:
    """The other server. `asked` are the requests that reached it: method, target, headers, body, and the name in the certificate."""

    def __init__(self, address: str, authority: bytes) -> None:
        self.address = address
        self.authority = base64.b64encode(authority).decode()
        self.asked: list[tuple[str, str, dict[str, list[str]], bytes, str]] = []
        self.listed: Any = LISTED
        self.document: Any = None  #: of OpenAPI
        self.go_on = threading.Event()


@pytest.fixture
def running() -> Iterator[Running]:
    users = {name: UserInfo(name, ("team", "eaters"), "u-1", (("scopes", ("read",)),)) for name in ("eater", "nobody")}
    with in_thread(plain=True, users=users) as started:
        yield started


@pytest.fixture
def wire(running: Running) -> Iterator[Wire]:
    with Wire(running) as made:
        yield made


@pytest.fixture
def other(running: Running, wire: Wire) -> Iterator[Other]:
    """The other server, with its service but without an APIService. It trusts whoever the ConfigMap names."""
    found: list[Other] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            subject: Any = self.connection.getpeercert()["subject"]  # type: ignore[attr-defined]
            headers = {name.lower(): self.headers.get_all(name) or [] for name in self.headers}
            if self.path == f"/openapi/v3{ROOT}" and found[0].document is not None:
                self._answer(200, json.dumps(found[0].document).encode())
                return
            if self.path == ROOT:
                self._answer(200, json.dumps(found[0].listed).encode())
                return
            found[0].asked.append((self.command, self.path, headers, body, dict(pair for part in subject for pair in part)["commonName"]))
            if self.headers.get("Upgrade") == "shout":
                self._shout()
                return
            if "watch=true" not in self.path:
                self._answer(418, b"a pot of tea", "text/tea")
                return
            self.send_response(200)
            self.send_header("Content-Type", "application/json;stream=watch")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for number in range(2):
                self.wfile.write(b'd\r\n{"number": %d}\r\n' % number)
                found[0].go_on.wait(60)
            self.wfile.write(b"0\r\n\r\n")

        do_POST = do_GET

        def _shout(self) -> None:
            self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: shout\r\nX-Loud: very\r\n\r\n!")
            self.close_connection = True
            if "flood" in self.path:
                self.wfile.write(bytes(FLOOD))
                return
            while data := self.rfile.read1(100):  # type: ignore[attr-defined]
                self.wfile.write(data.upper())

        def _answer(self, status: int, body: bytes, content_type: str = "application/json") -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    told = wire.ask("GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")[1]["data"]
    assert json.loads(told["requestheader-allowed-names"]) == ["front-proxy-client"]
    authority = Authority(time.time(), 1)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with tempfile.TemporaryDirectory() as folder:
        users = told["requestheader-client-ca-file"].encode()
        context = server_context(authority.issue("fruit", "fruit.default.svc"), Path(folder), users)
        context.verify_mode = ssl.CERT_REQUIRED
        server.socket = context.wrap_socket(server.socket, server_side=True)
    found.append(Other(f"127.0.0.1:{server.server_address[1]}", authority.pem))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    metadata = {"name": "fruit", "annotations": {"pumice.io/program-address": found[0].address}}
    assert wire.ask("POST", "/api/v1/namespaces/default/services", {"metadata": metadata, "spec": {"ports": [{"port": 443}]}})[0] == 201
    try:
        yield found[0]
    finally:
        found[0].go_on.set()
        server.shutdown()
        thread.join()
        server.server_close()


def register(wire: Wire, other: Other, **spec: Any) -> None:
    """Add the APIService, and wait until it says whether the other server answers."""
    needed = {"group": "fruit.example.com", "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10}
    service = {"service": {"namespace": "default", "name": "fruit"}}
    body = {"metadata": {"name": "v1.fruit.example.com"}, "spec": needed | service | {"caBundle": other.authority} | spec}
    assert wire.ask("POST", SERVICES, body)[0] == 201
    while not available(wire)[0]:
        time.sleep(0.02)


def available(wire: Wire, name: str = "v1.fruit.example.com") -> tuple[str, str]:
    (told,) = wire.ask("GET", f"{SERVICES}/{name}")[1].get("status", {}).get("conditions") or [{}]
    return told.get("status", ""), told.get("reason", "")


def test_a_request_reaches_the_other_server_with_its_user(running: Running, wire: Wire, other: Other) -> None:
    register(wire, other)
    running.call(lambda store: grant(store, "eater", rule("create", "apples/bite", "fruit.example.com")))
    path = f"{ROOT}/namespaces/default/apples/red/bite?hard=yes"
    with Wire.to(running.url, "eater") as eater:
        eater.send(eater.request("POST", path, {"a": 1}, X_Remote_User="root", X_Remote_Group="system:masters", X_Other="passed"))
        status, headers, body = eater.answer()
    assert (status, headers["content-type"], body) == (418, "text/tea", b"a pot of tea")
    ((method, target, headers_there, body_there, name),) = other.asked
    assert (method, target, json.loads(body_there), name) == ("POST", path, {"a": 1}, "front-proxy-client")
    assert headers_there["x-remote-user"] == ["eater"] and headers_there["x-remote-uid"] == ["u-1"]
    assert headers_there["x-remote-extra-scopes"] == ["read"] and headers_there["x-other"] == ["passed"]
    assert {"team", "eaters"} <= set(headers_there["x-remote-group"]) and "system:masters" not in headers_there["x-remote-group"]
    assert "authorization" not in headers_there


def test_whoever_may_not_do_it_does_not_reach_the_other_server(running: Running, wire: Wire, other: Other) -> None:
    register(wire, other)
    with Wire.to(running.url, "nobody") as nobody:
        status, answer = nobody.ask("GET", f"{ROOT}/namespaces/default/apples/red")
    assert status == 403 and 'cannot get resource "apples" in API group "fruit.example.com"' in answer["message"] and not other.asked


def test_events_are_relayed_as_they_come(running: Running, wire: Wire, other: Other) -> None:
    register(wire, other)
    headers = wire.watch(f"{ROOT}/apples?watch=true")
    assert headers["content-type"] == "application/json;stream=watch" and wire.events(1) == [{"number": 0}]
    other.go_on.set()
    assert wire.events(1) == [{"number": 1}] and wire.piece() == b""


def switching(running: Running, path: str, protocol: str, ahead: bytes = b"") -> Wire:
    """A connection over which one who may do it has asked the other server to go on in another protocol."""
    eater = Wire.to(running.url, "eater")
    eater.send(eater.request("POST", f"{ROOT}/namespaces/default/apples/red/bite{path}", Connection="Upgrade", Upgrade=protocol) + ahead)
    return eater


def test_a_request_to_go_on_in_another_protocol_becomes_a_tunnel(running: Running, wire: Wire, other: Other) -> None:
    register(wire, other)
    running.call(lambda store: grant(store, "eater", rule("create", "apples/bite", "fruit.example.com")))
    with switching(running, "", "shout", b"early") as eater:
        status, headers = eater.head()
        assert (status, headers["upgrade"], headers["x-loud"]) == (101, "shout", "very")
        assert eater.exactly(6) == b"!EARLY"
        eater.send(b"late")
        assert eater.exactly(4) == b"LATE"
    with switching(running, "?flood", "shout") as eater:
        assert eater.head()[0] == 101 and eater.exactly(FLOOD + 1) == b"!" + bytes(FLOOD) and eater.is_closed()
    assert other.asked[0][2]["x-remote-user"] == ["eater"]
    with switching(running, "", "whisper") as eater:
        assert eater.answer()[::2] == (418, b"a pot of tea")
    assert other.asked[-1][2]["upgrade"] == ["whisper"]
    with Wire.to(running.url, "nobody") as nobody:
        nobody.send(nobody.request("POST", f"{ROOT}/namespaces/default/apples/red/bite", Connection="Upgrade", Upgrade="shout"))
        assert nobody.answer()[0] == 403


def test_what_the_other_server_serves_is_discovered(running: Running, wire: Wire, other: Other) -> None:
    register(wire, other)
    assert available(wire) == ("True", "Passed")
    assert "fruit.example.com" in [one["name"] for one in wire.ask("GET", "/apis")[1]["groups"]]
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    items = wire.ask("GET", "/apis", Accept=accept)[1]["items"]
    ((apples,),) = [one["versions"][0]["resources"] for one in items if one["metadata"]["name"] == "fruit.example.com"]
    assert (apples["resource"], apples["scope"], apples["shortNames"]) == ("apples", "Namespaced", ["ap"])
    assert [(one["subresource"], one["verbs"]) for one in apples["subresources"]] == [("bite", ["create"])]
    assert wire.ask("DELETE", f"{SERVICES}/v1.fruit.example.com")[0] == 200
    assert wire.ask("GET", f"{ROOT}/apples")[0] == 404


def test_the_other_server_answers_for_its_openapi_document(running: Running, wire: Wire, other: Other) -> None:
    register(wire, other)
    entry = wire.ask("GET", "/openapi/v3")[1]["paths"]["apis/fruit.example.com/v1"]
    wire.send(wire.request("GET", entry["serverRelativeURL"]))
    assert wire.answer()[2] == b"a pot of tea"
    assert [asked[:2] for asked in other.asked] == [("GET", "/openapi/v3/apis/fruit.example.com/v1")]


def test_openapi_of_version_2_has_what_the_other_server_tells_in_version_3(running: Running, wire: Wire, other: Other) -> None:
    """Also if another document of it is odd: then only that is missing."""
    of_apples = {"x-kubernetes-group-version-kind": [{"group": "fruit.example.com", "version": "v1", "kind": "Apple"}], "type": "object"}
    info = {"title": "Fruit", "version": "v1"}
    other.document = {"info": info, "components": {"schemas": {"fruit.Apple": of_apples}}, "paths": {f"{ROOT}/apples": {"get": {}}}}
    before = wire.ask("GET", "/openapi/v2")[1]["definitions"]
    register(wire, other)
    assert wire.ask("GET", "/openapi/v2")[1]["definitions"] == before | {"fruit.Apple": of_apples}
    assert wire.ask("DELETE", f"{SERVICES}/v1.fruit.example.com")[0] == 200
    for odd in ({"components": []}, {"components": {"schemas": {"x": 5}}, "paths": {}}, []):
        other.document = odd
        register(wire, other)
        assert wire.ask("GET", "/openapi/v2")[1]["definitions"] == before
        assert wire.ask("DELETE", f"{SERVICES}/v1.fruit.example.com")[0] == 200


@pytest.mark.parametrize("fault", ["authority", "no service", "not a list"])
def test_a_server_that_does_not_answer_is_reported(running: Running, wire: Wire, other: Other, fault: str) -> None:
    other.listed = {"resources": [{}]} if fault == "not a list" else LISTED
    spec: dict[str, Any] = {"caBundle": ""} if fault == "authority" else {}
    register(wire, other, **spec | ({"service": {"namespace": "default", "name": "gone"}} if fault == "no service" else {}))
    assert available(wire) == ("False", "FailedDiscoveryCheck")
    assert "fruit.example.com" not in [one["name"] for one in wire.ask("GET", "/apis")[1]["groups"]]
    status, answer = wire.ask("GET", f"{ROOT}/apples")
    assert fault == "not a list" or (status, answer["reason"]) == (503, "ServiceUnavailable")


def test_a_certificate_that_is_not_to_be_verified_is_not(running: Running, wire: Wire, other: Other) -> None:
    register(wire, other, caBundle="", insecureSkipTLSVerify=True)
    assert available(wire) == ("True", "Passed")


def test_what_this_server_serves_is_always_available(running: Running, wire: Wire) -> None:
    assert available(wire, "v1.") == available(wire, "v1.apps") == ("True", "Local")
    versions = [{"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]
    names = {"kind": "Pear", "plural": "pears"}
    definition = {"group": "g.example.com", "scope": "Cluster", "names": names, "versions": versions}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert wire.ask("POST", definitions, {"metadata": {"name": "pears.g.example.com"}, "spec": definition})[0] == 201
    assert available(wire, "v2.g.example.com") == ("True", "Local")
    assert wire.ask("DELETE", f"{definitions}/pears.g.example.com")[0] == 200
    assert wire.ask("GET", f"{SERVICES}/v2.g.example.com")[0] == 404
