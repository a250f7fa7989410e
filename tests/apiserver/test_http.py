"""HTTP as it may come: in pieces, chunked, pipelined, malformed, too large, without a token."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pumice.cluster.apiserver import server
from pumice.cluster.apiserver.scheme import protobuf
from pumice.cluster.apiserver.status import StatusError
from pumice.http import parser, server as serving
from tests.apiserver.server_process import Running, in_thread
from tests.apiserver.wire import Wire
from tests.samples import times

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with in_thread(plain=True) as server:
        yield server


def test_a_request_may_come_byte_by_byte(wire: Wire) -> None:
    for byte in wire.request("GET", "/readyz"):
        wire.send(bytes([byte]))
    assert wire.answer()[2] == b"ok"


def test_requests_may_be_sent_without_waiting_and_are_answered_in_order(wire: Wire) -> None:
    wire.send(b"".join(wire.request("POST", MAPS, {"metadata": {"name": f"piped-{index}"}}) for index in range(20)))
    names = [json.loads(wire.answer()[2])["metadata"]["name"] for _ in range(20)]
    assert names == [f"piped-{index}" for index in range(20)]


def test_bodies_may_be_chunked(wire: Wire) -> None:
    head = wire.request("POST", MAPS, None, Transfer_Encoding="chunked").replace(b"Content-Length: 0\r\n", b"")
    parts = [b'{"met', b'adata": {"name": "in-', b'chunks"}}', b""]
    wire.send(head + b"".join(b"%x;ext=1\r\n%b\r\n" % (len(part), part) for part in parts))
    status, _, body = wire.answer()
    assert (status, json.loads(body)["metadata"]["name"]) == (201, "in-chunks")
    assert wire.ask("GET", "/readyz")[0] == 200


def test_clients_that_ask_before_sending_are_told_to_go_on(wire: Wire) -> None:
    body = b'{"metadata":{"name":"expected"}}'
    request = wire.request("POST", MAPS, body, Expect="100-continue")
    wire.send(request[: -len(body)])
    assert wire.head()[0] == 100
    wire.send(body)
    assert wire.answer()[0] == 201


GET, POST = b"GET / HTTP/1.1\r\nHost: x\r\n", b"POST / HTTP/1.1\r\nHost: x\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 400),
        (b"GET / HTTP/1.2\r\nHost: x\r\n\r\n", 400),
        (b"GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"G(T / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (GET + b"Host: x\r\n\r\n", 400),
        (GET + b"Host: y\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
        (GET + b"no colon\r\n\r\n", 400),
        (GET + b": no name\r\n\r\n", 400),
        (GET + b"Name : value\r\n\r\n", 400),
        (GET + b"Folded: value\r\n goes on\r\n\r\n", 400),
        (GET + b"Zero: a\x00b\r\n\r\n", 400),
        (GET + b"Bell: \x07\r\n\r\n", 400),
        (GET + b"Delete: \x7f\r\n\r\n", 400),
        (GET + b"Bare: a\rb\r\n\r\n", 400),
        (b"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\nHost: x\n\n", 400),
        (GET + b"Bare: a\nOther: b\r\n\r\n", 400),
        (GET + b"Authorization: a\r\nAuthorization: b\r\n\r\n", 400),
        (GET + b"X: y\r\n" * 300 + b"\r\n", 431),
        (GET + b"X: " + b"x" * parser.MAX_HEAD, 431),
        (POST + b"Content-Length: -1\r\n\r\n", 400),
        (POST + b"Content-Length: +1\r\n\r\n", 400),
        (POST + b"Content-Length: 1, 1\r\n\r\n", 400),
        (POST + b"Content-Length: 0x1\r\n\r\n", 400),
        (POST + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400),
        (POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (POST + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (POST + b"Content-Length: 99999999\r\n\r\n", 413),
        (POST + b"Transfer-Encoding: gzip\r\n\r\n", 501),
        (POST + b"Transfer-Encoding: identity\r\n\r\n", 501),
        (POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n", 501),
        (POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (CHUNKED + b"xyz\r\n", 400),
        (CHUNKED + b"-1\r\n", 400),
        (CHUNKED + b"+1\r\n", 400),
        (CHUNKED + b"0x1\r\n", 400),
        (CHUNKED + b" 1\r\n", 400),
        (CHUNKED + b"\r\n", 400),
        (CHUNKED + b"1\n", 400),
        (CHUNKED + b"1;\x00\r\n", 400),
        (CHUNKED + b"1;" + b"x" * 4096, 400),
        (CHUNKED + b"123456789\r\n", 400),
        (CHUNKED + b"7fffffff\r\n", 413),
        (CHUNKED + b"1\r\nab\r\n", 400),
        (CHUNKED + b"0\r\nTrailer\r\n\r\n", 400),
        (CHUNKED + b"0\r\n" + b"X: y\r\n" * 9999, 400),
    ],
)
def test_what_is_not_http_is_answered_and_closed(wire: Wire, text: bytes, status: int) -> None:
    wire.send(text + b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert wire.answer()[0] == status
    assert wire.is_closed()


def test_an_ordinary_head_is_read(wire: Wire) -> None:
    wire.send(b"GET /healthz HTTP/1.1\r\nhost: [::1]:6443\r\nOdd!#$%&'*+-.^_`|~: \t \xe9 \t\r\nTwice: a\r\nTwice: b\r\nEmpty:\r\n\r\n")
    assert wire.answer()[2] == b"ok"
    wire.send(b"GET /healthz HTTP/1.0\r\n\r\n")
    assert wire.answer()[2] == b"ok"


def test_a_client_that_does_not_go_on_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "READ_TIMEOUT_S", 0.2)
    monkeypatch.setattr(server, "_SWEEP_EVERY_S", 0.1)
    with in_thread(plain=True) as running, Wire(running) as slow, Wire(running) as watching:
        watching.watch(f"{PODS}?watch=true&timeoutSeconds=1")
        slow.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab")
        with pytest.raises((ConnectionError, EOFError)):
            slow.answer()
        with pytest.raises(EOFError, match="the watch has ended"):
            watching.chunk()


def test_a_client_that_wishes_so_is_closed(wire: Wire) -> None:
    wire.send(wire.request("GET", "/readyz", Connection="close"))
    assert wire.answer()[1]["connection"] == "close"
    assert wire.is_closed()


def test_without_a_token_only_health_and_version_are_told(wire: Wire) -> None:
    for path, more in (("/api/v1/pods", ""), ("/healthz", ""), ("/version", "Authorization: Bearer wrong\r\n")):
        wire.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n{more}\r\n".encode())
    assert [wire.answer()[0] for _ in range(3)] == [401, 200, 401]


def test_body_that_is_no_json_is_told_what_it_should_be(wire: Wire) -> None:
    status, body = wire.ask("POST", "/api/v1/namespaces", b"apiVersion: v1")
    assert status == 400 and body["message"].startswith("the object provided is unrecognized (must be of type Namespace)")


def test_discovery_tells_whether_kinds_are_stored_alike(wire: Wire) -> None:
    listed = {one["name"]: one for one in wire.ask("GET", "/api/v1")[1]["resources"]}
    assert listed["configmaps"]["storageVersionHash"] == "qFsyl6wFWjQ=" and "storageVersionHash" not in listed["bindings"]


def test_metrics_count_what_is_stored(wire: Wire) -> None:
    status, text = wire.ask("GET", "/metrics")
    assert status == 200 and b'apiserver_resource_objects{group="",resource="namespaces"} 4\n' in text


def test_bodies_that_nest_too_deep_are_refused(wire: Wire) -> None:
    for depth in (150, 100_000):
        deep = b'{"metadata":{"name":"deep"},"data":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"
        status, body = wire.ask("POST", MAPS, deep)
        assert (status, "levels deep" in body["message"]) == (400, True)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"text"', b"null", b"\xff\xfe", b'{"metadata": 5}', b'{"a":1e999}'])
def test_bodies_that_are_no_objects_are_refused(wire: Wire, body: bytes) -> None:
    assert wire.ask("POST", MAPS, body)[0] in (400, 422)


def test_bodies_may_be_yaml(wire: Wire) -> None:
    status, made = wire.ask("POST", MAPS, b"metadata:\n  name: from-yaml\ndata: {a: 'b'}\n", "application/yaml")
    assert (status, made["data"]) == (201, {"a": "b"})


def test_unknown_content_types_paths_and_methods(wire: Wire) -> None:
    assert wire.ask("POST", MAPS, b"<x/>", "application/xml")[0] == 415
    assert wire.ask("PATCH", f"{MAPS}/x", b"{}", "application/json")[0] in (404, 415)
    assert wire.ask("GET", "/api/v1/unicorns")[0] == 404
    assert wire.ask("GET", "/apis/nothing.example.com/v1/things")[0] == 404
    assert wire.ask("GET", "/../../etc/passwd")[0] == 404
    assert wire.ask("PUT", MAPS, {})[0] == 405
    assert wire.ask("BREW", MAPS, {})[0] == 405


def test_fields_that_stand_twice_are_refused_when_strict(wire: Wire) -> None:
    body = b'{"metadata":{"name":"double"},"data":{"a":"1","a":"2"}}'
    status, answer = wire.ask("POST", f"{MAPS}?fieldValidation=Strict", body)
    assert (status, 'duplicate field "data.a"' in answer["message"]) == (400, True)
    wire.send(wire.request("POST", f"{MAPS}?fieldValidation=Warn", body))
    assert wire.answer()[1]["warning"] == '299 - "duplicate field \\"data.a\\""'


def test_bindings_by_both_paths(wire: Wire) -> None:
    for name in ("bind-new", "bind-old"):
        wire.ask("POST", PODS, {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x"}]}})
    target = {"target": {"name": "node"}}
    assert wire.ask("POST", f"{PODS}/bind-new/binding", target)[0] == 201
    assert wire.ask("POST", "/api/v1/namespaces/default/bindings", target | {"metadata": {"name": "bind-old"}})[0] == 201
    assert wire.ask("GET", f"{PODS}/bind-old")[1]["spec"]["nodeName"] == "node"
    status, refused = wire.ask("POST", f"{PODS}/bind-new/binding", target)
    assert (status, refused["reason"]) == (409, "Conflict")


def test_a_continued_list_with_a_broken_token_is_refused(wire: Wire) -> None:
    assert wire.ask("GET", f"{PODS}?continue=garbage")[0] == 400
    assert wire.ask("GET", f"{PODS}?limit=x")[0] == 400
    assert wire.ask("GET", f"{PODS}?labelSelector=a%3D%3D%3D(")[0] == 400
    assert wire.ask("GET", f"{PODS}?resourceVersion=99999999")[0] == 504


def test_metadata_alone_may_be_asked_for(wire: Wire) -> None:
    wire.ask("POST", MAPS, {"metadata": {"name": "partial"}, "data": {"a": "b"}})
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    status, found = wire.ask("GET", f"{MAPS}/partial", Accept=accept)
    assert (status, found["kind"], "data" in found) == (200, "PartialObjectMetadata", False)
    status, found = wire.ask("GET", MAPS, Accept=accept.replace("Metadata", "MetadataList"))
    assert (status, found["kind"], found["apiVersion"]) == (200, "PartialObjectMetadataList", "meta.k8s.io/v1")
    (each,) = (each for each in found["items"] if each["metadata"]["name"] == "partial")
    assert (each["kind"], "data" in each) == ("PartialObjectMetadata", False)


def test_every_document_of_openapi_refers_only_to_what_it_has(wire: Wire) -> None:
    index = wire.ask("GET", "/openapi/v3")[1]["paths"]
    assert len(index) > 20
    for place in index.values():
        status, document = wire.ask("GET", place["serverRelativeURL"])
        assert status == 200
        schemas = document["components"]["schemas"]
        wanted = {part.split('"')[0] for part in json.dumps(document).split("#/components/schemas/")[1:]}
        assert wanted <= set(schemas)
        assert all("fieldValidation" in json.dumps(path["patch"]) for path in document["paths"].values() if "patch" in path)


def test_discovery_tells_the_same_both_ways(wire: Wire) -> None:
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
    for root in ("/api", "/apis"):
        for group in wire.ask("GET", root, Accept=aggregated)[1]["items"]:
            for version in group["versions"]:
                name = group["metadata"]["name"]
                path = f"/apis/{name}/{version['version']}" if name else f"/api/{version['version']}"
                legacy = {entry["name"] for entry in wire.ask("GET", path)[1]["resources"] if "/" not in entry["name"]}
                assert legacy == {resource["resource"] for resource in version["resources"]}
    eviction = [entry for entry in wire.ask("GET", "/api/v1")[1]["resources"] if entry["name"] == "pods/eviction"]
    assert (eviction[0]["group"], eviction[0]["version"], eviction[0]["kind"]) == ("policy", "v1", "Eviction")


@given(st.binary(max_size=60))
def test_any_bytes_as_protobuf_are_read_or_refused(data: bytes) -> None:
    head = b"k8s\x00\n\r\n\x02v1\x12\x03Pod\x12"
    for body in (data, head + bytes([len(data)]) + data):
        try:
            protobuf.decode(body)
        except StatusError as refusal:
            assert refusal.code in (400, 415)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=times(15), deadline=None)
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]),
    path=st.lists(
        st.sampled_from(
            ["api", "apis", "v1", "apps", "pods", "namespaces", "default", "x", "status", "scale", "eviction", "deployments", "%00", ""]
        ),
        max_size=7,
    ),
    query=st.sampled_from(
        ["", "?limit=1", "?watch=0", "?dryRun=All", "?dryRun=x", "?fieldSelector=a", "?gracePeriodSeconds=x", "?propagationPolicy=y"]
    ),
    body=st.sampled_from(
        [b"", b"{}", b"[]", b'{"spec":[]}', b'{"metadata":{"name":"x"},"spec":{"replicas":-1}}', b'{"metadata":{"labels":[1]},"target":5}']
    ),
    media=st.sampled_from(
        [
            "application/json",
            "application/merge-patch+json",
            "application/json-patch+json",
            "application/strategic-merge-patch+json",
            "application/apply-patch+yaml",
        ]
    ),
)
def test_no_request_makes_the_server_fail(running: Running, method: str, path: list[str], query: str, body: bytes, media: str) -> None:
    with Wire(running) as wire:
        wire.send(wire.request(method, f"/{'/'.join(path)}{query}", body, media))
        assert wire.answer()[0] < 500


def test_nothing_in_a_warning_can_end_its_header(wire: Wire) -> None:
    body = {"metadata": {"name": "warned"}, 'a"\r\nX-Evil: 1\r\n\r\nb': 1, "\x00é" * 600: 2} | {
        f"unknown-{index}": 1 for index in range(500)
    }
    wire.send(wire.request("POST", MAPS, body))
    status, headers, _ = wire.answer()
    assert status == 201
    assert "x-evil" not in headers
    wire.send(wire.request("POST", f"{MAPS}?dryRun=All", {"metadata": {"name": "other"}, 'a"\r\nX-Evil: 1': 1}))
    assert wire.answer()[1]["warning"] == '299 - "unknown field \\"a\\"??X-Evil: 1\\""'


def test_versions_of_a_custom_kind_are_told_best_first_and_old_ones_with_a_warning(wire: Wire) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions: list[dict[str, Any]] = [
        {"name": name, "served": True, "storage": name == "v1alpha1", "schema": schema} for name in ("v1alpha1", "v1", "v1beta1", "odd")
    ]
    versions[0]["deprecated"], versions[2] = True, versions[2] | {"deprecated": True, "deprecationWarning": "leave it"}
    spec = {"group": "example.com", "names": {"plural": "boxes", "kind": "Box"}, "scope": "Namespaced", "versions": versions}
    definition = {"metadata": {"name": "boxes.example.com"}, "spec": spec}
    assert wire.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)[0] == 201
    group = wire.ask("GET", "/apis/example.com")[1]
    assert [one["version"] for one in group["versions"]] == ["v1", "v1beta1", "v1alpha1", "odd"] and group["preferredVersion"][
        "version"
    ] == "v1"
    told = {}
    for version in ("v1alpha1", "v1beta1", "v1"):
        wire.send(wire.request("GET", f"/apis/example.com/{version}/boxes"))
        told[version] = wire.answer()[1].get("warning")
    assert told["v1alpha1"] == '299 - "example.com/v1alpha1 Box is deprecated; use example.com/v1 Box"'
    assert told["v1beta1"] == '299 - "leave it"' and told["v1"] is None


def test_people_get_json_in_lines(wire: Wire) -> None:
    path = "/api/v1/namespaces/default"

    def lines(query: str, agent: str) -> int:
        wire.send(wire.request("GET", path + query, User_Agent=agent))
        return wire.answer()[2].count(b"\n")

    assert [lines("", agent) > 5 for agent in ("curl/8.5.0", "Mozilla/5.0 (X11)", "kubectl/v1.36.1")] == [True, True, False]
    assert [lines(f"?pretty={word}", "kubectl/v1.36.1") > 5 for word in ("true", "1", "false")] == [True, True, False]
    assert lines("?pretty=false", "curl/8.5.0") == 0
