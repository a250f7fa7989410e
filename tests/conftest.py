"""One setting for all property tests: in CI the same examples each time, elsewhere new ones; nothing is timed.

And the handlers of servers in tests that held the event loop for longer than the program's log allows are told at the end of a run. They
fail no test, for the machine may be busy; what work grows by is counted in tests/hostile.
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.samples import times

gc.set_threshold(50_000, 20, 1000)  # as our programs do: else every second is a pause, which no handler is to blame for
settings.register_profile("pumice", deadline=None, max_examples=times(25), derandomize=bool(os.environ.get("CI")), print_blob=True)
settings.load_profile("pumice")

HELD = "held the event loop"


class Noted(logging.Handler):
    def __init__(self, test: pytest.Item) -> None:
        super().__init__()
        self._test = test

    def emit(self, record: logging.LogRecord) -> None:
        self._test.user_properties.append((HELD, record.getMessage()))


@pytest.fixture(autouse=True)
def _watchdog(request: pytest.FixtureRequest) -> Iterator[None]:
    noted, log = Noted(request.node), logging.getLogger("pumice.http.watchdog")
    log.addHandler(noted)
    yield
    log.removeHandler(noted)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        for name, told in report.user_properties if report.when == "call" else ():
            if name == HELD and "test_watchdog.py" not in report.nodeid:
                terminalreporter.write_line(f"{report.nodeid}: {told}")
