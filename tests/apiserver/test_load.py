"""What one client may cost: bytes that are kept for it, connections, time, and the work on one request. Counted, not timed."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from pumice.cluster.apiserver import PatchRequest, StatusError, Store, read, rest
from pumice.cluster.apiserver.patches import json_patch
from pumice.cluster.apiserver.status import LARGEST_OBJECT
from pumice.cluster.apiserver.storage import in_memory as storage
from pumice.cluster.apiserver.streams.watch_stream import BATCH_BYTES
from pumice.http import server as serving
from pumice.http.write_buffer import PIECE
from tests.apiserver.made import store
from tests.apiserver.server_process import Running, in_thread
from tests.apiserver.wire import Wire
from tests.samples import times

MAPS = "/api/v1/namespaces/default/configmaps"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


def text_map(name: str, size: int) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {"text": "x" * size}}


def fill(made: Store, count: int, size: int) -> None:
    for number in range(count):
        made.create("configmaps", text_map(f"c{number}", size), "default")


def rewrite(made: Store, number: int) -> None:
    made.patch("configmaps", "c0", PatchRequest("merge", {"data": {"text": f"{number}" + "x" * 1_000_000}}), "default")


@settings(deadline=None, max_examples=times(6))
@given(sizes=st.lists(st.integers(0, 20_000), min_size=1, max_size=60))
def test_history_is_bounded_in_bytes(sizes: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "HISTORY_BYTES", 100_000)
        made = store()
        made.create("secrets", {"metadata": {"name": "small"}}, "default")
        since = made.storage.version - 1
        for number, size in enumerate(sizes):
            made.create("configmaps", text_map(f"c{number}", size), "default")
            kind_storages = made.storage.kind_storages.values()
            assert (
                sum(len(event.body) for kind_storage in kind_storages for event in kind_storage.events)
                == sum(kind_storage.size for kind_storage in kind_storages)
                <= 100_000
            )
        assert len(made.watch("secrets", since=since).take()) == 1, "who keeps little forgets nothing"
        assert len(list(made.all("configmaps"))) == len(sizes)


def test_a_watch_that_is_too_slow_is_cut_off_and_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "HISTORY_BYTES", 100_000)
    made = store()
    woken: list[bool] = []
    watch = made.watch("configmaps", wake=lambda: woken.append(True))
    fill(made, 5, 10_000)
    assert (watch.cut_off, len(woken)) == (False, 1)
    fill_more = [made.create("configmaps", text_map(f"d{number}", 10_000), "default") for number in range(10)]
    assert (watch.cut_off, watch.take(), len(woken)) == (True, [], 2)
    with pytest.raises(StatusError) as gone:
        made.watch("configmaps", since=1)
    assert (gone.value.code, len(fill_more)) == (410, 10)


def test_a_silent_watcher_holds_a_few_pieces_and_is_cut_off(monkeypatch: pytest.MonkeyPatch, running: Running, wire: Wire) -> None:
    monkeypatch.setattr(storage, "HISTORY_BYTES", 8_000_000)
    running.call(lambda made: fill(made, 1, 10))
    silent = Wire(running)
    with silent:
        silent.watch(f"{MAPS}?watch=true")
        for number in range(60):
            running.call(partial(rewrite, number=number))
        held = running.call(lambda made: max(connection.waiting() for connection in running.server._door.connections))
        assert held <= BATCH_BYTES + 1_100_000
        kept = running.call(lambda made: sum(len(each._waiting) for each in made.storage.kind_storage("configmaps").watches))
        assert kept <= 8
        assert wire.ask("GET", "/healthz")[1] == b"ok"
        found: list[dict[str, Any]] = []
        while not found or found[-1]["type"] != "ERROR":
            found += silent.chunk()
        assert found[-1]["object"]["code"] == 410


def test_when_the_house_is_full_the_client_goes_that_is_silent_for_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "MOST_CONNECTIONS", 10)
    with in_thread(plain=True) as running, Wire(running) as watching:
        watching.watch(f"{MAPS}?watch=true")
        silent = [Wire(running) for _ in range(30)]
        with Wire(running) as wire:
            assert wire.ask("GET", "/healthz")[1] == b"ok"
            assert running.call(lambda made: len(running.server._door.connections)) <= 10
            running.call(lambda made: fill(made, 1, 10))
            assert watching.events(1)[0]["type"] == "ADDED", "who is served stays"
        for each in silent:
            each.__exit__(None, None, None)


def test_a_request_that_comes_in_drops_is_cut_off_in_time(running: Running) -> None:
    now = [0.0]
    door = running.server._door
    running.call(lambda made: setattr(door, "time", lambda: now[0]))
    with Wire(running) as slow, Wire(running) as idle:
        idle.send(HEALTH)
        idle.answer()
        for second in range(31):
            now[0] = float(second)
            slow.send(b"POST / HTTP/1.1\r\nHost: x\r\n"[second : second + 1])
            if second == 0:
                while not running.call(lambda made: any(each._buffer for each in door.connections)):
                    pass
        now[0] = serving.READ_TIMEOUT_S + 0.5
        running.call(lambda made: door.sweep())
        with pytest.raises((ConnectionError, EOFError)):
            slow.answer()
        idle.send(HEALTH)
        assert idle.answer()[2] == b"ok", "between two requests there is more time"
        while running.call(lambda made: any(each._patience_s != serving.IDLE_TIMEOUT_S for each in door.connections)):
            pass
        now[0] += serving.IDLE_TIMEOUT_S + 1
        running.call(lambda made: door.sweep())
        assert idle.is_closed()


def test_who_does_not_read_an_answer_is_cut_off_in_time(running: Running) -> None:
    running.call(lambda made: fill(made, 20, 900_000))
    now = [0.0]
    door = running.server._door
    running.call(lambda made: setattr(door, "time", lambda: now[0]))
    with Wire(running) as wire:
        wire.send(wire.request("GET", MAPS))
        while not running.call(lambda made: any(each._out.stopped for each in door.connections)):
            pass
        assert running.call(lambda made: max(each.waiting() for each in door.connections)) <= read.PIECE_BYTES + 1_000_000
        now[0] = serving.WRITE_TIMEOUT_S + 1
        running.call(lambda made: door.sweep())
        assert running.call(lambda made: any(each._out.stopped for each in door.connections)) is False


def test_requests_that_are_not_whole_are_bounded_in_sum(monkeypatch: pytest.MonkeyPatch, running: Running) -> None:
    monkeypatch.setattr(serving, "RECEIVED_BYTES", 1_000_000)
    clients = [Wire(running) for _ in range(10)]
    for each in clients:
        try:
            each.send(each.request("POST", MAPS, b"x" * 400_000)[:-1])
        except ConnectionError:
            continue
    with Wire(running) as wire:
        assert wire.ask("GET", "/healthz")[1] == b"ok"
    small = len(clients) * serving.SMALL  # so much a client may hold at any time
    assert running.call(lambda made: running.server._door.received) <= 1_000_000 + small
    for each in clients:
        each.__exit__(None, None, None)
    while running.call(lambda made: running.server._door.received):
        pass


def test_a_client_that_asks_and_never_reads_is_answered_no_further(running: Running) -> None:
    running.call(lambda made: fill(made, 1, 900_000))
    with Wire(running) as wire:
        wire.send(wire.request("GET", f"{MAPS}/c0") * 200)
        while not running.call(lambda made: any(each._out.stopped for each in running.server._door.connections)):
            pass
        held = running.call(lambda made: max(each.waiting() for each in running.server._door.connections))
        assert held <= 1_000_000
        for _ in range(200):
            assert wire.answer()[0] == 200


def test_silent_connections_over_tls_have_no_buffers_of_their_own() -> None:
    with in_thread() as running:
        host, port = running.url.removeprefix("https://").split(":")
        context = ssl.create_default_context(cadata=running.server._authority.pem.decode())  # type: ignore[union-attr]
        with socket.create_connection((host, int(port)), 60) as plain, context.wrap_socket(plain, server_hostname="localhost") as spoken:
            spoken.sendall(HEALTH)
            assert spoken.recv(65536).startswith(b"HTTP/1.1 200 OK")
            names = running.call(lambda made: [type(each._transport).__name__ for each in running.server._door.connections])
            assert names == ["_SelectorSocketTransport"]
            spoken.sendall(HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            while spoken.recv(65536):
                pass  # the end is told: no SSLEOFError


def test_a_handshake_that_comes_in_drops_is_cut_off_in_time() -> None:
    with in_thread() as running:
        now, door = [0.0], running.server._door
        running.call(lambda made: setattr(door, "time", lambda: now[0]))
        host, port = running.url.removeprefix("https://").split(":")
        with socket.create_connection((host, int(port)), 60) as slow:
            for second in range(31):
                now[0] = float(second)
                slow.sendall(b"\x16\x03\x01\x01\x00\x01\x00"[second : second + 1])
                while not running.call(lambda made: len(door.connections)):
                    pass
            now[0] = serving.READ_TIMEOUT_S + 0.5
            running.call(lambda made: door.sweep())
            with contextlib.suppress(ConnectionError):
                assert slow.recv(1) == b""


@pytest.mark.parametrize(
    "accept", ["", "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"]
)
def test_a_long_list_comes_in_pieces_and_is_whole(running: Running, wire: Wire, accept: str) -> None:
    running.call(lambda made: fill(made, 300, 3000))
    for selector, pieces in (("", True), ("?fieldSelector=metadata.name%3Dc7", False)):
        wire.send(wire.request("GET", f"{MAPS}{selector}", Accept=accept or "*/*"))
        status, headers = wire.head()
        assert status == 200
        if "transfer-encoding" in headers:
            parts = list(iter(wire.piece, b""))
            assert all(len(part) < read.PIECE_BYTES + PIECE for part in parts)
            body = b"".join(parts)
        else:
            body = wire.exactly(int(headers["content-length"]))
        found = json.loads(body)
        names = [(each.get("object") or each)["metadata"]["name"] for each in found.get("rows") or found["items"]]
        assert names == (sorted(f"c{number}" for number in range(300)) if pieces else ["c7"])
    assert wire.ask("HEAD", MAPS)[0] == 200


def test_many_objects_are_deleted_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch, running: Running, wire: Wire) -> None:
    monkeypatch.setattr(rest, "DELETED_AT_ONCE", 10)
    running.call(lambda made: fill(made, 95, 10))
    status, answer = wire.ask("DELETE", MAPS)
    assert (status, len(answer["items"])) == (200, 95)
    assert wire.ask("GET", MAPS)[1]["items"] == []


def test_selectors_and_watches_are_bounded(monkeypatch: pytest.MonkeyPatch, running: Running, wire: Wire) -> None:
    many = "%2C".join(f"%21k{number}" for number in range(read.MOST_CONDITIONS + 1))
    values = "%2C".join(f"v{number}" for number in range(read.MOST_VALUES + 1))
    for selector in (f"labelSelector={many}", f"labelSelector=k+in+({values})"):
        status, answer = wire.ask("GET", f"{MAPS}?{selector}")
        assert (status, "at most" in answer["message"]) == (400, True)
    monkeypatch.setattr(read, "MOST_WATCHES", 2)
    with Wire(running) as first, Wire(running) as second:
        for each in (first, second):
            each.watch(f"{MAPS}?watch=true")
        assert wire.ask("GET", f"{MAPS}?watch=true")[0] == 429
    while (answered := wire.ask("GET", f"{MAPS}?watch=true&resourceVersion=99999999")[0]) == 429:
        pass
    assert answered == 504


def test_an_object_is_bounded_as_it_is_stored() -> None:
    made = store()
    made.create("events", {"metadata": {"name": "s"}, "involvedObject": {}}, "default")
    version = made.storage.version
    notes = {f"example.com/{number}": "x" * 1000 for number in range(300)}
    for body, code in (({"metadata": {"annotations": notes}}, 422), ({"message": "A" * LARGEST_OBJECT}, 413)):
        with pytest.raises(StatusError) as refused:
            made.patch("events", "s", PatchRequest("merge", body), "default")
        assert refused.value.code == code
    assert made.storage.version == version


@pytest.mark.parametrize(
    ("operations", "sentence"),
    [
        ([{"op": "test", "path": "", "value": {}}] * (json_patch.MAX_OPERATIONS + 1), "at most 10000 operations"),
        ([{"op": "add", "path": "/a", "value": "x" * 100_000}, *[{"op": "copy", "from": "/a", "path": "/b"}] * 40], "may copy at most"),
        (
            [{"op": "copy", "from": "", "path": "/a"}] * 20 + [{"op": "copy", "from": "", "path": "/a"}] * 200,
            "nests more than|may copy at most",
        ),
        ([{"op": "add", "path": "/a" * count, "value": {}} for count in range(1, 200)], "nests more than 100"),
        ([{"op": "add", "path": "/a", "value": [0] * 100_000}, *[{"op": "add", "path": "/a/0", "value": 0}] * 2000], "too long lists"),
        ([{"op": "add", "path": "/a", "value": [0] * 100_000}, *[{"op": "remove", "path": "/a/0"}] * 2000], "too long lists"),
    ],
)
def test_what_a_json_patch_may_cost_is_bounded(operations: list[dict[str, Any]], sentence: str) -> None:
    with pytest.raises(json_patch.PatchError, match=sentence):
        json_patch.json_patch({}, operations)


def test_a_full_store_refuses_what_would_make_it_fuller_and_lets_go() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "MOST_STORED", 100_000)
        made = store()
        with pytest.raises(StatusError, match="database space exceeded: all objects would have") as caught:
            fill(made, 100, 5000)
        assert caught.value.code == 507
        kept = [obj["metadata"]["name"] for obj in made.all("configmaps")]
        assert 15 <= len(kept) <= 20
        made.patch("configmaps", "c0", PatchRequest("merge", {"data": {"text": "smaller"}}), "default")
        for name in kept:
            made.delete("configmaps", name, "default")
        fill(made, len(kept), 5000)


@settings(deadline=None, max_examples=times(6))
@given(steps=st.lists(st.tuples(st.integers(0, 5), st.one_of(st.none(), st.integers(0, 300))), max_size=40))
def test_what_is_stored_is_counted_to_the_byte(steps: list[tuple[int, int | None]]) -> None:
    made = store()
    for number, size in steps:
        name, there = f"c{number}", made.find("configmaps", "default", f"c{number}") is not None
        if size is None:
            if there:
                made.delete("configmaps", name, "default")
        elif there:
            made.patch("configmaps", name, PatchRequest("merge", text_map(name, size)), "default")
        else:
            made.create("configmaps", text_map(name, size), "default")
    assert made.storage.stored == sum(len(msgspec.json.encode(obj)) for _, obj in made.storage.everything())


def test_a_large_namespace_is_emptied_in_steps() -> None:
    made = store()
    made.create("namespaces", {"metadata": {"name": "large"}})
    for number in range(500):
        made.create("configmaps", text_map(f"c{number}", 10), "large")
    made.delete("namespaces", "large")
    left = [500]
    while made.collector.step():
        left.append(len(list(made.all("configmaps"))))
        assert left[-2] - left[-1] <= 200
    assert not list(made.all("configmaps")) and made.find("namespaces", "", "large") is None
