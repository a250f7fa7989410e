"""The page of one scheduler, served on loopback.

    async with Page(scheduler, "127.0.0.1:7480") as page:
        print(page.url)

It has no users and no cookies, so it answers this machine only, and only under a name of loopback: a stranger's web site that a browser of
this machine shows cannot reach it through a name of its own.

By itself it is read-only. Beside an API server of this process it answers that server's paths too: who acts here sends what kubectl would
send, with a token that the API server knows, and has the rights that it gives. The token stands in the fragment of `acting_url`, which
browsers send to nobody; no other site's page has it, and what such a page asks is refused by its Origin.
"""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Awaitable, Iterable, Mapping
from typing import TYPE_CHECKING, Self

import msgspec

from pumice import __version__
from pumice.http.head import NAMES_OF_LOOPBACK
from pumice.http.listener import Handler, Listener
from pumice.http.messages import JSON, Request, Response, Stream
from pumice.live.scheduler.loop import Scheduler
from pumice.page.feed import Feed, Reader
from pumice.page.files import UNCACHED, files, packed
from pumice.page.policy import told_policy
from pumice.page.questions import Questions
from pumice.page.recorder import Recorder
from pumice.page.simulations import Simulations
from pumice.page.told import History, Rows, Told
from pumice.scheduler.model.cluster import Cluster

if TYPE_CHECKING:
    from pumice.cluster.apiserver import Server

PERIOD_S = 0.25  #: between two looks at the cluster, as long as somebody reads
SELDOM = 50  #: looks are so much further apart than they take: they cost at most a fiftieth of a core
TIME_TOLD_S = 1.0  #: readers are told the time at least so often
PATIENCE_S = 30.0  #: what readers know is kept so long after the last has gone
SIMULATE = "/api/simulate"
API_PATHS = ("/api/v1/", "/apis/")
_encode = msgspec.json.encode


class Page:
    """See the module."""

    def __init__(self, scheduler: Scheduler, address: str, api: Server | None = None) -> None:
        self._scheduler = scheduler
        self._api = api
        self._host = address.rpartition(":")[0]
        self._recorder = Recorder()
        self._told = Told(self._recorder)
        self.feed = Feed()
        self._history = History()
        self._looking = asyncio.Lock()
        self._told_policy = scheduler.policy
        self._telling: asyncio.Task[None] | None = None
        answers: dict[str, Handler] = {path: file.respond for path, file in files().items()}
        answers |= {"/api/snapshot": self._snapshot, "/api/events": self._events}
        answers |= Questions(scheduler, self._recorder).routes
        self._simulations = Simulations(api) if api is not None else None
        answers |= self._simulations.routes if self._simulations is not None else {}
        reading = {path: _for_this_machine(_only_reading(answer)) for path, answer in answers.items()}
        self._listener = Listener(address, reading, others=_for_this_machine(self.act))

    @property
    def url(self) -> str:
        return f"http://{self._host}:{self._listener.port}/"

    @property
    def acting_url(self) -> str:
        """For who may act here, if there is somebody to act on."""
        return f"{self.url}#token={self._api.token}" if self._api is not None else self.url

    async def __aenter__(self) -> Self:
        """Raises OSError if the address is taken."""
        await self._listener.__aenter__()
        self._scheduler.watch(self._recorder)
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)
        if self._simulations is not None:
            await self._simulations.end()
        self.feed.end()
        await self._listener.__aexit__(*error)

    # -- answers

    async def _snapshot(self, request: Request) -> Response:
        async with self._looking:
            if self._telling is None or self._telling.done():
                await self._scheduler.look(self._told.everything)
                self._told.fresh_cycles()
                self._telling = asyncio.ensure_future(self._tell())
            parts = self._parts(self._told.rows, [_encode(cycle) for cycle in self._recorder.cycles])
            about = {
                "place": self.feed.place,
                "version": __version__,
                "policy": told_policy(self._scheduler.policy),
                "acts": self._api is not None,
            }
            body = _object([*parts, *_members(about), (b"history", self._history.encoded())])
        return packed(request, body, await asyncio.to_thread(gzip.compress, body, 3), JSON, UNCACHED)

    def _events(self, request: Request) -> Reader:
        return self.feed.reader(request.headers.get("last-event-id") or request.query.get("after", ""))

    async def act(self, request: Request) -> Response | Stream:
        """What the API server answers to who asks, or a run of the simulator."""
        if self._simulations is not None and (request.method, request.path) == ("POST", SIMULATE):
            return await self._simulations.begin(request)
        if self._api is None or not request.path.startswith(API_PATHS):
            return Response.text("404: Not Found", 404)
        answer = await self._api.answer(request)
        if isinstance(answer, Response):
            answer.headers = (*answer.headers, *UNCACHED)
        return answer

    # -- telling readers

    async def _tell(self) -> None:
        """As long as there are readers."""
        alone_s, quiet_s, pause_s = 0.0, 0.0, PERIOD_S
        while alone_s < PATIENCE_S:
            await asyncio.sleep(pause_s)
            alone_s = 0.0 if self.feed.readers else alone_s + pause_s
            async with self._looking:
                rows, spent_s = await self._scheduler.look(self._timed_changes)
                pause_s = max(PERIOD_S, SELDOM * spent_s)
                cycles = self._told.fresh_cycles()
                quiet_s = 0.0 if rows or cycles else quiet_s + pause_s
                if rows or cycles or quiet_s >= TIME_TOLD_S:
                    quiet_s = 0.0
                    self._history.note(self._scheduler.clock.now(), self._told.rows["queues"])
                    self.feed.publish(_object([*self._parts(rows, cycles), *self._fresh_policy()]))
        self._told.rest()
        self.feed.begin()

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


def _for_this_machine(answer: Handler) -> Handler:
    def guarded(request: Request) -> Response | Stream | Awaitable[Response | Stream]:
        named, origin = request.headers.get("host", ""), request.headers.get("origin")
        if not request.local or (named.rpartition(":")[0] or named) not in NAMES_OF_LOOPBACK:
            return Response.text("the page is shown on this machine only: kubectl port-forward leads here", 403)
        if origin is not None and origin != f"http://{named}":
            return Response.text("the page is for its own scripts only", 403)
        return answer(request)

    return guarded


def _only_reading(answer: Handler) -> Handler:
    return lambda request: answer(request) if request.method == "GET" else Response.text("this is read-only", 405)
