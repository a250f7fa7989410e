"""The answers to questions of the page (a job's pods, why it waits, what would help, when it starts, what lint finds, which moves would
empty nodes). And, without a question, when each waiting job is expected to start.

Questions are answered one at a time, between two cycles, where cycles run, and do not change the state. What could take long is bounded: a
search for what would help ends after a second with what it has found, cycles may run between the rules of lint, and only small clusters
are simulated forward. Plans that empty nodes are made in a process of their own.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import resource
import tempfile
import time
from collections.abc import Callable
from functools import partial
from heapq import nsmallest
from math import inf
from pathlib import Path

import msgspec

from pumice.answers import why
from pumice.answers.eta import eta
from pumice.answers.lint import RULES, Rule, worst_first
from pumice.answers.lint.finding import Finding
from pumice.answers.past_forecasts import forecast_events
from pumice.answers.subject import called
from pumice.answers.text import what_then, without_options
from pumice.answers.whatif import whatif
from pumice.api.errors import InputError
from pumice.api.times import instant, rfc3339
from pumice.cluster.known_jobs import FindJob, know_jobs
from pumice.cluster.recording.snapshot import dump
from pumice.http.listener import Handler
from pumice.http.messages import JSON, Request, Response
from pumice.live.scheduler.loop import Scheduler
from pumice.page.command import output_of
from pumice.page.files import UNCACHED, packed
from pumice.page.policy import written
from pumice.page.recorder import Recorder
from pumice.page.rows import LOOSE, Amounting, Moments, job_key, pod_rows
from pumice.page.sent_rows import Touched
from pumice.scheduler.framework.world import NOWHERE
from pumice.scheduler.model.cluster import Cluster

LONGEST_SEARCH_S = 1.0
FEWEST_LETTERS, MOST_NAMED = 3, 8  #: of names of pods that are looked for, and pods that are found
MOST_ROLLED = 500  #: pods and nodes of a cluster that is simulated forward here; this takes a second then
_encode = msgspec.json.encode


class PageAnswers:
    """Answers to the questions that a reader asks by a click."""

    def __init__(self, scheduler: Scheduler, recorder: Recorder, find_job: FindJob | None = None) -> None:
        """`find_job` looks up Volcano's Jobs, where there is an API server in this process."""
        self._scheduler = scheduler
        self._recorder = recorder
        self._find_job = find_job
        self._one_at_a_time = asyncio.Lock()

    @property
    def routes(self) -> dict[str, Handler]:
        return {
            "/api/job": self._job,
            "/api/pod": self._pod,
            "/api/pods": self._named,
            "/api/why": partial(self._about, self._why),
            "/api/whatif": partial(self._about, self._whatif),
            "/api/eta": partial(self._about, self._eta),
            "/api/lint": self._lint,
            "/api/defrag": self._defrag,
        }

    async def _job(self, request: Request) -> Response:
        pods = await self._scheduler.look(partial(self._pods, request.query.get("name", "")))
        return packed(request, pods, gzip.compress(pods, 3), JSON, UNCACHED)

    async def _pod(self, request: Request) -> Response:
        return Response(
            await self._scheduler.look(partial(self._pod_row, request.query.get("name", ""))), content_type=JSON, headers=UNCACHED
        )

    async def _named(self, request: Request) -> Response:
        """The keys of pods whose names have these letters, those first whose names begin with them."""
        letters = request.query.get("letters", "").lower()
        found = await self._scheduler.look(partial(_with_letters, letters)) if len(letters) >= FEWEST_LETTERS else []
        return Response.json(found, headers=UNCACHED)

    async def _about(self, answer: Callable[[str, Cluster], bytes], request: Request) -> Response:
        async with self._one_at_a_time:
            try:
                found = await self._scheduler.look(partial(self._knowing, answer, request.query.get("subject", "")))
            except InputError as error:
                return Response.json({"error": str(error)}, 404, headers=UNCACHED)
        return Response(found, content_type=JSON, headers=UNCACHED)

    async def _lint(self, request: Request) -> Response:
        findings: list[Finding] = []
        async with self._one_at_a_time:
            for rule in RULES:
                findings += await self._scheduler.look(partial(self._judged, rule))
        return Response.json(worst_first(findings), headers=UNCACHED)

    async def _defrag(self, request: Request) -> Response:
        """A plan that empties nodes, made in a process of its own, with what each pod that moves is and takes."""
        async with self._one_at_a_time:
            state = await self._scheduler.look(self._state)
            if not state:
                return Response.json({"error": "The cluster is too large for a plan here; `pumice defrag` makes one."}, headers=UNCACHED)
            try:
                plan = msgspec.json.decode(await answer_of("defrag", state, self._now()))
            except (OSError, RuntimeError) as error:  # TimeoutError among them
                return Response.json({"error": f"No plan was made: {error or 'it took too long'}"}, headers=UNCACHED)
            moves = [(move["pod"], step["node"], move["node"]) for step in plan["steps"] for move in step["moves"]]
            return Response.json(plan | {"moves": await self._scheduler.look(partial(_moved, moves))}, headers=UNCACHED)

    # -- between two cycles

    def _state(self, cluster: Cluster) -> bytes:
        """The state as the bytes of a file; empty if the cluster is too large."""
        return dump(cluster, written(self._scheduler.policy)) if len(cluster.tasks) + len(cluster.nodes) <= MOST_WRITTEN else b""

    def _knowing(self, answer: Callable[[str, Cluster], bytes], subject: str, cluster: Cluster) -> bytes:
        if self._find_job is not None:
            know_jobs(cluster, self._find_job)
        return answer(subject, cluster)

    def _pods(self, key: str, cluster: Cluster) -> bytes:
        if key.startswith(LOOSE):
            tasks = sorted(cluster.index(Touched).loose(key), key=lambda task: task.name)
        else:
            job = cluster.jobs.get(key)
            tasks = list(job.tasks.values()) if job is not None else []
        return _encode(pod_rows(iter(tasks), self._recorder.why, Amounting(cluster)))

    def _pod_row(self, key: str, cluster: Cluster) -> bytes:
        """The row of a pod, with the job under which it is shown; null if there is no such pod."""
        task = cluster.tasks.get(key)
        if task is None:
            return b"null"
        (row,) = pod_rows(iter([task]), self._recorder.why, Amounting(cluster))
        return _encode({"job": job_key(task), **msgspec.structs.asdict(row)})

    def _why(self, subject: str, cluster: Cluster) -> bytes:
        """Why a job or pod waits, as JSON, with the remedy and the evictions in words as well."""
        answer = why(cluster, self._scheduler.policy, self._now(), subject, advise=True)
        remedy = [called(cluster, str(change)) for change in answer.advice]
        evictions = [called(cluster, f"{each.pod} at {rfc3339(each.at)}, because of {each.cause}") for each in answer.evictions]
        return _encode({"line": called(cluster, answer.line), "remedy": remedy, "evictions": evictions, "answer": answer})

    def _whatif(self, subject: str, cluster: Cluster) -> bytes:
        until_s = time.monotonic() + LONGEST_SEARCH_S
        found = whatif(cluster, self._scheduler.policy, self._now(), subject, goes_on=lambda: time.monotonic() < until_s)
        options = [
            {"change": called(cluster, each.change), "then": what_then(each), "others": called(cluster, str(each.others))}
            for each in found.options
        ]
        return _encode({"options": options, "whole": found.whole, "told": called(cluster, without_options(found))})

    def _eta(self, subject: str, cluster: Cluster) -> bytes:
        if len(cluster.tasks) + len(cluster.nodes) > MOST_ROLLED:
            return _encode({"error": "The cluster is too large to be played forward here; `pumice eta` does it beside the scheduler."})
        return _encode(eta(cluster, self._scheduler.policy, self._now(), subject))

    def _judged(self, rule: Rule, cluster: Cluster) -> list[Finding]:
        return list(rule(cluster, self._scheduler.policy, self._now(), NOWHERE))

    def _now(self) -> float:
        return self._scheduler.clock.now()


def _moved(moves: list[tuple[str, str, str]], cluster: Cluster) -> list[dict[str, object]]:
    """The pods that move and are still there: from where to where, the job under which each is shown, and its CPUs and GPUs."""
    amounting = Amounting(cluster)
    return [
        {"pod": pod, "from": old, "to": new, "job": job_key(task), "share": amounting.share(task)}
        for pod, old, new in moves
        if (task := cluster.tasks.get(pod)) is not None
    ]


def _with_letters(letters: str, cluster: Cluster) -> list[str]:
    found = (key for key in cluster.tasks if letters in key)
    return nsmallest(MOST_NAMED, found, key=lambda key: (not key.partition("/")[2].startswith(letters), key))


# When each waiting job is expected to start: one forecast for all of them, in a process of its own, which gets a small part of a core.
#
# Between two cycles the state is only written to a file; `pumice eta` simulates it forward. If the cluster is too large, or the forecast
# takes too long, nothing is known, and nothing is shown.

log = logging.getLogger(__name__)
MOST_WRITTEN = 5000  #: pods and nodes; to write them to a file takes 0.1 s then
LONGEST_S = 60.0
PART, SAVED_S = 0.02, 10.0  #: the part of a core to use; the seconds of CPU time that may be saved up
PERIOD_S, AGAIN_S = 2.0, 30.0  #: until new waiting jobs get a forecast, and until all get a new one


class _Eta(msgspec.Struct, rename="camel"):
    subject: str
    p50_at: str | None = None
    p90_at: str | None = None


_etas = msgspec.json.Decoder(list[_Eta]).decode


class Expected:
    """Expected starts, forecast in a process of its own.

    `tell` is called with all expected starts that are known now, by the keys of jobs. While `wanted` returns False, nothing is forecast.
    """

    def __init__(self, scheduler: Scheduler, wanted: Callable[[], bool], tell: Callable[[dict[str, Moments]], None]) -> None:
        self._scheduler = scheduler
        self._wanted = wanted
        self._tell = tell
        self._waited: set[str] = set()  #: the jobs that waited when the state was last written
        self._written_s = -inf

    async def run(self) -> None:
        left_s = SAVED_S
        while True:
            await asyncio.sleep(PERIOD_S)
            left_s = min(SAVED_S, left_s + PART * PERIOD_S)
            if left_s > 0 and self._wanted():
                before_s = _spent_s()
                await self._foretell()
                left_s -= _spent_s() - before_s

    async def _foretell(self) -> None:
        state = await self._scheduler.look(self._written)
        if state is not None:
            self._tell(await _foretold(state, self._scheduler.clock.now()) if state else {})

    def _written(self, cluster: Cluster) -> bytes | None:
        """The state as the bytes of a file. None if the same jobs wait as in the last forecast and it is not old; empty if no job waits, or
        if the cluster is too large."""
        waiting, now_s = cluster.waiting.keys() | cluster.not_enqueued.keys(), time.monotonic()
        if waiting == self._waited and now_s < self._written_s + AGAIN_S:
            return None
        self._waited, self._written_s = waiting, now_s
        is_small = len(cluster.tasks) + len(cluster.nodes) <= MOST_WRITTEN
        return dump(cluster, written(self._scheduler.policy), forecast_events(cluster)) if waiting and is_small else b""


def _spent_s() -> float:
    """The CPU time of all child processes that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def _foretold(state: bytes, now: float) -> dict[str, Moments]:
    try:
        forecast = await answer_of("eta", state, now)
    except (OSError, RuntimeError) as error:  # TimeoutError among them
        log.debug("no job is told when it starts: %r", error)
        return {}
    return {each.subject.removeprefix("podgroup/"): (_seconds(each.p50_at), _seconds(each.p90_at)) for each in _etas(forecast or b"[]")}


async def answer_of(question: str, state: bytes, now: float) -> bytes:
    """What a command answers about a state, as JSON. Raises OSError or RuntimeError."""
    with tempfile.TemporaryDirectory(prefix="pumice-") as folder:
        file = Path(folder) / "state.json"
        file.write_bytes(state)
        return await output_of(question, "-f", str(file), "--now", rfc3339(now), "-o", "json", within_s=LONGEST_S)


def _seconds(at: str | None) -> float | None:
    return instant(at) if at is not None else None
