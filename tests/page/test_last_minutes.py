"""What is kept of the last minutes and of the last hour, and that it is bounded."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from pumice.page import last_minutes
from pumice.page.last_minutes import LastMinutes, PastChange
from pumice.page.rows import QueueRow
from pumice.page.sent_rows import HISTORY_KEPT, HISTORY_S, History

ROWS = [{"nodes": {"a": b"1"}}, {"nodes": {"b": b"2"}}, {"nodes": {"a": b"3", "b": None}}, {"jobs": {"j": b"4"}}]


def kept(found: LastMinutes) -> tuple[dict[str, dict[str, bytes | None]], list[int]]:
    return {kind: dict(rows) for kind, rows in found.first.rows.items() if rows}, [change.number for change in found.changes]


def test_what_is_too_old_becomes_part_of_the_state() -> None:
    now_s = 0.0
    found = LastMinutes(lambda: now_s)
    seen = []
    for number, rows in enumerate(ROWS, 1):
        now_s += 0.6 * last_minutes.KEPT_S
        found.note(PastChange(number, now_s, 0, rows, []))
        seen.append(kept(found))
    assert seen == [
        ({"nodes": {"a": b"1"}}, []),
        ({"nodes": {"a": b"1"}}, [2]),
        ({"nodes": {"a": b"1"}}, [2, 3]),
        ({"nodes": {"a": b"1", "b": b"2"}}, [3, 4]),
    ]
    assert (found.first.number, found.first.at) == (2, 1.2 * last_minutes.KEPT_S)
    now_s *= 10
    found.note(PastChange(5, now_s, 0, {}, []))
    assert kept(found) == ({"nodes": {"a": b"3"}, "jobs": {"j": b"4"}}, [5])


def test_no_more_bytes_are_kept_than_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_minutes, "KEPT_BYTES", 10)
    found = LastMinutes(lambda: 0.0)
    for number in range(1, 6):
        found.note(PastChange(number, 0.0, 0, {"nodes": {"n": b"row"}}, [b"c"]))
    assert kept(found) == ({"nodes": {"n": b"row"}}, [4, 5])


def holding(gpus: float) -> dict[str, bytes]:
    row = QueueRow(parent="", weight=1, state="Open", held={"gpu": gpus}, asked={}, deserved={}, guarantee={}, limit={}, jobs=1, waiting=0)
    return {"q": msgspec.json.encode(row)}


def points(history: History) -> list[tuple[float, float]]:
    return [(point.at, point.held["q"]["gpu"]) for point in history.points]


def test_what_queues_hold_is_noted_when_it_changes_however_soon() -> None:
    history = History()
    for at, gpus in ((0.0, 0.0), (2.0, 32.0), (2.5, 32.0), (99.0, 8.0)):
        history.note(at, holding(gpus))
    assert points(history) == [(0.0, 0.0), (2.0, 32.0), (99.0, 8.0)]


def test_of_more_than_an_hour_ago_only_what_was_still_held_then_is_kept() -> None:
    history = History()
    for at, gpus in ((0.0, 1.0), (10.0, 2.0), (20.0, 3.0), (HISTORY_S + 15.0, 4.0)):
        history.note(at, holding(gpus))
    assert points(history) == [(10.0, 2.0), (20.0, 3.0), (HISTORY_S + 15.0, 4.0)]


def test_however_often_it_changes_the_hour_is_kept_in_equal_parts() -> None:
    history = History()
    for second in range(2 * int(HISTORY_S)):
        history.note(float(second), holding(float(second)))
    times = [at for at, _ in points(history)]
    assert len(times) == HISTORY_KEPT
    assert times[1] <= times[-1] - HISTORY_S + 120
    assert max(after - before for before, after in pairwise(times)) <= 120
