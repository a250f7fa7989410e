"""The answers to questions of the page (a job's pods, why it waits, what would help, when it starts, what lint finds, which moves
would empty nodes).

Questions are answered one at a time, between two cycles, where cycles run, and do not change the state. What could take long is bounded: a
search for what would help ends after a second with what it has found, cycles may run between the rules of lint, and only small clusters
are simulated forward. Plans that empty nodes are made in a process of their own.
"""

import asyncio
import gzip
import time
from collections.abc import Callable
from functools import partial
from heapq import nsmallest

import msgspec

from pumice.answers import why
from pumice.answers.answer_text import what_then, without_options
from pumice.answers.eta import eta
from pumice.answers.lint import RULES, Rule, worst_first
from pumice.answers.lint.finding import Finding
from pumice.answers.subject import called
from pumice.answers.whatif import whatif
from pumice.api import InputError, rfc3339
from pumice.http.listener import Handler
from pumice.http.messages import JSON, Request, Response
from pumice.inputs.known_objects import KnownObjects, know_objects
from pumice.inputs.recording.state_file import dump
from pumice.live.scheduler.loop import Scheduler
from pumice.page.expected_starts import MOST_WRITTEN, answer_of
from pumice.page.files import UNCACHED, packed
from pumice.page.policy import written
from pumice.page.recorder import Recorder
from pumice.page.rows import LOOSE, Amounting, job_key, pod_rows
from pumice.page.sent_rows import Touched
from pumice.scheduler.framework.world import NOWHERE
from pumice.scheduler.model import Cluster

LONGEST_SEARCH_S = 1.0
FEWEST_LETTERS, MOST_NAMED = 3, 8  #: of names of pods that are looked for, and pods that are found
MOST_ROLLED = 500  #: pods and nodes of a cluster that is simulated forward here; this takes a second then
_encode = msgspec.json.encode


class PageAnswers:
    def __init__(self, scheduler: Scheduler, recorder: Recorder, known: KnownObjects | None = None) -> None:
        """`known`: objects that the scheduler does not read, where there is an API server in this process."""
        self._scheduler = scheduler
        self._recorder = recorder
        self._known = known
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
        if self._known is not None:
            know_objects(cluster, self._known)
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
