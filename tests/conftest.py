"""One setting for all property tests: in CI the same examples each time, elsewhere new ones; nothing is timed.

And the watchdog of the event loop, in every test: no handler of a server that runs in the test may hold the loop for ten times what the
program's log allows. A handler whose work grows too fast takes longer than that at once; less may be a busy machine or a pause of Python's.
"""

from __future__ import annotations

import gc
import logging
import os
import time
from collections.abc import Iterator

import pytest
from hypothesis import settings

from pumice.http.watchdog import HELD_S

gc.set_threshold(50_000, 20, 1000)  # as our programs do: else every second is a pause, which no handler is to blame for
settings.register_profile("pumice", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True)
settings.load_profile("pumice")


class Noted(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


ORDINARY_S = 0.0075  #: what `slowness` does, on a machine of 2024 that does nothing else


def slowness() -> float:
    """How many times slower than an ordinary machine this one is now: processors that others share are slower, too."""
    since = time.thread_time()
    sum(len(str(number)) for number in range(100_000))
    return max(1.0, (time.thread_time() - since) / ORDINARY_S)


@pytest.fixture(autouse=True)
def _watchdog(request: pytest.FixtureRequest) -> Iterator[None]:
    """The test fails if a handler held the event loop; the mark `holds_the_loop` says why one may."""
    noted, log = Noted(), logging.getLogger("pumice.http.watchdog")
    log.addHandler(noted)
    try:
        yield
    finally:
        log.removeHandler(noted)
    if noted.records and request.node.get_closest_marker("holds_the_loop") is None:
        allowed_ms = 10 * HELD_S * 1000 * slowness()
        held = [record.getMessage() for record in noted.records if int(record.args[-1]) > allowed_ms]  # type: ignore[index, arg-type, union-attr]
        assert not held, held
