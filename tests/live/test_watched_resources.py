"""What a scheduler waits for before its first cycle."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from pumice.api.kinds import CSI_DRIVERS, HYPER_NODES, NODES, NUMA_TOPOLOGIES, Kind
from pumice.client.reflector import Reflector
from pumice.live.scheduler.options import Options
from pumice.live.scheduler.watched_resources import all_synced, reflectors, sources
from pumice.scheduler.config import KUBE_DEFAULT, config_text, read_configurations
from pumice.scheduler.framework.feature_gates import release
from pumice.scheduler.registry import PLUGINS
from tests.live.memory import MemoryServer
from tests.live.stories import policy

NUMA_AWARE = "actions: allocate\ntiers:\n- plugins:\n  - name: numa-aware\n"


def all_but(missing: Kind) -> list[Reflector[Any]]:
    """Everything else has been read."""
    following = reflectors(sources(Options(), policy()), MemoryServer(), lambda kind, change: None)
    for reflector in following:
        if reflector.scope.resource != missing:
            reflector.synced.set()
    return following


async def waits(missing: Kind, conf: str) -> bool:
    """Whether the first cycle waits for this one."""
    waiting = asyncio.create_task(all_synced(all_but(missing), policy(conf), 60.0))
    await asyncio.wait([waiting], timeout=0.05)
    ended = waiting.done()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    return not ended


@pytest.mark.parametrize(
    ("missing", "conf", "waited_for"),
    [
        (NODES, NUMA_AWARE.replace("numa-aware", "gang"), True),
        (HYPER_NODES, NUMA_AWARE.replace("numa-aware", "gang"), True),
        (NUMA_TOPOLOGIES, NUMA_AWARE.replace("numa-aware", "gang"), False),
        (NUMA_TOPOLOGIES, NUMA_AWARE, True),
    ],
)
def test_what_one_plugin_alone_reads_is_waited_for_only_where_it_is_used(missing: Kind, conf: str, waited_for: bool) -> None:
    assert asyncio.run(waits(missing, conf)) is waited_for


def test_what_cannot_be_read_is_done_without_after_a_time(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(all_synced(all_but(HYPER_NODES), policy(), 0.01))
    assert "hypernodes cannot be read and are left out for now" in caplog.text


@pytest.mark.parametrize(("minor", "with_capacity"), [(36, True), (36, False), (37, True), (37, False)])
def test_drivers_are_read_for_their_capacity_or_for_the_gate_of_the_release(minor: int, with_capacity: bool) -> None:
    """Without the option, a driver that publishes its capacity must not count as one without any: nobody reads what it publishes."""
    chosen, _ = read_configurations([config_text(KUBE_DEFAULT, "test")], PLUGINS, release=release(minor))
    found = {each.resource: each for each in sources(Options(storage_capacity=with_capacity), chosen)}
    assert (CSI_DRIVERS in found) is (with_capacity or minor == 37)
    if CSI_DRIVERS in found:
        raw = msgspec.Raw(b'{"metadata": {"name": "d"}, "spec": {"storageCapacity": true, "preventPodSchedulingIfMissing": true}}')
        read = found[CSI_DRIVERS].decode(raw).spec
        assert read.prevent_pod_scheduling_if_missing and read.storage_capacity is (True if with_capacity else None)
