"""One API server on a thread, and a connection to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apiserver.server_process import Running, in_thread
from tests.apiserver.wire import Wire


@pytest.fixture
def running() -> Iterator[Running]:
    with in_thread(plain=True) as server:
        yield server


@pytest.fixture
def wire(running: Running) -> Iterator[Wire]:
    with Wire(running) as connection:
        yield connection
