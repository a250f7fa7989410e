"""Recordings on disk: whole after a kill, honest about damage, never more than their folder may take."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st

from pumice.api.errors import InputError
from pumice.cli.main import cli
from pumice.cluster.chained_file import sealed, seed
from pumice.inputs.recording import file_format
from pumice.inputs.recording.entry_format import VERSION, Begin, Entry, PhaseSet, Put, Removed, Whole
from pumice.inputs.recording.file_format import CHAIN, RecordingFile, Retention, Writer, entries, files_of

BEGIN = Begin(1.0, VERSION, 0, ["volcano"], "default", False, 0.0, ["actions: allocate"])
SAID: list[Entry] = [BEGIN, Whole(1.0), *(Removed(2.0 + number, "Pod", f"default/p{number}") for number in range(100))]


def written(path: Path) -> Path:
    file = RecordingFile(path)
    for entry in SAID:
        file.write([entry])
    file.close()
    return path


def test_only_their_user_may_read_them(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "new", Retention())
    writer.begin(lambda: SAID)
    writer.close()
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "new", *files_of(tmp_path / "new", pytest.fail))] == [0o700, 0o600]


def test_what_was_written_is_read(tmp_path: Path) -> None:
    assert list(entries(written(tmp_path / "a.pumice"), pytest.fail)) == SAID


def test_files_may_be_renamed(tmp_path: Path) -> None:
    moved = written(tmp_path / "a.pumice").rename(tmp_path / "bug.report")
    assert list(entries(moved, pytest.fail)) == SAID


def test_wherever_a_file_is_torn_all_before_is_read_and_the_rest_is_told(tmp_path: Path) -> None:
    whole = written(tmp_path / "a.pumice").read_bytes()
    torn = tmp_path / "torn.pumice"
    for size in range(len(whole) - 1, 200, -97):
        torn.write_bytes(whole[:size])
        told: list[str] = []
        found = list(entries(torn, told.append))
        assert found == SAID[: len(found)] and len(found) < len(SAID)
        assert not told or "cut off" in told[0]


@pytest.mark.parametrize("size", [0, 1, 50])
def test_a_file_that_was_not_begun_is_left_out_of_its_folder_and_told(size: int, tmp_path: Path) -> None:
    """Its writer was killed, or only just made it. All else in the folder is of use."""
    first, second = (tmp_path / f"recording-{number:08}.pumice" for number in (1, 2))
    whole = written(first).read_bytes()
    second.write_bytes(whole[:size])
    told: list[str] = []
    assert files_of(tmp_path, told.append) == [first]
    assert told == [f"{second}: is left out, as not even its first record is whole"]
    first.unlink()
    (left,) = files_of(tmp_path, pytest.fail)
    with pytest.raises(InputError, match="torn at its beginning"):
        list(entries(left, lambda message: None))


def test_damage_in_the_middle_is_told_and_ends_the_reading(tmp_path: Path) -> None:
    path = written(tmp_path / "a.pumice")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    told: list[str] = []
    found = list(entries(path, told.append))
    assert found == SAID[: len(found)] and 0 < len(found) < len(SAID)
    assert len(told) == 1 and "are damaged; nothing behind them can be read" in told[0]


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 7)), min_size=1, max_size=4))
def test_whatever_bits_are_flipped_what_is_read_was_written(flips: list[tuple[int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder, "a.pumice"))
        data = bytearray(path.read_bytes())
        for at, bit in flips:
            data[at % len(data)] ^= 1 << bit
        path.write_bytes(data)
        found: list[Entry] = []
        with contextlib.suppress(InputError):
            found.extend(entries(path, lambda text: None))
        assert found == SAID[: len(found)]


def crafted(path: Path, *payloads: bytes) -> Path:
    """A file with these payloads and right checksums, as somebody may send it."""
    checksum = seed(CHAIN)
    for number, payload in enumerate(payloads):
        record, checksum = sealed(number + 1, number + 1, payload, checksum)
        path.write_bytes(record)
    return path


@pytest.mark.parametrize("payload", [b"no zip", zlib.compress(b"no JSON"), zlib.compress(b'["Removed", {}]'), zlib.compress(b"\xff")])
def test_a_file_with_right_checksums_around_nonsense_is_refused_in_a_line(payload: bytes, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no recording") as refused:
        list(entries(crafted(tmp_path / "a.pumice", payload), pytest.fail))
    assert "\n" not in str(refused.value)


def test_a_record_that_unzips_to_more_than_a_scheduler_writes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_format, "LARGEST_RECORD", 1 << 20)
    with pytest.raises(InputError, match="has a record of more than 1 MiB"):
        list(entries(crafted(tmp_path / "a.pumice", zlib.compress(b" " * (1 << 21))), pytest.fail))


@pytest.mark.parametrize("odd", ["recording-..-00000001.pumice", "recording-x-7.pumice", "recording-\u0663.pumice", "recording--1.pumice"])
def test_files_with_odd_names_are_passed_over_and_recording_goes_on(odd: str, tmp_path: Path) -> None:
    """The next number was that of the last name: where it was taken, nothing was recorded any more."""
    (tmp_path / odd).write_text("not ours")
    (tmp_path / "recording-00000002.pumice").mkdir()
    (tmp_path / "recording-00000003.pumice").symlink_to(tmp_path / "gone")
    for number in (1, 4):
        written(tmp_path / f"recording-{number:08}.pumice")
    writer = Writer(tmp_path, Retention())
    writer.begin(lambda: SAID)
    writer.close()
    assert [path.name for path in files_of(tmp_path, pytest.fail)] == [f"recording-{number:08}.pumice" for number in (1, 4, 5)]
    assert (tmp_path / odd).read_text() == "not ours"


CLIMBING = ["..", "../../x", "/etc/x", "..\\x", ".", "a/../../b", "x\x00y", "a\nb"]


@pytest.mark.parametrize("name", CLIMBING)
def test_objects_with_names_of_other_folders_leave_nothing_outside_of_the_folder(name: str, tmp_path: Path) -> None:
    """Names of objects are in recordings that others send: none of them becomes a path, nor more than a line."""
    meta = {"name": name, "namespace": name, "uid": name}
    put = [("Node", {"metadata": {"name": name}}), ("Pod", {"metadata": meta, "spec": {"nodeName": name, "containers": []}})]
    said: list[Entry] = [
        BEGIN,
        *(Put(1.0, kind, msgspec.Raw(msgspec.json.encode(each))) for kind, each in put),
        Whole(1.0),
        Removed(2.0, "Pod", name),
    ]
    folder = tmp_path / "a" / "b" / "sent"
    writer = Writer(folder, Retention())
    writer.begin(lambda: said)
    writer.close()
    for arguments in (
        ["record", str(folder.parent / "taken"), "--from", str(folder)],
        ["replay", str(folder)],
        ["cycle", "--recording", str(folder), "--at", "1970-01-01T00:00:01Z"],
    ):
        error = CliRunner().invoke(cli, arguments, standalone_mode=False).exception
        assert error is None or isinstance(error, SystemExit | InputError | click.ClickException), error
        assert "\n" not in str(error)
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == [
        "a",
        "a/b",
        "a/b/sent",
        "a/b/sent/recording-00000001.pumice",
        "a/b/taken",
        "a/b/taken/recording-00000001.pumice",
    ]


def test_other_files_and_other_versions_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("apiVersion: v1\n")
    with pytest.raises(InputError, match="is no recording"):
        list(entries(other, lambda text: None))
    newer = RecordingFile(tmp_path / "newer")
    newer.write([Begin(1.0, VERSION + 1, 0, [], "", False, 0.0, [])])
    newer.close()
    with pytest.raises(InputError, match="another version"):
        list(entries(tmp_path / "newer", pytest.fail))
    with pytest.raises(InputError, match="holds no recordings"):
        files_of(tmp_path, pytest.fail)


KILLED = """
import os, signal, sys
from pathlib import Path
from pumice.inputs.recording.file_format import Retention, Writer
from tests.recording.test_files import SAID
writer = Writer(Path(sys.argv[1]), Retention())
writer.begin(lambda: SAID[:2])
for entry in SAID[2:]:
    writer.add(lambda entry=entry: [entry])
writer.add(lambda: os.kill(os.getpid(), signal.SIGKILL))
writer.close()
"""


def test_what_was_written_before_a_kill_is_there(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL
    (path,) = files_of(tmp_path, pytest.fail)
    assert list(entries(path, pytest.fail)) == SAID


def test_a_folder_keeps_to_its_size_and_the_newest_stay(tmp_path: Path) -> None:
    retention = Retention(folder_bytes=20_000, file_bytes=2_000)
    writer = Writer(tmp_path, retention)
    for number in range(100):
        writer.begin(lambda: SAID[:2])
        writer.add(lambda number=number: [PhaseSet(float(at), f"job-{number}-{at:x<50}", "Inqueue") for at in range(200)])
    writer.close()
    file_format = files_of(tmp_path, pytest.fail)
    assert sum(path.stat().st_size for path in file_format) <= retention.folder_bytes
    assert file_format[-1].name == "recording-00000100.pumice" and 2 < len(file_format) < 100


def test_a_file_has_its_end_by_age(tmp_path: Path) -> None:
    for retention, expected in ((Retention(), False), (Retention(file_s=0.0), True)):
        writer = Writer(tmp_path, retention)
        assert writer.wants_another()
        writer.begin(lambda: SAID)
        assert writer.wants_another() is expected
        writer.close()


def test_while_a_disk_hangs_no_more_waits_for_it_and_then_a_new_file_begins(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What waits to begin a file is the whole state."""
    goes_on, begun = threading.Event(), 0

    def hanging() -> list[Entry]:
        goes_on.wait()
        return SAID[:2]

    writer = Writer(tmp_path, Retention())
    writer.begin(hanging)
    for number in range(3 * file_format.MOST_WAITING):
        if writer.wants_another():
            begun += 1
        writer.add(lambda number=number: [Removed(float(number), "Pod", "default/p")])
    goes_on.set()
    while not writer.wants_another():
        time.sleep(0.01)
    writer.add(lambda: [Whole(1.0)])
    writer.begin(lambda: SAID)
    writer.close()
    first, second = (list(entries(path, pytest.fail)) for path in files_of(tmp_path, pytest.fail))
    assert begun == 0 and second == SAID
    assert [each.at for each in first[2:]] == list(range(len(first) - 2)), "no gap, and nothing after the gap"
    assert caplog.text.count("writing is too slow") == 1


def test_a_disk_that_hangs_keeps_no_process_from_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_format, "CLOSING_S", 0.01)
    goes_on = threading.Event()

    def hanging() -> list[Entry]:
        assert goes_on.wait(60)
        return SAID

    writer = Writer(tmp_path, Retention())
    writer.begin(hanging)
    writer.close()
    monkeypatch.undo()
    goes_on.set()
    writer.close()
    assert list(entries(files_of(tmp_path, pytest.fail)[0], pytest.fail)) == SAID


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), LookupError("a fault of ours")])
def test_a_disk_that_fails_ends_the_file_and_not_the_program(tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Exception) -> None:
    def full() -> list[Entry]:
        raise error

    writer = Writer(tmp_path, Retention())
    writer.begin(lambda: SAID[:2])
    writer.add(full)
    writer.add(lambda: SAID[2:])
    writer.begin(lambda: SAID)
    writer.close()
    assert str(error.args[-1]) in caplog.text
    assert [list(entries(path, pytest.fail)) for path in files_of(tmp_path, pytest.fail)] == [SAID[:2], SAID]
