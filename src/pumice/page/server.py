"""The page of one scheduler, served on loopback, or beyond it to readers who are allowed.

    async with PageServer(scheduler, "127.0.0.1:7480") as page:
        print(page.url)

The page has no users and no cookies, so it answers only requests from this machine, and only under a name of loopback: another web site in
a browser of this machine cannot reach the page through a name of its own. With `readers` it answers every request with a bearer token
whose user may read (`reader_access.py`). Requests from this machine need a token then, too, since they may come from a proxy. The page's
files are for all: they contain nothing of the cluster.

By itself the page is read-only. Beside an API server of this process, it answers that server's paths, too: a user who acts here sends the
requests that kubectl would send, with a token that the API server knows, and has the rights of that token. The token is in the fragment of
`acting_url`, which browsers send to no server. No other site's page has the token, and requests of such a page are refused by their Origin.
"""

from __future__ import annotations

import asyncio
import gzip
import ssl
import time
from collections.abc import Awaitable, Iterable, Mapping
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Self

import msgspec

from pumice import __version__
from pumice.http.listener import Handler, Listener
from pumice.http.messages import JSON, NAMES_OF_LOOPBACK, Request, Response, Stream
from pumice.live.scheduler.loop import Scheduler
from pumice.page.answers import PageAnswers
from pumice.page.expected_starts import Expected
from pumice.page.files import UNCACHED, files, packed
from pumice.page.last_minutes import LastMinutes, PastChange
from pumice.page.long_history import LongHistory
from pumice.page.policy import policy_fields
from pumice.page.reader_access import Readers
from pumice.page.recorder import Recorder
from pumice.page.sent_rows import History, Rows, SentRows
from pumice.page.server_sent_events import Feed, Reader
from pumice.page.simulations import Simulations
from pumice.page.usage import PageUsage
from pumice.scheduler.model import Cluster

if TYPE_CHECKING:
    from pumice.cluster.apiserver import Server

PERIOD_S = 0.25  #: between two looks at the cluster, as long as the page has readers
SELDOM = 50  #: the pause after a look is at least this many times as long as the look: looks cost at most a fiftieth of a core
TIME_SENT_S = 1.0  #: readers are sent the time at least this often
ALONE_S, SELDOM_ALONE = 1.0, 200  #: the same while the page has no readers, for readers who come later and go back in time
STREAM_S = 60.0  #: a stream to a reader with a token ends after this time, so that the token is sent and checked again
SIMULATE = "/api/simulate"
API_PATHS = ("/api/v1/", "/apis/")
_encode = msgspec.json.encode


class PageServer:
    def __init__(
        self,
        scheduler: Scheduler,
        address: str,
        api: Server | None = None,
        *,
        readers: Readers | None = None,
        tls: ssl.SSLContext | None = None,
        recordings: str = "",
        prometheus: str = "",
    ) -> None:
        """`recordings`: the folder into which the scheduler records; empty if it does not. `prometheus`: the URL of a server that reads its
        metrics."""
        self._scheduler = scheduler
        self._api = api
        self._lasts_s = STREAM_S if readers is not None else inf
        self._scheme, self._host = "http" if tls is None else "https", address.rpartition(":")[0]
        self._recorder = Recorder()
        self._sent = SentRows(self._recorder)
        self.feed = Feed()
        self._history = History()
        self._past = LastMinutes(time.monotonic)
        self._looking = asyncio.Lock()
        self._came = asyncio.Event()  #: set when a reader comes
        self._sent_policy = scheduler.policy
        self._sent_s = 0.0  #: when readers were last sent something
        self._working: list[asyncio.Task[None]] = []
        answers: dict[str, Handler] = {"/api/snapshot": self._snapshot, "/api/events": self._events, "/api/past": self._last_minutes}
        answers |= PageAnswers(scheduler, self._recorder, api.store if api is not None else None).routes
        self._usage = PageUsage(recordings)
        self._long_history = LongHistory(self._usage, prometheus, scheduler.clock.now)
        answers |= self._usage.routes | self._long_history.routes
        self._simulations = Simulations(api) if api is not None else None
        answers |= self._simulations.routes if self._simulations is not None else {}
        if readers is not None:
            answers = {path: readers.only(answer) for path, answer in answers.items()}
        answers |= {path: file.respond for path, file in files().items()}
        guard = _for_this_machine if readers is None else _for_its_own_scripts
        self._listener = Listener(
            address, {path: guard(_only_reading(answer)) for path, answer in answers.items()}, tls, others=guard(self.act)
        )

    @property
    def url(self) -> str:
        return f"{self._scheme}://{self._host}:{self._listener.port}/"

    @property
    def acting_url(self) -> str:
        """The URL of the page with a token to act, if there is an API server to act on."""
        return f"{self.url}#token={self._api.token}" if self._api is not None else self.url

    async def __aenter__(self) -> Self:
        """Start to serve. Raises OSError if the address is in use."""
        await self._listener.__aenter__()
        self._scheduler.watch(self._recorder)
        expected = Expected(self._scheduler, lambda: bool(self.feed.readers), self._sent.expect)
        self._working = [asyncio.ensure_future(self._tell()), asyncio.ensure_future(expected.run())]
        return self

    async def __aexit__(self, *error: object) -> None:
        for task in self._working:
            task.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)
        if self._simulations is not None:
            await self._simulations.end()
        self.feed.end()
        await self._listener.__aexit__(*error)

    # -- answers

    async def _snapshot(self, request: Request) -> Response:
        await self._tell_changes()
        about = {
            "place": self.feed.place,
            "version": __version__,
            "policy": policy_fields(self._scheduler.policy),
            "acts": self._api is not None,
            "recordings": self._usage.folder,
            "longHistory": self._long_history.source,
        }
        cycles = [_encode(cycle) for cycle in self._recorder.cycles]
        now = PastChange(self.feed.last, self._scheduler.clock.now(), self._recorder.count, self._sent.rows, cycles)
        return await self._packed(request, _object([*_members_of(now), *_members(about), (b"history", self._history.encoded())]))

    async def _last_minutes(self, request: Request) -> Response:
        first = self._past.first
        before = first._replace(cycles=[_encode(cycle) for cycle in self._recorder.cycles if cycle.number <= first.cycle])
        changes = b",".join(_object(_members_of(change)) for change in self._past.changes)
        return await self._packed(request, _object([(b"first", _object(_members_of(before))), (b"changes", b"[%s]" % changes)]))

    async def _packed(self, request: Request, body: bytes) -> Response:
        return packed(request, body, await asyncio.to_thread(gzip.compress, body, 3), JSON, UNCACHED)

    def _events(self, request: Request) -> Reader:
        self._came.set()
        return self.feed.reader(request.headers.get("last-event-id") or request.query.get("after", ""), self._lasts_s)

    async def act(self, request: Request) -> Response | Stream:
        """The answer of the API server to a request, or of a new run of the simulator."""
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
        while True:
            spent_s = await self._tell_changes()
            pause_s = max(PERIOD_S, SELDOM * spent_s) if self.feed.readers else max(ALONE_S, SELDOM_ALONE * spent_s)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._came.wait(), pause_s)
            self._came.clear()

    async def _tell_changes(self) -> float:
        """Send readers what has changed. Returns the CPU time that the look at the cluster took, in seconds."""
        async with self._looking:
            rows, spent_s = await self._scheduler.look(self._timed_changes)
            cycles, policy, at = self._sent.fresh_cycles(), self._fresh_policy(), self._scheduler.clock.now()
            if rows or cycles or policy or (self.feed.readers and time.monotonic() - self._sent_s >= TIME_SENT_S):
                self._sent_s = time.monotonic()
                if "queues" in rows:
                    self._history.note(at, self._sent.rows["queues"])
                change = PastChange(self.feed.last + 1, at, self._recorder.count, rows, cycles)
                self._past.note(change)
                self.feed.publish(_object([*_members_of(change), *policy]))
        return spent_s

    def _timed_changes(self, cluster: Cluster) -> tuple[dict[str, Rows], float]:
        began_s = time.thread_time()
        rows = self._sent.changes(cluster)
        return rows, time.thread_time() - began_s

    def _fresh_policy(self) -> list[tuple[bytes, bytes]]:
        """The policy as a member of a message, if it is not the one that readers have; else nothing."""
        policy = self._scheduler.policy
        if policy is self._sent_policy:
            return []
        self._sent_policy = policy
        return _members({"policy": policy_fields(policy)})


def _members_of(change: PastChange) -> list[tuple[bytes, bytes]]:
    rows = [(kind.encode(), _object((_encode(name)[1:-1], row) for name, row in of.items())) for kind, of in change.rows.items()]
    cycles = [(b"cycles", b"[%s]" % b",".join(change.cycles))] if change.cycles else []
    return [*_members({"number": change.number, "at": change.at, "count": change.cycle}), *rows, *cycles]


def _object(members: Iterable[tuple[bytes, bytes | None]]) -> bytes:
    """A JSON object made of parts that are JSON already. Names are given without their quotes; None becomes null."""
    return b"{%s}" % b",".join(b'"%s":%s' % (name, value or b"null") for name, value in members)


def _members(values: Mapping[str, object]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), _encode(value)) for name, value in values.items()]


def _for_this_machine(answer: Handler) -> Handler:
    def guarded(request: Request) -> Response | Stream | Awaitable[Response | Stream]:
        named = request.headers.get("host", "")
        if not request.local or (named.rpartition(":")[0] or named) not in NAMES_OF_LOOPBACK:
            return Response.text("the page is shown on this machine only: kubectl port-forward leads here", 403)
        return own(request)

    own = _for_its_own_scripts(answer)
    return guarded


def _for_its_own_scripts(answer: Handler) -> Handler:
    def guarded(request: Request) -> Response | Stream | Awaitable[Response | Stream]:
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != request.headers.get("host", ""):
            return Response.text("the page is for its own scripts only", 403)
        return answer(request)

    return guarded


def _only_reading(answer: Handler) -> Handler:
    return lambda request: answer(request) if request.method == "GET" else Response.text("this is read-only", 405)
