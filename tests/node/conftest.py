"""One cluster for all stories, in the order of the file: what one installs, the next ones use."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.cluster.binaries import why_not as why_no_programs
from tests.node.control_plane import NAMES
from tests.node.namespace import Namespace
from tests.node.node_cluster import NodeCluster
from tests.node.sandbox import NODE_PROGRAMS, why_not


def refuse(reason: str) -> None:
    """These tests run because somebody asked for them by name: that they cannot is a failure."""
    if reason:
        pytest.fail(reason, pytrace=False)


@pytest.fixture(scope="session", autouse=True)
def terminated_as_by_ctrl_c() -> None:
    """So that fixtures end what they started, in order. (The sandbox would go all the same.)"""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeCluster]:
    refuse(why_not(NODE_PROGRAMS) or why_no_programs(NAMES))
    with NodeCluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def namespace(cluster: NodeCluster, request: pytest.FixtureRequest) -> Iterator[Namespace]:
    """A namespace of the test's own, in which nothing runs when the next test begins."""
    name = "-".join(request.node.name.removeprefix("test_").split("_")[:6])
    cluster.kubectl("create", "namespace", name)
    made = Namespace(cluster, name)
    try:
        yield made
    finally:
        cluster.kubectl("delete", "namespace", name, "--timeout=120s")
