"""Who submits what can never run is warned, if the scheduler says so at once; nobody is refused or kept waiting for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pumice.api.errors import InputError
from pumice.cli.webhooks import _url
from pumice.client.transport import Transport
from pumice.cluster.in_process import InProcess
from pumice.http.listener import Listener
from pumice.live.scheduler.background_answers import PATH, FitQuestions
from pumice.live.webhooks import admission_answers as answers
from tests.live.stories import scheduling
from tests.live_controllers.scene import Scene, play
from tests.webhooks.calling import prepare, review, served
from tests.webhooks.test_webhooks import job, open_queue

NODE = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}}


@asynccontextmanager
async def asked(transport: Transport) -> AsyncIterator[str]:
    """Where a scheduler can be asked."""
    async with scheduling(transport) as scheduler:
        await scheduler.synced.wait()
        async with Listener("127.0.0.1:0", {PATH: FitQuestions(scheduler).answer}) as listener:
            yield f"http://127.0.0.1:{listener.port}"


def large(**metadata: Any) -> dict[str, Any]:
    made = job()
    made["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "6"}}
    return {**made, "metadata": {**made["metadata"], **metadata}}


def test_who_submits_what_can_never_run_is_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "PATIENCE_S", 60.0)  # a busy machine answers as well as an idle one

    async def story(stage: Scene) -> None:
        prepare(stage)
        open_queue(stage, "default")
        stage.create("nodes", NODE, "")
        async with asked(InProcess(stage.store, "pumice")) as url, served(stage, scheduler=url) as call:
            response = await call("/jobs/validate", review("CREATE", large()))
            told = "job j can never run here: it must start with 6 cpu, and queue default may hold 4 at most (2 short)"
            assert (response["allowed"], response["warnings"]) == (True, [told])
            flow = [{"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "name": "f", "uid": "u", "controller": True}]
            assert "warnings" not in await call("/jobs/validate", review("CREATE", large(ownerReferences=flow)))
            assert "warnings" not in await call("/jobs/validate", review("UPDATE", large(), large()))

    play(story)


def test_a_scheduler_that_does_not_answer_warns_of_nothing() -> None:
    async def story(stage: Scene) -> None:
        prepare(stage)
        open_queue(stage, "default")
        async with served(stage, scheduler="http://127.0.0.1:9") as call:
            response = await call("/jobs/validate", review("CREATE", large()))
            assert response["allowed"] and "warnings" not in response

    play(story)


def test_what_is_no_url_is_refused() -> None:
    assert _url("http://scheduler:8080/") == "http://scheduler:8080"
    with pytest.raises(InputError, match="write one such as"):
        _url("scheduler:8080")
