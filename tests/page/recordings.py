"""A recording of ten days: three teams of whom each has its hours; and one of the last hours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from pumice.api.meta import Wire
from pumice.api.structs import encode
from pumice.api.times import instant, rfc3339
from pumice.inputs.recording.entry_format import VERSION, Begin, Entry, Put, Removed, Whole
from pumice.inputs.recording.file_format import RecordingFile
from pumice.testing.builders import pod, podgroup, queue

BEGIN = instant("2026-10-05T00:00:00Z")
HOUR_S = 3600.0
USERS = {"research": ("ann", "bo"), "vision": ("cy",), "prod": ("deploy",)}


def ten_days(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    file = RecordingFile(folder / "recording-00000001.pumice")
    file.write(sorted(_entries(), key=lambda entry: entry.at))
    file.close()


def last_hours(folder: Path, now: float) -> None:
    """Three hours up to now: after one of them a job of eight GPUs begins, which ends after two."""
    folder.mkdir(parents=True, exist_ok=True)
    file = RecordingFile(folder / "recording-00000001.pumice")
    begin = now - 3 * HOUR_S
    head = [Begin(begin, VERSION, 0, ["volcano"], "default", False, 0.0, []), _put(begin, queue("research").build()), Whole(begin)]
    job = list(_job("train", "research", "ann", begin + HOUR_S - 600.0, HOUR_S + 600.0))
    file.write([*head, *job, _put(now, queue("research").build())])
    file.close()


def _entries() -> Iterator[Entry]:
    yield Begin(BEGIN, VERSION, 0, ["volcano"], "default", False, 0.0, [])
    for name in USERS:
        yield _put(BEGIN, queue(name).build())
    yield Whole(BEGIN)
    for day in range(10):
        for at, (team, users) in enumerate(USERS.items()):
            begin = BEGIN + day * 24 * HOUR_S + (8 + 2 * at) * HOUR_S
            for number in range(1 + (day + at) % 3):
                yield from _job(f"{team}-{day}-{number}", team, users[number % len(users)], begin, (6 + number) * HOUR_S)


def _job(name: str, team: str, user: str, begin: float, seconds: float) -> Iterator[Entry]:
    created = rfc3339(begin)
    made = podgroup(name).queue(team).created(created).annotation("pumice.io/user", user)
    yield _put(begin, made.build())
    waits = pod(f"{name}-0").cpu(8).memory("64Gi").gpu(8).gang(name).created(created)
    yield _put(begin, waits.build())
    yield _put(begin + 600.0, waits.on("gpu-0").build())
    yield Removed(begin + seconds, "Pod", f"default/{name}-0")


def _put(at: float, made: tuple[str, Wire]) -> Put:
    kind, obj = made
    return Put(at, kind, msgspec.Raw(encode(obj)))
