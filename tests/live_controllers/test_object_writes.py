"""A write of a controller that fails leaves nothing for the collector of garbage, which comes rarely."""

from __future__ import annotations

import gc

import pytest

from pumice.api.kinds import CONFIG_MAPS, Kind
from pumice.client.event_recorder import EventRecorder
from pumice.client.failures import ApiError
from pumice.controllers.writes import Create
from pumice.live.controllers.object_writes import ObjectWrites
from pumice.live.object_cache import ObjectCache
from tests.live.memory import MemoryServer
from tests.live.virtual import VirtualClock, run


class Full(ApiError):
    """A quota is used up."""


def refuse(verb: str, resource: Kind, name: str) -> None:
    raise Full(403, "Forbidden", "exceeded quota")


async def story() -> None:
    api = MemoryServer()
    api.before_write = refuse
    writes = ObjectWrites(api, ObjectCache(), EventRecorder(api, "test"), VirtualClock())
    wanted = {"apiVersion": CONFIG_MAPS.api_version, "kind": CONFIG_MAPS.kind, "metadata": {"name": "c", "namespace": "default"}}
    with pytest.raises(Full):
        await writes.apply([Create(wanted), Create(wanted)])


def test_failures_are_gone_once_they_were_handled() -> None:
    gc.collect()
    gc.disable()
    try:
        run(story())
        assert not [each for each in gc.get_objects() if isinstance(each, Full)]
    finally:
        gc.enable()
