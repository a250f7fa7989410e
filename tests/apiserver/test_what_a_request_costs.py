"""What is done once, however many requests are alike, counted."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pumice.cluster.apiserver import PatchRequest, StatusError, WriteOptions
from pumice.cluster.apiserver.bootstrap import volcano_definitions
from pumice.cluster.apiserver.patches.field_paths import _keyed_step
from pumice.cluster.apiserver.scheme.crd import CRDS
from pumice.cluster.apiserver.scheme.structural_schema import _matches_short
from pumice.http.parser import Malformed, _kept_headers, take_head
from tests.apiserver.made import pod, store
from tests.apiserver.wire import Wire
from tests.calls import calls


def test_header_lines_that_a_client_sends_again_are_read_once(wire: Wire) -> None:
    assert wire.ask("GET", "/api/v1/nodes")[0] == 200
    before = _kept_headers.cache_info()
    for _ in range(10):
        assert wire.ask("GET", "/api/v1/nodes")[0] == 200
    after = _kept_headers.cache_info()
    assert (after.misses, after.hits) == (before.misses, before.hits + 10)


def test_lines_that_are_refused_are_refused_again() -> None:
    for _ in range(2):
        with pytest.raises(Malformed):
            take_head(bytearray(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"))
        with pytest.raises(Malformed):
            take_head(bytearray(b"GET / HTTP/1.1\r\nHost: \x01\r\n\r\n"))
        with pytest.raises(Malformed):
            take_head(bytearray(b"GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n"))
    long = b"X: " + b"x" * 3000
    before = _kept_headers.cache_info()
    assert take_head(bytearray(b"GET / HTTP/1.1\r\n" + long + b"\r\n\r\n")) is not None
    assert _kept_headers.cache_info() == before, "long lines are not kept"


def test_names_of_items_are_written_once_for_all_pods() -> None:
    made, options = store(), WriteOptions(manager="test", tracked=True)
    made.create("pods", pod("first"), "default", options)
    before = _keyed_step.cache_info().misses
    made.create("pods", pod("second"), "default", options)
    assert _keyed_step.cache_info().misses == before


def test_a_patch_of_the_status_copies_no_other_field(monkeypatch: pytest.MonkeyPatch) -> None:
    made = store()
    old = made.create("pods", pod("p"), "default")
    copied: list[Any] = []
    encode = msgspec.json.encode
    monkeypatch.setattr(msgspec.json, "encode", lambda value: copied.append(value) or encode(value))
    new = made.patch("pods", "p", PatchRequest("strategic", {"status": {"phase": "Running"}}), "default", "status")
    assert not any(value is old["spec"] for value in copied)
    assert not any("spec" in value for value in copied if isinstance(value, dict)), "no object is copied as a whole"
    assert new["spec"] is old["spec"] and new["status"]["phase"] == "Running" and old["status"]["phase"] == "Pending"


def test_listeners_hear_of_the_kinds_that_they_are_about() -> None:
    made, heard = store(), list[str]()
    made.create("secrets", {"metadata": {"name": "before"}}, "default")
    made.storage.listen(lambda storage, event: heard.append(storage), "secrets", "configmaps")
    for resource in ("secrets", "configmaps", "serviceaccounts"):
        made.create(resource, {"metadata": {"name": "new"}}, "default")
    assert heard == ["secrets", "configmaps"]


def test_copies_of_a_right_pod_are_not_checked_again_and_what_differs_is() -> None:
    made = store()

    def create(name: str, cpu: object) -> int:
        container = {"name": "main", "image": "train:1", "resources": {"requests": {"cpu": cpu}}}
        pod = {"metadata": {"name": name}, "spec": {"containers": [container]}}
        return calls(lambda: made.create("pods", pod, "default"))

    create("first", "1")
    other, copy = create("other", "2"), create("copy", "1")
    assert copy < 0.8 * other
    with pytest.raises(StatusError, match="must be greater than or equal to 0"):
        create("wrong", "-1")
    with pytest.raises(StatusError, match="must be greater than or equal to 0"):
        create("wrong", "-1")


def test_whether_a_short_text_matches_a_pattern_is_found_out_once() -> None:
    made = store()
    for definition in volcano_definitions():
        made.create(CRDS, definition)

    def create(name: str, cpu: str) -> int:
        before = _matches_short.cache_info().misses
        spec = {"minMember": 1, "minResources": {"cpu": cpu}}
        made.create("podgroups.scheduling.volcano.sh", {"metadata": {"name": name}, "spec": spec}, "default")
        return _matches_short.cache_info().misses - before

    assert create("first", "17m") and not create("second", "17m")
    assert not create("third", "0" * 100 + "1"), "long texts are not kept"
    with pytest.raises(StatusError, match="should match"):
        create("wrong", "17q")
    with pytest.raises(StatusError, match="should match"):
        create("wrong", "17q")
