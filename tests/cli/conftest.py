"""One embedded server for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apiserver.server_process import in_thread, kubeconfig_of
from tests.cli.terminal import Terminal


@pytest.fixture(scope="module")
def pumice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with in_thread() as running:
        yield Terminal(running, kubeconfig_of(running, tmp_path_factory.mktemp("cli")))
