"""Who asks at `/debug/pod` is told all that is remembered of a pod, whoever remembers it."""

from __future__ import annotations

import json
from typing import Any

from pumice.http.messages import Request
from pumice.live.scheduler.debug_pod import POD_PATH, pod_memory
from pumice.live.scheduler.loop import Scheduler
from tests.live.faults import Faults, Faulty, Plan
from tests.live.stories import scheduling, server, until
from tests.live.virtual import run


async def asked(scheduler: Scheduler, name: str, *, local: bool = True) -> tuple[int, Any]:
    answer = await pod_memory(scheduler, Request("GET", f"{POD_PATH}?name={name}", {}, local=local))
    return answer.status, json.loads(answer.body) if answer.status == 200 else answer.body.decode()


def test_a_bind_that_the_watch_has_not_shown_is_told_with_its_deadline() -> None:
    async def story() -> None:
        api = server("a")
        api.gang("work", pods=1)
        async with scheduling(Faulty(api, Faults(Plan(streams={"pods": ["silence"]})))) as scheduler:
            await until(lambda: bool(api.placed()))
            name = next(iter(api.placed()))
            await until(lambda: scheduler.metrics.binds.value("bound") == 1)
            code, found = await asked(scheduler, f"default/{name}")
            assert (code, found["state"]["status"], found["state"]["node_name"]) == (200, "Binding", "a")
            assert found["record"]["granted"] == "Binding" and found["record"]["until"] > scheduler.clock.now()
            assert (found["record"]["condition"], found["record"]["read"], found["pauses"]) == (None, None, {})

    run(story())


def test_a_bind_whose_answer_is_late_is_told_as_a_call_under_way() -> None:
    async def story() -> None:
        api = server("a")
        api.gang("work", pods=1)
        async with scheduling(Faulty(api, Faults(Plan({"bind": ["late answer"]})))) as scheduler:
            await until(lambda: bool(api.placed()))
            found = (await asked(scheduler, "default/work-0"))[1]
            assert (found["calls"], found["record"]["granted"]) == ({"bind": "under way"}, None)
            await until(lambda: scheduler.metrics.binds.value("bound") == 1)
            assert (await asked(scheduler, "default/work-0"))[1]["calls"] == {}

    run(story())


def test_of_a_pod_that_waits_is_told_what_was_written_and_what_was_refused() -> None:
    async def story() -> None:
        api = server("a")
        api.gang("large", pods=9)
        async with scheduling(Faulty(api, Faults(Plan({"status of pods": ["403"]})))) as scheduler:
            await until(lambda: scheduler.metrics.writes.value("Pod", "failed") == 1)
            found = [(await asked(scheduler, key))[1] for key in sorted(scheduler.cluster.tasks)]
            assert {each["state"]["status"] for each in found} == {"Pending"}
            assert [each["pauses"].keys() for each in found if each["record"]["condition"] is None] == [{"Pod"}]
            assert "Unschedulable" in {each["record"]["condition"]["reason"] for each in found if each["record"]["condition"]}

    run(story())


def test_nobody_else_is_told_and_nothing_of_pods_that_are_not_there() -> None:
    async def story() -> None:
        async with scheduling(server("a")) as scheduler:
            assert await asked(scheduler, "default/none") == (404, "there is no pod 'default/none'; ask with ?name=NAMESPACE/NAME")
            assert (await asked(scheduler, "default/none", local=False))[0] == 403

    run(story())
