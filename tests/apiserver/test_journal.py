"""The journal: what was acknowledged is there after a kill at any instant, and versions are never given twice."""

from __future__ import annotations

import asyncio
import errno
import http.client
import itertools
import json
import random
import threading
import time
from functools import partial
from pathlib import Path

import pytest
import yaml

from pumice.cluster.apiserver import Server
from pumice.cluster.apiserver.storage import group_commit
from pumice.cluster.apiserver.storage.journal import FileJournal
from pumice.cluster.apiserver.storage.journal_files import JournalError
from tests.apiserver.made import pod
from tests.apiserver.server_process import in_process, in_thread
from tests.apiserver.wire import Wire

MAPS = "/api/v1/namespaces/default/configmaps"


def on_a_slow_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits are never the event loop's."""
    monkeypatch.setattr(group_commit, "QUICK_S", -1.0)
    monkeypatch.setattr(group_commit, "TRIED_EVERY", 1_000_000)


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    with in_thread(plain=True, data=tmp_path) as running, Wire(running) as wire:
        token = running.server.token
        wire.ask("POST", "/api/v1/namespaces/default/pods", pod("p"))
        wire.ask("POST", MAPS, {"metadata": {"name": "gone"}})
        wire.ask("DELETE", f"{MAPS}/gone")
        wire.ask("POST", "/apis/scheduling.volcano.sh/v1beta1/queues", {"metadata": {"name": "q"}, "spec": {"weight": 3}})
        before = wire.ask("GET", "/api/v1/namespaces/default/pods/p")[1]
        version = running.call(lambda store: store.storage.version)
    with in_thread(plain=True, data=tmp_path) as running, Wire(running) as wire:
        assert running.server.token == token
        assert wire.ask("GET", "/api/v1/namespaces/default/pods/p")[1] == before
        assert wire.ask("GET", f"{MAPS}/gone")[0] == 404
        assert wire.ask("GET", "/apis/scheduling.volcano.sh/v1beta1/queues/q")[1]["spec"]["weight"] == 3
        assert int(wire.ask("POST", MAPS, {"metadata": {"name": "new"}})[1]["metadata"]["resourceVersion"]) > version
        wire.watch(f"{MAPS}?watch=true&resourceVersion={version}")
        assert wire.events(1)[0]["object"]["code"] == 410


def test_watchers_see_nothing_before_it_is_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = threading.Event()
    commit = FileJournal.commit

    def slow(self: FileJournal) -> int:
        allowed.wait(10)
        return commit(self)

    allowed.set()
    monkeypatch.setattr(FileJournal, "commit", slow)
    on_a_slow_disk(monkeypatch)
    with in_thread(plain=True, data=tmp_path) as running, Wire(running) as writer, Wire(running) as watcher:
        watcher.watch(f"{MAPS}?watch=true&resourceVersion={running.call(lambda store: store.storage.version)}")
        allowed.clear()
        writer.send(writer.request("POST", MAPS, {"metadata": {"name": "c"}}))
        while running.call(lambda store: store.find("configmaps", "default", "c")) is None:
            pass
        watcher._socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            watcher.events(1)
        watcher._socket.settimeout(10)
        allowed.set()
        assert writer.answer()[0] == 201
        assert watcher.events(1)[0]["object"]["metadata"]["name"] == "c"


def test_a_disk_that_was_slow_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = FileJournal.commit
    committers: list[str] = []
    slow = threading.Event()

    def told(self: FileJournal) -> int:
        committers.append(threading.current_thread().name)
        if slow.is_set():
            time.sleep(0.5)
        return commit(self)

    monkeypatch.setattr(FileJournal, "commit", told)
    monkeypatch.setattr(group_commit, "QUICK_S", 0.02)
    monkeypatch.setattr(group_commit, "SLOWEST_S", 1.0)
    monkeypatch.setattr(group_commit, "TRIED_EVERY", 2)
    with in_thread(plain=True, data=tmp_path) as running, Wire(running) as wire:
        slow.set()
        until = time.monotonic() + 60
        for index in itertools.count():
            wire.ask("POST", MAPS, {"metadata": {"name": f"c{index}"}})
            if committers[-1].startswith("journal"):
                slow.clear()
            elif not slow.is_set() and not any(name.startswith("journal") for name in committers[-10:]):
                return
            assert time.monotonic() < until, f"a quick disk is the loop's: {committers[-10:]}"


def test_one_slow_commit_or_answers_that_take_long_do_not_make_the_disk_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers to a whole group are sent after its commit: the time that they take says nothing about the disk."""
    now_s = 0.0
    committers: list[str] = []
    commit = FileJournal.commit

    def noted(journal: FileJournal) -> int:
        nonlocal now_s
        committers.append(threading.current_thread().name)
        now_s += 1.0 if len(committers) == 1 else 0.0
        return commit(journal)

    async def two_groups() -> None:
        server = Server(plain=True, data=tmp_path)
        await server.start()
        committers.clear()
        for name in ("a", "b"):
            server.store.create("pods", pod(name), "default")
            answered = asyncio.Event()
            server._commits.when_durable(server.store.storage.version, partial(answer, answered))
            await answered.wait()
        await server.stop()

    def answer(answered: asyncio.Event) -> None:
        nonlocal now_s
        now_s += 1.0
        answered.set()

    monkeypatch.setattr(FileJournal, "commit", noted)
    monkeypatch.setattr(group_commit.time, "perf_counter", lambda: now_s)
    asyncio.run(two_groups())
    assert committers == [threading.main_thread().name] * 2


def test_a_directory_serves_one_server_only(tmp_path: Path) -> None:
    with in_thread(data=tmp_path), pytest.raises(JournalError, match="in use by another server"):
        Server(data=tmp_path)


def test_what_the_data_directory_holds_is_for_its_owner(tmp_path: Path) -> None:
    with in_thread(data=tmp_path / "state"):
        assert (tmp_path / "state").stat().st_mode & 0o77 == 0
        modes = {path.name: path.stat().st_mode & 0o77 for path in (tmp_path / "state").iterdir()}
        assert {"token", "signing-key", "log-0", "acknowledged"} <= modes.keys()
        assert not any(mode for name, mode in modes.items() if name != "ca.crt"), modes


@pytest.mark.parametrize("quick", [True, False])
def test_a_journal_that_fails_acknowledges_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: bool) -> None:
    commit = FileJournal.commit
    if not quick:
        on_a_slow_disk(monkeypatch)
    with in_thread(plain=True, data=tmp_path) as running, Wire(running) as wire:
        wire.ask("POST", MAPS, {"metadata": {"name": "kept"}})

        def full(self: FileJournal) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(FileJournal, "commit", full)
        wire.send(wire.request("POST", MAPS, {"metadata": {"name": "lost"}}))
        with pytest.raises(EOFError):
            wire.answer()
        monkeypatch.setattr(FileJournal, "commit", commit)


def killed_in_a_loop(folder: Path, rounds: int) -> None:
    """Write from several connections, kill at a random instant, look after a restart: all acknowledged writes must be there."""
    acknowledged: dict[str, str | None] = {}
    dice = random.Random(7)
    for number in range(rounds):
        with in_process("--plain", "--data", str(folder / "state"), "--kubeconfig", str(folder / "kubeconfig")) as (process, url):
            token = yaml.safe_load((folder / "kubeconfig").read_text())["users"][0]["user"]["token"]
            headers = {"Authorization": f"Bearer {token}"}
            address = url.removeprefix("http://")
            _all_there(address, headers, acknowledged)
            threads = [
                threading.Thread(target=_write, args=(address, headers, f"r{number}-w{writer}", acknowledged)) for writer in range(4)
            ]
            for thread in threads:
                thread.start()
            asyncio.run(asyncio.sleep(dice.uniform(0.05, 0.6)))
            process.kill()
            for thread in threads:
                thread.join()
    assert acknowledged


def _write(address: str, headers: dict[str, str], prefix: str, acknowledged: dict[str, str | None]) -> None:
    connection = http.client.HTTPConnection(address, timeout=10)
    try:
        for index in range(100_000):
            name = f"{prefix}-{index}"
            _send(connection, "POST", MAPS, headers, {"metadata": {"name": name}, "data": {"n": "0"}})
            acknowledged[name] = "0"
            if index % 3 == 0:
                acknowledged[name] = "either"
                _send(
                    connection, "PATCH", f"{MAPS}/{name}", headers | {"Content-Type": "application/merge-patch+json"}, {"data": {"n": "1"}}
                )
                acknowledged[name] = "1"
            elif index % 3 == 1:
                acknowledged[name] = "either"
                _send(connection, "DELETE", f"{MAPS}/{name}", headers, None)
                acknowledged[name] = None
    except (OSError, http.client.HTTPException):
        pass
    finally:
        connection.close()


def _send(connection: http.client.HTTPConnection, method: str, path: str, headers: dict[str, str], body: object) -> None:
    connection.request(method, path, json.dumps(body) if body else None, headers)
    answer = connection.getresponse()
    answer.read()
    assert answer.status in (200, 201)


def _all_there(address: str, headers: dict[str, str], acknowledged: dict[str, str | None]) -> None:
    connection = http.client.HTTPConnection(address, timeout=10)
    connection.request("GET", MAPS, headers=headers)
    found = {one["metadata"]["name"]: one["data"]["n"] for one in json.loads(connection.getresponse().read())["items"]}
    connection.close()
    wrong = {name: (wanted, found.get(name)) for name, wanted in acknowledged.items() if wanted != "either" and found.get(name) != wanted}
    assert not wrong


def test_killed_three_times_under_load_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    killed_in_a_loop(tmp_path, 4)


@pytest.mark.nightly
def test_killed_fifty_times_under_load_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    killed_in_a_loop(tmp_path, 51)
