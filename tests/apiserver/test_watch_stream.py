"""Watches over HTTP: where they start, what they show, how they end."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.cluster.apiserver import PatchRequest, Store
from pumice.cluster.apiserver.storage import in_memory as storage
from pumice.cluster.apiserver.streams import watch_stream
from tests.apiserver.made import pod
from tests.apiserver.server_process import Running
from tests.apiserver.wire import Wire

PODS = "/api/v1/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def create(running: Running, name: str, **labels: str) -> dict[str, Any]:
    return running.call(lambda store: store.create("pods", pod(name, labels), "default"))


def relabel(running: Running, name: str, **labels: str | None) -> None:
    running.call(lambda store: store.patch("pods", name, PatchRequest("merge", {"metadata": {"labels": labels}}), "default"))


def summary(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def test_from_a_version_on_only_what_came_later(running: Running, wire: Wire) -> None:
    version = create(running, "before")["metadata"]["resourceVersion"]
    create(running, "between")
    wire.watch(f"{PODS}?watch=true&resourceVersion={version}")
    assert summary(wire.events(1)) == [("ADDED", "between")]
    running.call(lambda store: store.delete("pods", "between", "default"))
    assert summary(wire.events(1)) == [("DELETED", "between")]


def test_from_nowhere_everything_there_is_comes_first(running: Running, wire: Wire) -> None:
    create(running, "a")
    create(running, "b")
    wire.watch(f"{PODS}?watch=1")
    assert summary(wire.events(2)) == [("ADDED", "a"), ("ADDED", "b")]


def test_initial_events_end_with_a_marked_bookmark(running: Running, wire: Wire) -> None:
    version = create(running, "a")["metadata"]["resourceVersion"]
    wire.watch(f"{PODS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
    added, bookmark = wire.events(2)
    assert summary([added]) == [("ADDED", "a")]
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"] == {"resourceVersion": version, "annotations": {"k8s.io/initial-events-end": "true"}}
    create(running, "later")
    assert summary(wire.events(1)) == [("ADDED", "later")]


@pytest.mark.parametrize("form", ["Table", "PartialObjectMetadata"])
def test_a_bookmark_has_the_form_of_the_events(running: Running, wire: Wire, form: str) -> None:
    version = create(running, "a")["metadata"]["resourceVersion"]
    path = f"{PODS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    wire.watch(path, Accept=f"application/json;as={form};v=v1;g=meta.k8s.io,application/json")
    added, bookmark = wire.events(2)
    assert (added["object"]["kind"], bookmark["type"], bookmark["object"]["kind"]) == (form, "BOOKMARK", form)
    assert bookmark["object"]["metadata"] == {"resourceVersion": version, "annotations": {"k8s.io/initial-events-end": "true"}}
    assert bookmark["object"].get("rows", []) == []


def test_initial_events_need_their_match(wire: Wire) -> None:
    assert wire.ask("GET", f"{PODS}?watch=true&sendInitialEvents=true")[0] == 422


def test_selectors_follow_transitions(running: Running, wire: Wire) -> None:
    create(running, "p", app="y")
    version = running.call(lambda store: store.storage.version)
    wire.watch(f"{PODS}?watch=true&resourceVersion={version}&labelSelector=app%3Dx")
    relabel(running, "p", app="x")
    relabel(running, "p", other="1")
    relabel(running, "p", app="y")
    relabel(running, "p", app="z")
    relabel(running, "p", app="x")
    running.call(lambda store: store.delete("pods", "p", "default"))
    events: list[dict[str, Any]] = []
    while len(events) < 5:
        events += wire.chunk()
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]
    assert events[2]["object"]["metadata"]["labels"]["app"] == "x"
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))


def test_a_version_that_is_forgotten_ends_with_an_error_event(running: Running, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "RING", 4)
    version = create(running, "p")["metadata"]["resourceVersion"]
    for index in range(20):
        relabel(running, "p", n=str(index))
    wire.watch(f"{PODS}?watch=true&resourceVersion={version}")
    event = wire.events(1)[0]
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
    with pytest.raises(EOFError):
        wire.chunk()


def test_a_version_of_the_future_is_refused(wire: Wire) -> None:
    status, answer = wire.ask("GET", f"{PODS}?watch=true&resourceVersion=999999")
    assert (status, answer["details"]["causes"][0]["reason"]) == (504, "ResourceVersionTooLarge")


def test_a_watch_ends_after_its_time_and_the_connection_goes_on(wire: Wire) -> None:
    wire.watch(f"{PODS}?watch=true&timeoutSeconds=1")
    with pytest.raises(EOFError):
        wire.chunk()
    assert wire.ask("GET", "/readyz")[0] == 200


def test_bookmarks_come_in_between(running: Running, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_stream, "BOOKMARK_EVERY_S", 0.1)
    wire.watch(f"{PODS}?watch=true&allowWatchBookmarks=true")
    running.call(lambda store: store.create("configmaps", {"metadata": {"name": "other"}}, "default"))
    bookmark = wire.events(1)[0]
    while bookmark["object"]["metadata"]["resourceVersion"] != str(running.call(lambda store: store.storage.version)):
        bookmark = wire.events(1)[0]
    assert bookmark == {"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1", "metadata": bookmark["object"]["metadata"]}}


def test_tables_have_their_head_only_once(running: Running, wire: Wire) -> None:
    create(running, "a")
    wire.watch(f"{PODS}?watch=true", Accept=TABLE)
    first = wire.events(1)[0]["object"]
    relabel(running, "a", x="y")
    second = wire.events(1)[0]["object"]
    assert (first["kind"], first["rows"][0]["cells"][0], first["columnDefinitions"][0]["name"]) == ("Table", "a", "Name")
    assert (second["kind"], second["columnDefinitions"], second["rows"][0]["object"]["metadata"]["labels"]) == ("Table", None, {"x": "y"})


def test_the_other_form_of_events_is_watched_too(running: Running, wire: Wire) -> None:
    wire.watch("/apis/events.k8s.io/v1/events?watch=true")
    running.call(
        lambda store: store.create("events", {"metadata": {"name": "e"}, "message": "text", "involvedObject": {"name": "p"}}, "default")
    )
    shown = wire.events(1)[0]["object"]
    assert (shown["apiVersion"], shown["note"], shown["regarding"]) == ("events.k8s.io/v1", "text", {"name": "p"})


def test_a_reader_that_leaves_is_forgotten(running: Running) -> None:
    with Wire(running) as leaving:
        leaving.watch(f"{PODS}?watch=true")
        create(running, "p")
        leaving.events(1)

    def watches(store: Store) -> int:
        return len(store.storage.kind_storage("pods").watches)

    for index in range(100):
        relabel(running, "p", n=str(index))
        if running.call(watches) == 0:
            return
    raise AssertionError("the watch is still there")


def test_a_slow_reader_loses_nothing(running: Running, wire: Wire) -> None:
    create(running, "p")
    wire.watch(f"{PODS}?watch=true&resourceVersion={running.call(lambda store: store.storage.version)}")

    def write(store: Store) -> None:
        for index in range(3000):
            store.patch("pods", "p", PatchRequest("merge", {"metadata": {"annotations": {"n": str(index), "pad": "x" * 2000}}}), "default")

    running.call(write)
    seen: list[dict[str, Any]] = []
    while len(seen) < 3000:
        seen += wire.chunk()
    assert [event["object"]["metadata"]["annotations"]["n"] for event in seen] == [str(index) for index in range(3000)]
