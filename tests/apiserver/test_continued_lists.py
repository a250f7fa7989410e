"""Lists in pages whose tokens become too old; selectors of Events in both of their versions; what a new server says of itself."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from tests.apiserver.made import EPOCH_S, request_of
from tests.apiserver.server_process import Running, in_thread
from tests.apiserver.wire import Wire

MAPS = "/api/v1/namespaces/default/configmaps"


class Moved:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = EPOCH_S

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Moved:
    return Moved()


@pytest.fixture
def running(clock: Moved) -> Iterator[Running]:
    with in_thread(plain=True, clock=clock) as server:
        yield server


@pytest.fixture
def wire(running: Running) -> Iterator[Wire]:
    with Wire(running) as connection:
        yield connection


def test_a_token_that_is_too_old_is_refused_with_one_that_goes_on_with_what_is_there_now(wire: Wire, clock: Moved) -> None:
    for name in "abcd":
        wire.ask("POST", MAPS, {"metadata": {"name": name}})
    _, first = wire.ask("GET", f"{MAPS}?limit=2")
    token = first["metadata"]["continue"]
    wire.ask("POST", MAPS, {"metadata": {"name": "bb"}})
    clock.now += 299
    assert [one["metadata"]["name"] for one in wire.ask("GET", f"{MAPS}?limit=2&continue={token}")[1]["items"]] == ["c", "d"]
    clock.now += 2
    status, refusal = wire.ask("GET", f"{MAPS}?limit=2&continue={token}")
    assert (status, refusal["reason"]) == (410, "Expired")
    status, rest = wire.ask("GET", f"{MAPS}?limit=9&continue={refusal['metadata']['continue']}")
    assert [one["metadata"]["name"] for one in rest["items"]] == ["bb", "c", "d"]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("resourceVersionMatch=Exact", "resourceVersionMatch is forbidden unless resourceVersion is provided"),
        ("resourceVersionMatch=Near&resourceVersion=1", 'Unsupported value: "Near": supported values: "Exact", "NotOlderThan", ""'),
        ("resourceVersionMatch=Exact&resourceVersion=0", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'),
        ("watch=true&sendInitialEvents=true", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
    ],
)
def test_a_match_of_versions_that_says_nothing_is_refused(wire: Wire, query: str, text: str) -> None:
    status, refusal = wire.ask("GET", f"{MAPS}?{query}")
    assert status == 422 and text in refusal["message"]


def test_events_are_selected_by_who_reports_them_in_both_versions(wire: Wire) -> None:
    event = {
        "metadata": {"name": "e"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "here",
        "reportingInstance": "one",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
        "action": "Do",
        "reason": "Because",
        "type": "Normal",
    }
    events = "/apis/events.k8s.io/v1/namespaces/default/events"
    assert wire.ask("POST", events, event)[0] == 201
    for path, selector in (
        (events, "reportingController=here,regarding.name=p,reason=Because"),
        ("/api/v1/namespaces/default/events", "source=here,involvedObject.name=p"),
    ):
        assert len(wire.ask("GET", f"{path}?fieldSelector={selector}")[1]["items"]) == 1
        assert not wire.ask("GET", f"{path}?fieldSelector={selector.replace('here', 'there')}")[1]["items"]


def test_a_request_for_a_certificate_is_approved_by_its_subresource(wire: Wire) -> None:
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    request = request_of(ec.generate_private_key(ec.SECP256R1()), "someone")
    spec = {"request": request, "signerName": "example.com/s", "usages": ["client auth"]}
    _, made = wire.ask("POST", path, {"metadata": {"name": "r"}, "spec": spec})
    made["status"] = {"conditions": [{"type": "Approved", "status": "True"}], "certificate": "QQ=="}
    made["spec"]["signerName"] = "other"
    status, approved = wire.ask("PUT", f"{path}/r/approval", made)
    assert (status, approved["spec"]["signerName"]) == (200, "example.com/s")
    assert approved["status"] == {"conditions": [{"type": "Approved", "status": "True"}]}
    assert wire.ask("GET", f"{path}/r/approval")[1] == approved


def test_the_endpoints_of_the_own_service_are_where_the_server_listens(wire: Wire, running: Running) -> None:
    for path in (
        "/api/v1/namespaces/default/endpoints/kubernetes",
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes",
    ):
        _, found = wire.ask("GET", path)
        ports = found.get("ports") or found["subsets"][0]["ports"]
        assert ports[0]["port"] == running.server.port


def test_a_review_has_no_form_as_a_table(wire: Wire) -> None:
    body = {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    assert wire.ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body, Accept=table)[0] == 406


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_tables_and_metadata_are_had_in_both_versions(wire: Wire, version: str) -> None:
    wire.ask("POST", MAPS, {"metadata": {"name": "m"}})
    meta = f"meta.k8s.io/{version}"
    for path in (MAPS, f"{MAPS}/m"):
        _, table = wire.ask("GET", path, Accept=f"application/json;as=Table;v={version};g=meta.k8s.io")
        assert (table["kind"], table["apiVersion"], table["rows"][-1]["object"]["apiVersion"]) == ("Table", meta, meta)
        wire.send(wire.request("GET", path, Accept=f"application/json;as=PartialObjectMetadata;v={version};g=meta.k8s.io"))
        _, headers, alone = wire.answer()
        assert json.loads(alone)["apiVersion"] == meta and headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/json;as=Table;v=v2;g=meta.k8s.io", 406),
        ("application/json;as=Table;v=v2;g=meta.k8s.io,application/json", 200),
        ("application/json;as=Chair;v=v1;g=meta.k8s.io", 406),
        ("text/plain", 406),
        ("text/html,*/*;q=0.8", 200),
        ("application/vnd.kubernetes.protobuf", 200),
    ],
)
def test_a_form_that_is_not_served_is_not_acceptable(wire: Wire, accept: str, status: int) -> None:
    assert wire.ask("GET", MAPS, Accept=accept)[0] == status


def test_an_address_is_named_by_itself_and_the_own_range_is_known(wire: Wire) -> None:
    path, parent = "/apis/networking.k8s.io/v1", {"resource": "services", "namespace": "default", "name": "s"}
    assert wire.ask("POST", f"{path}/ipaddresses", {"metadata": {"name": "fe80::1"}, "spec": {"parentRef": parent}})[0] == 201
    assert wire.ask("GET", f"{path}/servicecidrs/kubernetes")[1]["status"]["conditions"][0]["type"] == "Ready"
