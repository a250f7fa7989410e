"""What the log tells at its usual level: once, what somebody can act upon. What is ending, and what mends itself, is not told."""

from __future__ import annotations

import asyncio
import logging

import pytest

from pumice.api.kinds import HYPER_NODES, NAMESPACES, POD_GROUPS, PODS, RESOURCE_CLAIMS, Kind
from pumice.client.failures import ApiError
from pumice.live.fault_log import ALIKE_LOGGED, ALIKE_WINDOW_S, FirstOfMany
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from pumice.scheduler.config.volcano_conf import DEFAULT, read_policy
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.model import Task
from pumice.scheduler.registry import PLUGINS
from tests.live.memory import MemoryServer
from tests.live.stories import running, scheduling, server, until
from tests.live.virtual import VirtualClock, run

ENDING = 'pods "train-0" is forbidden: unable to create new content in namespace default because it is being terminated'


def keep_raw(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.INFO and record.name.startswith("pumice")]


def refused(verb: str, resource: Kind, *errors: ApiError, pods: int = 1, until_s: float = 60.0) -> None:
    """A gang is scheduled, and each of these writes is answered with the next of these errors, and with the last again and again."""

    async def story() -> None:
        api, left = server("a"), list(errors)

        def before(asked: str, of: Kind, name: str) -> None:
            if (asked, of) == (verb, resource) and left:
                raise left.pop(0) if len(left) > 1 else left[0]

        api.gang("train", pods=pods, cpu=0.1)
        api.before_write = before
        async with scheduling(api):
            await asyncio.sleep(until_s)

    run(story())


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (ApiError(403, "Forbidden", ENDING), 0),
        (ApiError(404, "NotFound", 'pods "train-0" not found'), 0),
        (ApiError(409, "Conflict", "pod train-0 is being deleted, cannot be assigned to a host"), 0),
        (ApiError(409, "Conflict", "pod train-0 is already assigned to node b"), 5),
        (ApiError(403, "Forbidden", "the role lacks it"), 5),
    ],
)
def test_of_binds_those_are_told_that_somebody_can_mend(error: ApiError, counts: int, caplog: pytest.LogCaptureFixture) -> None:
    refused("create", PODS, error, pods=8)
    warned = [message for message in keep_raw(caplog) if "was not bound" in message]
    assert len(warned) == counts
    assert (
        [message.endswith("(others like it are told with -v=4 only, for 10 minutes)") for message in warned] == [False] * 4 + [True]
        if (counts)
        else True
    )


@pytest.mark.parametrize("known", [True, False], ids=["that is seen to end", "that is not let be seen"])
def test_no_bind_is_tried_again_and_again_in_a_namespace(known: bool, caplog: pytest.LogCaptureFixture) -> None:
    """The namespace ends while its pods wait for a node; the pods themselves go 40 s later. One line says how many pods it is about."""

    async def story() -> list[str]:
        api, tried = server(), []

        def before(verb: str, resource: Kind, name: str) -> None:
            if (verb, resource) == ("create", PODS):
                tried.append(name)
                raise ApiError(403, "Forbidden", ENDING)

        api.before_write = before
        if known:
            api.put(NAMESPACES, "default")
        else:
            api.missing.add(NAMESPACES.plural)
        api.gang("train", pods=2, cpu=1)
        async with scheduling(api) as scheduler:
            await asyncio.sleep(2)
            if known:
                api.put(NAMESPACES, "default", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
            api.node("a")
            await asyncio.sleep(40)
            for number in range(2):
                api.remove(PODS, f"train-{number}")
            await until(lambda: not scheduler.cluster.tasks)
            scheduler.cluster.check()
        return tried

    caplog.set_level(logging.INFO)
    tried = run(story())
    assert len(tried) == (0 if known else 2 * 3)  # otherwise each once in 15 s
    line = "namespace default is being deleted: 2 pods that wait there are placed no more"
    assert [message for message in keep_raw(caplog) if "being deleted" in message] == ([line] if known else [])


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ApiError(404, "NotFound", "podgroups train not found"), ""),
        (ApiError(409, "Conflict", "the object has been modified"), ""),
        (ApiError(500, "InternalError", "failed calling webhook"), "PodGroup default/train was not written: 500 InternalError"),
        (ApiError(422, "Invalid", "a field is wrong"), "PodGroup default/train was not written, and is tried again with pauses"),
    ],
)
def test_of_writes_those_are_told_that_somebody_can_mend(error: ApiError, words: str, caplog: pytest.LogCaptureFixture) -> None:
    refused("update", POD_GROUPS, error)
    assert [message.startswith(words) for message in keep_raw(caplog) if "was not written" in message][:1] == ([True] if words else [])


def test_many_warnings_that_are_alike_are_told_a_few_times(caplog: pytest.LogCaptureFixture) -> None:
    few = FirstOfMany(logging.getLogger("pumice.test"))
    for number in range(20):
        few.warning("one kind", 100.0 + number, "pod %d", number)
        few.warning("another", 100.0, "queue")
    assert len(keep_raw(caplog)) == 2 * ALIKE_LOGGED and keep_raw(caplog)[0] == "pod 0"
    few.warning("one kind", 101.0 + ALIKE_WINDOW_S, "pod again")
    assert keep_raw(caplog)[-1] == "pod again"


class NotReady(MemoryServer):
    """Its HyperNodes' CRD is only just installed, its ResourceClaims may not be read."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals = 2

    def pages(self, scope, **options):  # type: ignore[no-untyped-def]
        if scope.resource == HYPER_NODES and self.refusals:
            self.refusals -= 1
            raise ApiError(429, "TooManyRequests", "storage is (re)initializing", 1.0)
        if scope.resource == RESOURCE_CLAIMS:
            raise ApiError(403, "Forbidden", "cannot list resourceclaims")
        return super().pages(scope, **options)


def test_a_start_beside_new_definitions_and_a_narrow_role_is_told_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        api = NotReady()
        api.node("a")
        api.queue()
        api.gang("train", 1)
        async with scheduling(api):
            await until(lambda: api.placed() == {"train-0": "a"})

    caplog.set_level(logging.INFO)
    run(story())
    assert keep_raw(caplog)[-1] == "our role does not let these be read, and we do without: resourceclaims"
    assert all(record.levelno < logging.WARNING for record in caplog.records)


class ByName(Plugin):
    """Fails with a text of its own for each pod."""

    name = "by-name"

    def filter_node(self, task: Task, node: object) -> None:
        raise KeyError(task.name)


def test_a_plugin_that_fails_for_each_pod_in_other_words_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        api = server("a")
        for number in range(3):
            api.gang(f"train-{number}", pods=2, cpu=0.1)
        conf = DEFAULT.replace("- name: gang", "- name: gang\n  - name: by-name")
        policy = read_policy(conf, {**PLUGINS, "by-name": ByName})[0]
        async with running(Scheduler(api, policy, Options(), VirtualClock())):
            await asyncio.sleep(60)

    run(story())
    assert len([message for message in keep_raw(caplog) if "by-name failed in filter_node" in message]) == 1
