"""The page of one scheduler, served on loopback, read-only.

    async with Page(scheduler, "127.0.0.1:7480") as page:
        print(page.url)

It has no users and no cookies, so it answers this machine only, and only under a name of loopback: a stranger's web site that a browser of
this machine shows cannot reach it through a name of its own.
"""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Awaitable, Iterable, Mapping
from functools import partial
from typing import Self

import msgspec

from pumice import __version__
from pumice.answers import why
from pumice.api.errors import InputError
from pumice.http.head import NAMES_OF_LOOPBACK
from pumice.http.listener import Handler, Listener
from pumice.http.messages import JSON, Request, Response, Stream
from pumice.live.scheduler.loop import Scheduler
from pumice.page.feed import Feed, Reader
from pumice.page.files import GUARDS, files, packed
from pumice.page.history import History
from pumice.page.policy import told_policy
from pumice.page.recorder import Recorder
from pumice.page.rows import LOOSE, Amounting, pod_rows
from pumice.page.told import Rows, Told
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model.cluster import Cluster

PERIOD_S = 0.25  #: between two looks at the cluster, as long as somebody reads
SELDOM = 50  #: looks are so much further apart than they take: they cost at most a fiftieth of a core
TIME_TOLD_S = 1.0  #: readers are told the time at least so often
PATIENCE_S = 30.0  #: what readers know is kept so long after the last has gone
UNCACHED = (*GUARDS, ("Cache-Control", "no-store"))
_encode = msgspec.json.encode


class Page:
    """See the module."""

    def __init__(self, scheduler: Scheduler, address: str) -> None:
        self._scheduler = scheduler
        self._host = address.rpartition(":")[0]
        self._recorder = Recorder()
        self._told = Told(self._recorder)
        self._feed = Feed()
        self._history = History()
        self._looking = asyncio.Lock()
        self._asking = asyncio.Lock()
        self._told_policy = scheduler.policy
        self._telling: asyncio.Task[None] | None = None
        answers: dict[str, Handler] = {path: file.respond for path, file in files().items()}
        answers |= {"/api/snapshot": self._snapshot, "/api/events": self._events, "/api/job": self._job, "/api/why": self._why}
        self._listener = Listener(address, {path: _for_this_machine(answer) for path, answer in answers.items()})

    @property
    def url(self) -> str:
        return f"http://{self._host}:{self._listener.port}/"

    async def __aenter__(self) -> Self:
        """Raises OSError if the address is taken."""
        await self._listener.__aenter__()
        self._scheduler.watch(self._recorder)
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)
        self._feed.end()
        await self._listener.__aexit__(*error)

    # -- answers

    async def _snapshot(self, request: Request) -> Response:
        async with self._looking:
            if self._telling is None or self._telling.done():
                await self._scheduler.look(self._told.everything)
                self._told.fresh_cycles()
                self._telling = asyncio.ensure_future(self._tell())
            parts = self._parts(self._told.rows, [_encode(cycle) for cycle in self._recorder.cycles])
            about = {"place": self._feed.place, "version": __version__, "policy": told_policy(self._scheduler.policy)}
            body = _object([*parts, *_members(about), (b"history", self._history.encoded())])
        return packed(request, body, await asyncio.to_thread(gzip.compress, body, 3), JSON, UNCACHED)

    def _events(self, request: Request) -> Reader:
        return self._feed.reader(request.headers.get("last-event-id") or request.query.get("after", ""))

    async def _job(self, request: Request) -> Response:
        pods = await self._scheduler.look(partial(_pods_of, request.query.get("name", ""), self._recorder))
        return packed(request, pods, gzip.compress(pods, 3), JSON, UNCACHED)

    async def _why(self, request: Request) -> Response:
        """Rehearsed between two cycles, one question at a time."""
        subject = request.query.get("subject", "")
        async with self._asking:
            try:
                answer = await self._scheduler.look(partial(_answer, self._scheduler.policy, self._scheduler.clock.now(), subject))
            except InputError as error:
                return Response.json({"error": str(error)}, 404, headers=UNCACHED)
        return Response(answer, content_type=JSON, headers=UNCACHED)

    # -- telling readers

    async def _tell(self) -> None:
        """As long as there are readers."""
        alone_s, quiet_s, pause_s = 0.0, 0.0, PERIOD_S
        while alone_s < PATIENCE_S:
            await asyncio.sleep(pause_s)
            alone_s = 0.0 if self._feed.readers else alone_s + pause_s
            async with self._looking:
                rows, spent_s = await self._scheduler.look(self._timed_changes)
                pause_s = max(PERIOD_S, SELDOM * spent_s)
                cycles = self._told.fresh_cycles()
                quiet_s = 0.0 if rows or cycles else quiet_s + pause_s
                if rows or cycles or quiet_s >= TIME_TOLD_S:
                    quiet_s = 0.0
                    self._history.note(self._scheduler.clock.now(), self._told.rows["queues"])
                    self._feed.publish(_object([*self._parts(rows, cycles), *self._fresh_policy()]))
        self._told.rest()
        self._feed.begin()

    def _timed_changes(self, cluster: Cluster) -> tuple[dict[str, Rows], float]:
        began_s = time.thread_time()
        rows = self._told.changes(cluster)
        return rows, time.thread_time() - began_s

    def _fresh_policy(self) -> list[tuple[bytes, bytes]]:
        """If it is not the one that readers know."""
        policy = self._scheduler.policy
        if policy is self._told_policy:
            return []
        self._told_policy = policy
        return _members({"policy": told_policy(policy)})

    def _parts(self, rows: Mapping[str, Mapping[str, bytes | None]], cycles: list[bytes]) -> list[tuple[bytes, bytes]]:
        found = [(kind.encode(), _object((_encode(name)[1:-1], row) for name, row in of.items())) for kind, of in rows.items()]
        if cycles:
            found.append((b"cycles", b"[%s]" % b",".join(cycles)))
        return [*_members({"at": self._scheduler.clock.now(), "count": self._recorder.count}), *found]


def _object(members: Iterable[tuple[bytes, bytes | None]]) -> bytes:
    """JSON of parts that are JSON already; names come without their quotes, None is null."""
    return b"{%s}" % b",".join(b'"%s":%s' % (name, value or b"null") for name, value in members)


def _members(values: Mapping[str, object]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), _encode(value)) for name, value in values.items()]


def _pods_of(key: str, recorder: Recorder, cluster: Cluster) -> bytes:
    if key.startswith(LOOSE):
        task = cluster.tasks.get(key.removeprefix(LOOSE))
        tasks = [task] if task is not None else []
    else:
        job = cluster.jobs.get(key)
        tasks = list(job.tasks.values()) if job is not None else []
    return _encode(pod_rows(iter(tasks), recorder.why, Amounting(cluster)))


def _answer(policy: Policy, now: float, subject: str, cluster: Cluster) -> bytes:
    """With the remedy in words as well."""
    answer = why(cluster, policy, now, subject)
    remedy = [str(change) for change in answer.headline.remedy] if answer.headline is not None else []
    return _object([(b"line", _encode(answer.line)), (b"remedy", _encode(remedy)), (b"answer", _encode(answer))])


def _for_this_machine(answer: Handler) -> Handler:
    def guarded(request: Request) -> Response | Stream | Awaitable[Response]:
        host = request.headers.get("host", "").rpartition(":")[0] or request.headers.get("host", "")
        if not request.local or host not in NAMES_OF_LOOPBACK:
            return Response.text("the page is shown on this machine only: kubectl port-forward leads here", 403)
        if request.method != "GET":
            return Response.text("the page is read-only", 405)
        return answer(request)

    return guarded
