"""Webhooks under roles that do not let everything be read: they do without, quietly, and what can be followed is not read again."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pumice.api import kinds
from pumice.api.kinds import NAMESPACES
from pumice.client.failures import ApiError
from pumice.client.transport import ListScope, Page
from pumice.controllers.admission import Settings
from pumice.controllers.admission.webhooks import HOOKS
from pumice.http.messages import Request
from pumice.live.cache_sync import synced
from pumice.live.webhooks.admission_answers import AdmissionAnswers
from tests.live.memory import MemoryServer
from tests.live.virtual import run as virtual
from tests.webhooks.calling import review

HOOK = HOOKS["/queues/mutate"]
QUEUE = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}, "spec": {"weight": 1}}


class NoNamespaces(MemoryServer):
    """As a role without them shows it; `listed` counts lists by plural."""

    def __init__(self) -> None:
        super().__init__()
        self.listed: dict[str, int] = {}

    async def pages(self, scope: ListScope, *, limit: int = 500, not_older: int = 0) -> AsyncIterator[Page]:
        self.listed[scope.resource.plural] = self.listed.get(scope.resource.plural, 0) + 1
        if scope.resource == NAMESPACES:
            raise ApiError(403, "Forbidden", "cannot list namespaces")
        async for page in super().pages(scope, limit=limit, not_older=not_older):
            yield page


@asynccontextmanager
async def followed(api: MemoryServer) -> AsyncIterator[AdmissionAnswers]:
    answers = AdmissionAnswers(api, Settings())
    following = [asyncio.create_task(reflector.run()) for reflector in answers.following.values()]
    try:
        await synced((), answers.following.values(), 60.0)
        yield answers
    finally:
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)


async def allowed(answers: AdmissionAnswers, parent: str) -> bool:
    """Whether a queue may be made below another one."""
    judge = answers.routes([HOOKS["/queues/validate"]])["/queues/validate"]
    queue = {**QUEUE, "spec": {"weight": 1, "parent": parent}}
    answer = await judge(Request("POST", "/queues/validate", {}, json.dumps(review("CREATE", queue)).encode()))
    return bool(json.loads(answer.body)["response"]["allowed"])


def test_queues_are_answered_from_the_cache_where_the_role_gives_no_namespaces(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        api = NoNamespaces()
        api.queue("default")
        async with followed(api) as answers:
            handler = answers.routes([HOOK])[HOOK.path]
            asked = Request("POST", HOOK.path, {}, json.dumps(review("CREATE", QUEUE)).encode())
            await handler(asked)
            caplog.clear()
            lists = api.listed["queues"]
            for _ in range(5):
                assert (await handler(asked)).status == 200
            assert api.listed["queues"] == lists and answers.cache.get(kinds.QUEUE, "", "default") is not None
            assert not [record for record in caplog.records if record.levelno >= logging.WARNING]

    virtual(story())


def test_a_refusal_is_not_given_before_what_it_rests_on_was_read_again() -> None:
    """The queue above was made a moment ago, and the watch has not told it yet."""

    async def story() -> None:
        api = MemoryServer()
        api.queue("root")
        async with followed(api) as answers:
            pass
        assert not await allowed(answers, "team")
        api.queue("team", parent="root")
        assert await allowed(answers, "team")

    virtual(story())


class LongLists(MemoryServer):
    """Its lists take a while, in which other things happen."""

    async def pages(self, scope: ListScope, *, limit: int = 500, not_older: int = 0) -> AsyncIterator[Page]:
        async for page in super().pages(scope, limit=limit, not_older=not_older):
            yield page
            await asyncio.sleep(5)


def test_a_queue_that_is_made_while_the_queues_are_read_again_is_there_afterwards() -> None:
    async def story() -> None:
        api = LongLists()
        api.queue("root")
        async with followed(api) as answers:
            refused = asyncio.create_task(allowed(answers, "nobody"))  # before it is refused, queues are read again
            await asyncio.sleep(1)
            api.queue("team", parent="root")
            assert not await refused
            assert await allowed(answers, "team")

    virtual(story())


def test_a_replica_that_nobody_asks_keeps_no_changes() -> None:
    async def story() -> None:
        api = MemoryServer()
        async with followed(api) as answers:
            for weight in range(1, 100):
                api.queue("busy", weight=weight)
            await asyncio.sleep(1)
            assert answers.cache.get(kinds.QUEUE, "", "busy") is not None
            assert answers.cache.take() == []

    virtual(story())
