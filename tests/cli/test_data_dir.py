"""The directory of a cluster belongs to one process, whoever begins and ends at the same moment."""

from __future__ import annotations

import os
import threading
import traceback
from pathlib import Path

import pytest

from pumice.api.errors import InputError
from pumice.cli.data_dir import DataDir


@pytest.fixture(autouse=True)
def _own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))


def test_of_many_that_begin_at_once_one_has_it_at_a_time(tmp_path: Path) -> None:
    holders, most, failures = 0, 0, list[str]()
    counting = threading.Lock()
    rounds = 30

    def begin_and_end() -> None:
        nonlocal holders, most
        for _ in range(rounds):
            place = DataDir(tmp_path / "state")
            try:
                place.claim()
            except InputError:
                continue
            except Exception:
                failures.append(traceback.format_exc())
                return
            with counting:
                holders += 1
                most = max(most, holders)
            with counting:
                holders -= 1
            place.release()

    threads = [threading.Thread(target=begin_and_end) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    assert most == 1
    DataDir(tmp_path / "state").claim()


def test_a_lock_on_what_an_ending_cluster_has_removed_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state, opened = tmp_path / "state", os.open
    ending = [True]

    def open_before_the_end(path: Path, *how: int) -> int:
        descriptor = opened(path, *how)
        if ending and Path(path).name == "pid":
            ending.clear()
            Path(path).unlink()
        return descriptor

    first, second = DataDir(state), DataDir(state)
    monkeypatch.setattr(os, "open", open_before_the_end)
    first.claim()
    with pytest.raises(InputError, match="runs here already"):
        second.claim()
    first.release()
    second.claim()
    second.release()


@pytest.mark.parametrize("left", [b"", b"nonsense", b"99999999"])
def test_what_a_killed_process_left_half_written_does_no_harm(left: bytes, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "pid").write_bytes(left)
    place = DataDir(state)
    assert place.holder() is None
    place.claim()
    assert DataDir(state).holder() == os.getpid()
    place.release()


def test_a_directory_that_an_ending_cluster_removes_while_it_is_made_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, removed = os.mkdir, {"state", "clusters"}

    def make_in_vain_first(path: Path, *how: int) -> None:
        if Path(path).name in removed:
            removed.remove(Path(path).name)
            raise FileExistsError(17, "File exists", str(path))
        made(path, *how)

    monkeypatch.setattr(os, "mkdir", make_in_vain_first)
    place = DataDir(tmp_path / "state")
    place.claim()
    assert not removed and (tmp_path / "run" / "pumice" / "clusters" / "state").is_symlink()
    place.release()


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    with pytest.raises(InputError, match="no cluster can be kept here: File exists"):
        DataDir(tmp_path / "state").claim()
