"""Damage to a journal: every acknowledged write is there, or the start stops and says what would be lost."""

from __future__ import annotations

import contextlib
import resource
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings, strategies as st

from pumice.cluster.apiserver import Store
from pumice.cluster.apiserver.storage import journal
from pumice.cluster.apiserver.storage.journal import FileJournal
from pumice.cluster.apiserver.storage.journal_files import JournalError
from tests.apiserver.made import store
from tests.apiserver.server_process import in_process, in_thread
from tests.apiserver.wire import Wire
from tests.samples import times

MAPS = "/api/v1/namespaces/default/configmaps"


@contextlib.contextmanager
def opened(directory: Path, recover: bool = False) -> Iterator[FileJournal]:
    found = FileJournal(directory, recover)
    try:
        yield found
    finally:
        found.close()


def held(directory: Path, recover: bool = False) -> dict[str, str]:
    """The ConfigMaps in a journal, and what each says."""
    with opened(directory, recover) as found:
        return {key[1]: obj["data"]["n"] for storage, key, obj in found.objects() if storage == "configmaps" and key[0] == "default"}


def write(made: Store, journal: FileJournal, count: int) -> None:
    """So many groups: a new object each, and every third deletes the one before, every fourth changes it."""
    for number in range(count):
        made.create("configmaps", {"metadata": {"name": f"c{number}"}, "data": {"n": "0"}}, "default")
        if number % 3 == 2:
            made.delete("configmaps", f"c{number - 1}", "default")
        elif number % 4 == 3:
            made.update("configmaps", made.get("configmaps", f"c{number - 1}", "default") | {"data": {"n": "1"}})
        journal.commit()


def shorten(made: Store, journal: FileJournal) -> None:
    journal.write_snapshot(journal.begin_log(), list(made.storage.everything()))


def expected(made: Store) -> dict[str, str]:
    return {obj["metadata"]["name"]: obj["data"]["n"] for obj in made.all("configmaps")}


def kept(directory: Path, shortened: bool) -> dict[str, str]:
    """A journal in a directory, with or without a snapshot; what it holds."""
    with opened(directory) as written:
        made = store(journal=written)
        write(made, written, 12)
        if shortened:
            shorten(made, written)
            for name in ("later-1", "later-2"):
                made.create("configmaps", {"metadata": {"name": name}, "data": {"n": "0"}}, "default")
                written.commit()
        return expected(made)


def journal_files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if path.name != "lock")


@pytest.mark.parametrize("shortened", [False, True])
@settings(max_examples=times(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_byte_may_be_changed_or_cut_off(tmp_path_factory: pytest.TempPathFactory, shortened: bool, data: st.DataObject) -> None:
    directory = tmp_path_factory.mktemp("state")
    there = kept(directory, shortened)
    path = data.draw(st.sampled_from(journal_files(directory)), "file")
    text = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(text) - 1), "place")
    match data.draw(st.sampled_from(["flip", "cut", "remove", "zero"]), "damage"):
        case "flip":
            text[place] ^= 1 << data.draw(st.integers(0, 7), "bit")
        case "cut":
            del text[place:]
        case "remove":
            del text[place : place + data.draw(st.integers(1, 400), "length")]
        case _:
            text[place : place + 50] = bytes(len(text[place : place + 50]))
    path.write_bytes(text)
    try:
        found = held(directory)
    except JournalError as error:
        assert "would be lost" in str(error)
        assert f"pumice up --data {directory} --recover" in str(error)
        left = held(directory, recover=True)
        assert len(left) > 0 or "objects" in str(error) or len(text) < 1000
        assert held(directory) == left, "recovered once, it opens"
        assert any("before-recovery" in path.name for path in directory.iterdir()), "what was damaged is kept"
    else:
        assert found == there


def test_a_file_that_is_missing_is_missed(tmp_path: Path) -> None:
    for shortened in (False, True):
        for name in [path.name for path in journal_files(_made(tmp_path / f"names-{shortened}", shortened)) if path.name != "acknowledged"]:
            directory = _made(tmp_path / f"{shortened}-{name}", shortened)
            (directory / name).unlink()
            with pytest.raises(JournalError, match="would be lost"):
                held(directory)


def _made(directory: Path, shortened: bool) -> Path:
    kept(directory, shortened)
    return directory


def test_only_what_is_damaged_is_lost(tmp_path: Path) -> None:
    there = kept(tmp_path, False)
    path = tmp_path / "log-0"
    text = path.read_bytes()
    path.write_bytes(text.replace(b'"name":"c6"', b'"name":"d6"'))
    with pytest.raises(JournalError) as refused:
        held(tmp_path)
    line = str(refused.value).splitlines()[0]
    assert line.startswith(f"{path}: bytes ")
    assert "; the writes with resourceVersion 11 to 13 would be lost" in line
    assert held(tmp_path, recover=True) == {name: n for name, n in there.items() if name != "c6"}
    assert (tmp_path / "log-0.before-recovery").read_bytes() == text.replace(b'"name":"c6"', b'"name":"d6"')


def test_versions_are_not_given_again_after_a_recovery(tmp_path: Path) -> None:
    kept(tmp_path, False)
    with opened(tmp_path) as before:
        version = before.version()
    log = tmp_path / "log-0"
    log.write_bytes(log.read_bytes()[:300])
    with opened(tmp_path, recover=True) as after:
        assert after.version() >= version


@settings(max_examples=times(10), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(part=st.integers(1, 200))
def test_a_group_that_was_never_finished_is_cut_off_and_told(
    tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture, part: int
) -> None:
    directory = tmp_path_factory.mktemp("state")
    there = kept(directory, False)
    log = directory / "log-0"
    whole = log.read_bytes()
    log.write_bytes(whole + whole[:part])
    caplog.clear()
    assert held(directory) == there
    assert f"{log}: {part} bytes at its end were cut off" in caplog.text
    assert log.read_bytes() == whole
    with opened(directory) as again:
        list(again.objects())
        write(store(journal=again), again, 1)
    assert held(directory) == there | {"c0": "0"}, "what is written after the cut is read again"


def test_a_journal_opened_again_and_again_goes_on(tmp_path: Path) -> None:
    wanted: dict[str, str] = {}
    for number in range(5):
        with opened(tmp_path) as found:
            made = Store(clock=lambda: 0.0, new_uid=lambda: "u", journal=found, version=found.version())
            for storage, key, obj in found.objects():
                made.restore(storage, key, obj)
            assert expected(made) == wanted
            if number == 0:
                made.create("namespaces", {"metadata": {"name": "default"}})
            made.create("configmaps", {"metadata": {"name": f"c{number}"}, "data": {"n": str(number)}}, "default")
            found.commit()
            if number == 2:
                shorten(made, found)
            wanted[f"c{number}"] = str(number)


def test_a_long_journal_is_shortened_while_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "LOG_SIZE", 100_000)
    monkeypatch.setattr(journal, "GROUP_SIZE", 10_000)
    with in_thread(plain=True, data=tmp_path) as running, Wire(running) as wire:
        for number in range(1500):
            wire.ask("PUT" if number else "POST", f"{MAPS}/c" if number else MAPS, {"metadata": {"name": "c"}, "data": {"n": str(number)}})
        written = running.call(lambda store: store.storage.version) * 300
    assert sum(path.stat().st_size for path in journal_files(tmp_path)) < written
    assert (tmp_path / "log-0").exists() is False
    with in_thread(plain=True, data=tmp_path) as running, Wire(running) as wire:
        assert wire.ask("GET", f"{MAPS}/c")[1]["data"] == {"n": "1499"}


def test_a_snapshot_under_way_when_the_process_died_changes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as written:
        made = store(journal=written)
        write(made, written, 5)
        written.begin_log()
        write_later = {"metadata": {"name": "later"}, "data": {"n": "0"}}
        made.create("configmaps", write_later, "default")
        written.commit()
        (tmp_path / "snapshot-7.new").write_bytes(b"half")
        there = expected(made)
    assert held(tmp_path) == there
    assert not (tmp_path / "snapshot-7.new").exists()


def test_a_journal_without_checksums_is_taken_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    _old_journal(tmp_path / "pumice.db")
    assert held(tmp_path) == {"c": "old"}
    assert "pumice.db has no checksums" in caplog.text
    assert (tmp_path / "pumice.db.old").exists()
    assert held(tmp_path) == {"c": "old"}
    with opened(tmp_path) as found:
        assert found.version() >= 41


def _old_journal(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("create table objects (storage text, namespace text, name text, body blob, primary key (storage, namespace, name))")
    database.execute("create table head (id integer primary key, version integer)")
    database.execute("insert into head values (1, 41)")
    database.execute("insert into objects values ('configmaps', 'default', 'c', ?)", (b'{"data":{"n":"old"}}',))
    database.commit()
    database.close()


def test_an_old_journal_that_is_broken_is_told_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "pumice.db").write_bytes(b"this is no database" * 100)
    with pytest.raises(JournalError, match=r"pumice.db cannot be read"):
        FileJournal(tmp_path)


def test_a_full_disk_ends_the_process_with_one_line(tmp_path: Path) -> None:
    data = tmp_path / "state"
    with in_process("--plain", "--data", str(data), "--kubeconfig", str(tmp_path / "kubeconfig")) as (process, url):
        token = yaml.safe_load((tmp_path / "kubeconfig").read_text())["users"][0]["user"]["token"]
        with Wire.to(url, token) as wire, contextlib.suppress(EOFError, ConnectionError):
            make = lambda name: wire.ask("POST", MAPS, {"metadata": {"name": name}, "data": {"n": "0"}})[0]  # noqa: E731
            assert make("c0") == 201, "by now all that the start wrote is in the file"
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, ((data / "log-0").stat().st_size + 5_000,) * 2)
            acknowledged = 1
            while make(f"c{acknowledged}") == 201:
                acknowledged += 1
        assert process.wait(30) == 1
        assert process.stderr is not None
        told = process.stderr.read()
        assert (len(told.splitlines()), f"{data} cannot be written" in told, "File too large" in told) == (1, True, True), told
    assert set(held(data)) >= {f"c{number}" for number in range(acknowledged)}
