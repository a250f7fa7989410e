"""What the page can be asked, one question at a time: a job's pods, why, what would help, when it starts; and what lint finds.

Each is answered between two cycles, where cycles run, and leaves no trace. What could take long is bounded: a search for what would help
ends after a second with what it found, the rules of lint let cycles pass between them, and only small clusters are rolled forward.
"""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Callable
from functools import partial

import msgspec

from pumice.answers import why
from pumice.answers.eta import eta
from pumice.answers.lint.finding import Finding
from pumice.answers.lint.lint import RULES, Rule, worst_first
from pumice.answers.text import what_then
from pumice.answers.whatif import whatif
from pumice.api.errors import InputError
from pumice.api.times import rfc3339
from pumice.http.listener import Handler
from pumice.http.messages import JSON, Request, Response
from pumice.live.scheduler.loop import Scheduler
from pumice.page.files import UNCACHED, packed
from pumice.page.recorder import Recorder
from pumice.page.rows import LOOSE, Amounting, pod_rows
from pumice.scheduler.framework.world import NOWHERE
from pumice.scheduler.model.cluster import Cluster

LONGEST_SEARCH_S = 1.0
MOST_ROLLED = 500  #: pods and nodes of a cluster whose future is played here, which takes a second then
_encode = msgspec.json.encode


class PageAnswers:
    """Answers to what a reader asks by a click."""

    def __init__(self, scheduler: Scheduler, recorder: Recorder) -> None:
        self._scheduler = scheduler
        self._recorder = recorder
        self._one_at_a_time = asyncio.Lock()

    @property
    def routes(self) -> dict[str, Handler]:
        return {
            "/api/job": self._job,
            "/api/why": partial(self._about, self._why),
            "/api/whatif": partial(self._about, self._whatif),
            "/api/eta": partial(self._about, self._eta),
            "/api/lint": self._lint,
        }

    async def _job(self, request: Request) -> Response:
        pods = await self._scheduler.look(partial(self._pods, request.query.get("name", "")))
        return packed(request, pods, gzip.compress(pods, 3), JSON, UNCACHED)

    async def _about(self, answer: Callable[[str, Cluster], bytes], request: Request) -> Response:
        async with self._one_at_a_time:
            try:
                found = await self._scheduler.look(partial(answer, request.query.get("subject", "")))
            except InputError as error:
                return Response.json({"error": str(error)}, 404, headers=UNCACHED)
        return Response(found, content_type=JSON, headers=UNCACHED)

    async def _lint(self, request: Request) -> Response:
        findings: list[Finding] = []
        async with self._one_at_a_time:
            for rule in RULES:
                findings += await self._scheduler.look(partial(self._judged, rule))
        return Response.json(worst_first(findings), headers=UNCACHED)

    # -- between two cycles

    def _pods(self, key: str, cluster: Cluster) -> bytes:
        if key.startswith(LOOSE):
            task = cluster.tasks.get(key.removeprefix(LOOSE))
            tasks = [task] if task is not None else []
        else:
            job = cluster.jobs.get(key)
            tasks = list(job.tasks.values()) if job is not None else []
        return _encode(pod_rows(iter(tasks), self._recorder.why, Amounting(cluster)))

    def _why(self, subject: str, cluster: Cluster) -> bytes:
        """With the remedy and evictions in words as well."""
        answer = why(cluster, self._scheduler.policy, self._now(), subject)
        remedy = [str(change) for change in answer.headline.remedy] if answer.headline is not None else []
        evictions = [f"{each.pod} at {rfc3339(each.at)}, because of {each.words}" for each in answer.evictions]
        return _encode({"line": answer.line, "remedy": remedy, "evictions": evictions, "answer": answer})

    def _whatif(self, subject: str, cluster: Cluster) -> bytes:
        until_s = time.monotonic() + LONGEST_SEARCH_S
        found = whatif(cluster, self._scheduler.policy, self._now(), subject, goes_on=lambda: time.monotonic() < until_s)
        options = [{"change": each.change, "then": what_then(each), "others": str(each.others)} for each in found.options]
        return _encode({"options": options, "whole": found.whole})

    def _eta(self, subject: str, cluster: Cluster) -> bytes:
        if len(cluster.tasks) + len(cluster.nodes) > MOST_ROLLED:
            return _encode({"error": "The cluster is too large to be played forward here; `pumice eta` does it beside the scheduler."})
        return _encode(eta(cluster, self._scheduler.policy, self._now(), subject))

    def _judged(self, rule: Rule, cluster: Cluster) -> list[Finding]:
        return list(rule(cluster, self._scheduler.policy, self._now(), NOWHERE))

    def _now(self) -> float:
        return self._scheduler.clock.now()
