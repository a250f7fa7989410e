"""What is kept of the last minutes, and that it is bounded."""

from __future__ import annotations

import pytest

from pumice.page import sent_rows
from pumice.page.sent_rows import LastMinutes, PastChange

ROWS = [{"nodes": {"a": b"1"}}, {"nodes": {"b": b"2"}}, {"nodes": {"a": b"3", "b": None}}, {"jobs": {"j": b"4"}}]


def kept(found: LastMinutes) -> tuple[dict[str, dict[str, bytes | None]], list[int]]:
    return {kind: dict(rows) for kind, rows in found.first.rows.items() if rows}, [change.number for change in found.changes]


def test_what_is_too_old_becomes_part_of_the_state() -> None:
    now_s = 0.0
    found = LastMinutes(lambda: now_s)
    seen = []
    for number, rows in enumerate(ROWS, 1):
        now_s += 0.6 * sent_rows.KEPT_S
        found.note(PastChange(number, now_s, 0, rows, []))
        seen.append(kept(found))
    assert seen == [
        ({"nodes": {"a": b"1"}}, []),
        ({"nodes": {"a": b"1"}}, [2]),
        ({"nodes": {"a": b"1"}}, [2, 3]),
        ({"nodes": {"a": b"1", "b": b"2"}}, [3, 4]),
    ]
    assert (found.first.number, found.first.at) == (2, 1.2 * sent_rows.KEPT_S)
    now_s *= 10
    found.note(PastChange(5, now_s, 0, {}, []))
    assert kept(found) == ({"nodes": {"a": b"3"}, "jobs": {"j": b"4"}}, [5])


def test_no_more_bytes_are_kept_than_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sent_rows, "KEPT_BYTES", 10)
    found = LastMinutes(lambda: 0.0)
    for number in range(1, 6):
        found.note(PastChange(number, 0.0, 0, {"nodes": {"n": b"row"}}, [b"c"]))
    assert kept(found) == ({"nodes": {"n": b"row"}}, [4, 5])
