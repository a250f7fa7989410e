"""What was recorded is decided anew as it was, and the state is what the scheduler believed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec import convert

from pumice.answers import whatif
from pumice.api.core import Node
from pumice.inputs.recording import snapshot
from pumice.inputs.recording.entry_format import Eviction
from pumice.inputs.recording.file_format import Retention, entries, files_of
from pumice.inputs.recording.replay import Replay, decide, differences, opened
from pumice.inputs.recording.snapshot import Snapshot
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from pumice.scheduler.config.volcano_conf import DEFAULT
from pumice.scheduler.framework.past_evictions import past_evictions
from pumice.scheduler.model import Cluster
from tests.live.faults import Faults, Faulty, Plan, plans
from tests.live.situations import SITUATIONS, volume_controller
from tests.recording.recorded import a_minute, all_alike, policy_of, recorded


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def as_replayed(folder: Path) -> Replay:
    return opened(folder, pytest.fail)


@pytest.mark.parametrize("name", SITUATIONS)
def test_every_cycle_is_decided_as_it_was(name: str, tmp_path: Path) -> None:
    situation = SITUATIONS[name]
    api = situation.build()

    async def story(scheduler: Scheduler) -> None:
        making = asyncio.create_task(volume_controller(api))
        await a_minute(scheduler)
        making.cancel()

    scheduler = recorded(tmp_path, api, story, situation.conf, Options(schedulers=(situation.scheduler,)))
    replay = as_replayed(tmp_path)
    assert all_alike(replay) >= 2
    assert list(Snapshot(replay.cluster).objects()) == list(Snapshot(scheduler.cluster).objects())


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=plans)
@pytest.mark.parametrize("name", ["preempt and reclaim", "plain pods", "gates"])
def test_faults_of_the_server_are_recorded_with_all_else(name: str, plan: Plan) -> None:
    situation = SITUATIONS[name]
    with TemporaryDirectory() as folder:
        api = Faulty(situation.build(), Faults(plan))
        recorded(Path(folder), api, a_minute, situation.conf, Options(schedulers=(situation.scheduler,)))
        assert all_alike(as_replayed(Path(folder)))


@pytest.mark.parametrize(("at_once", "least"), [(2, 2), (4, 2), (1000, 4)])
@pytest.mark.parametrize("name", ["preempt and reclaim", "gangreclaim", "plain pods"])
def test_each_file_of_a_folder_can_be_read_alone(
    name: str, at_once: int, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their beginnings are copied a few pods at a time, while cycles go on."""
    monkeypatch.setattr(snapshot, "AT_ONCE", at_once)
    situation = SITUATIONS[name]
    options = Options(schedulers=(situation.scheduler,))
    scheduler = recorded(tmp_path, situation.build(), a_minute, situation.conf, options, retention=Retention(file_s=0.0))
    files = files_of(tmp_path, pytest.fail)
    assert len(files) >= least
    assert sum(all_alike(opened(file, pytest.fail)) for file in files) == all_alike(as_replayed(tmp_path))
    last = opened(files[-1], pytest.fail)
    all_alike(last)
    assert list(Snapshot(last.cluster).objects()) == list(Snapshot(scheduler.cluster).objects())


def baffled(cluster: Cluster) -> None:
    """A question that fails, though all that it did to the state was undone."""
    cluster.put("Node", convert({"metadata": {"name": "made-up"}}, Node))
    cluster.remove("Node", "made-up")
    raise LookupError


def test_what_is_only_asked_is_not_recorded(tmp_path: Path) -> None:
    """What if changes the state and puts it back."""
    situation = SITUATIONS["one is too large"]

    async def story(scheduler: Scheduler) -> None:
        for _ in range(3):
            await asyncio.sleep(5)
            answer = await scheduler.look(lambda cluster: whatif(cluster, scheduler.policy, scheduler.clock.now(), "job/large"))
            assert answer.options
        with pytest.raises(LookupError):
            await scheduler.look(baffled)

    scheduler = recorded(tmp_path, situation.build(), story, situation.conf)
    replay = as_replayed(tmp_path)
    assert all_alike(replay)
    named = [{(kind, str(item)) for kind, item in Snapshot(cluster).objects()} for cluster in (replay.cluster, scheduler.cluster)]
    assert named[0] == named[1]
    assert "made-up" not in str([[*entries(path, pytest.fail)] for path in files_of(tmp_path, pytest.fail)])


def test_a_cycle_that_decides_otherwise_is_told_pod_by_pod(tmp_path: Path) -> None:
    situation = SITUATIONS["preempt"]
    recorded(tmp_path, situation.build(), a_minute, situation.conf)
    replay = as_replayed(tmp_path)
    told = [differences(cycle, decide(replay, cycle, policy_of(DEFAULT))) for cycle in replay.cycles()]
    first = next(found for found in told if found)
    assert any(each.then.startswith("is evicted from a for default/high") for each in first)
    assert {each.now for each in first} == {"is left as it is"}


def test_what_was_evicted_is_remembered_with_the_plugins_that_permitted_it(tmp_path: Path) -> None:
    situation = SITUATIONS["preempt"]
    scheduler = recorded(tmp_path, situation.build(), a_minute, situation.conf)
    replay = as_replayed(tmp_path)
    assert all_alike(replay)
    remembered = past_evictions(replay.cluster)
    assert remembered == past_evictions(scheduler.cluster)
    assert remembered and all("gang" in each.permitted_by for each in remembered)
    assert convert(("default/p", "n", "default/j", "preempt"), Eviction).permitted_by == (), "an older recording"
