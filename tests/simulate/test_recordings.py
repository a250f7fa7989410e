"""A recording as a workload: the jobs come when they came, and run as long as they ran."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pumice.api.kinds import POD_GROUPS, PODS
from pumice.api.times import rfc3339
from pumice.live.scheduler.loop import Scheduler
from pumice.simulate.inputs import Source
from tests.live.memory import MemoryServer
from tests.live.stories import PREEMPTING, server
from tests.recording.recorded import recorded
from tests.recording.week import record_week
from tests.simulate.playing import played


def come(api: MemoryServer, name: str) -> None:
    api.gang(name, pods=2)
    api.put(POD_GROUPS, name, metadata={"creationTimestamp": rfc3339(asyncio.get_running_loop().time())})


async def story(scheduler: Scheduler, api: MemoryServer) -> None:
    come(api, "long")
    await asyncio.sleep(100)
    come(api, "short")
    await asyncio.sleep(50)
    for name in ("long-0", "long-1"):
        pod = api.found(PODS, name)
        api.put(PODS, name, metadata=pod["metadata"], spec=pod["spec"], status={**pod["status"], "phase": "Succeeded"})
    await asyncio.sleep(200)
    for name in ("short-0", "short-1"):
        api.remove(PODS, name)
    await asyncio.sleep(10)
    come(api, "endless")
    await asyncio.sleep(10)


def test_arrivals_and_run_times_are_those_that_there_were(tmp_path: Path) -> None:
    api = server("a", cpu=2)
    recorded(tmp_path, api, lambda scheduler: story(scheduler, api), PREEMPTING)
    summary, jobs = played(Source("recording", str(tmp_path)), "volcano")
    told = {job["job"]: (job["submit"], job["run"]) for job in jobs}
    assert told["long"][0] == 0 and 149 < told["long"][1] <= 150
    assert told["short"][0] == 100 and 199 < told["short"][1] <= 200
    assert summary["left_out"] == {"had not ended when the recording did": 1}
    assert summary["workload"] == tmp_path.name


def test_who_was_evicted_runs_no_shorter_for_it(tmp_path: Path) -> None:
    record_week(tmp_path)
    _, jobs = played(Source("recording", str(tmp_path)), "volcano")
    assert [job["job"] for job in jobs] == ["report"]
