"""What can never run is told to whoever admits it: at once or not at all, and the state is afterwards as it was."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from pumice.http.messages import Request
from pumice.live.scheduler import background_answers
from pumice.live.scheduler.background_answers import PATH, FitQuestions
from tests.live.memory import MemoryServer
from tests.live.stories import scheduling, server
from tests.live.virtual import run


def vcjob(replicas: int = 1, cpu: float = 1, queue: str = "default", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
    task = {"name": "w", "replicas": replicas, "template": {"spec": {"containers": [container], **spec}}}
    body = {"schedulerName": "volcano", "queue": queue, "minAvailable": replicas, "tasks": [task]}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default", "uid": "u"},
        "spec": body,
    }


def api() -> MemoryServer:
    made = server("a", "b", cpu=4)
    made.queue("small", capability={"cpu": "2"})
    return made


def completed_by_a_server() -> dict[str, Any]:
    """A Kubernetes Job, whose pods are known by the uid that it got."""
    mine = {"batch.kubernetes.io/controller-uid": "u"}
    template = {"metadata": {"labels": mine}, "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    spec = {"parallelism": 2, "completions": 3, "selector": {"matchLabels": mine}, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "k", "namespace": "default", "uid": "u"}, "spec": spec}


CLAIM = [{"name": "data", "persistentVolumeClaim": {"claimName": "later"}}]


@pytest.mark.parametrize(
    ("submitted", "message"),
    [
        (vcjob(2, 4), ""),
        (vcjob(1, 6), "job j can never run here: it asks for 6 cpu on one node, and the largest, a, has 4 in all (2 short)"),
        (
            vcjob(3, 2.6),
            "job j can never run here: its 3 pods start together, and even empty nodes would hold only 2 (1 short); a gang of 2 would fit",
        ),
        (vcjob(1, 3, "small"), "job j can never run here: it must start with 3 cpu, and queue small may hold 2 at most (1 short)"),
        (vcjob(nodeSelector={"disk": "ssd"}), "job j can never run here: no node that it may use matches its node selector disk=ssd"),
        (vcjob(volumes=CLAIM), ""),
        (vcjob(10**9, 6), ""),
        (completed_by_a_server(), ""),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}, ""),
        ({"kind": "Job"}, ""),
    ],
)
def test_one_line_names_the_bound_and_the_largest_shape_that_would_fit(submitted: dict[str, Any], message: str) -> None:
    async def story() -> None:
        async with scheduling(api()) as scheduler:
            await scheduler.synced.wait()
            asked = await FitQuestions(scheduler).answer(Request("POST", PATH, {}, msgspec.json.encode(submitted)))
            assert (asked.status, asked.body.decode().strip()) == (200, message)
            assert FitQuestions(scheduler).glance(submitted) == message
            assert not scheduler.cluster.tasks and not scheduler.cluster.jobs
            scheduler.cluster.check()

    run(story())


def test_questions_have_a_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_answers, "FIT_PART", 1e-9)

    async def story() -> None:
        async with scheduling(api()) as scheduler:
            questions = FitQuestions(scheduler)
            request = Request("POST", PATH, {}, msgspec.json.encode(vcjob(1, 6)))
            assert (await questions.answer(request)).status == 503, "nothing has been read yet"
            await scheduler.synced.wait()
            assert (await questions.answer(Request("POST", PATH, {}, b"no JSON"))).status == 400
            both = await asyncio.gather(questions.answer(request), questions.answer(request))
            assert [each.status for each in both] == [200, 503]
            assert questions.glance(vcjob(1, 6)) == ""

    run(story())


def test_nobody_waits_for_a_cycle() -> None:
    async def story() -> None:
        async with scheduling(api()) as scheduler:
            await scheduler.synced.wait()
            async with scheduler._state.alone():
                assert FitQuestions(scheduler).glance(vcjob(1, 6)) == ""

    run(story())
