"""An HTTP server of a few paths, each with a handler of its own, which answers at once or later."""

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Self

from pumice.http.messages import Answer, Request, Response, Stream
from pumice.http.server import LARGEST_BODY, Connections, ServerConnection

Handler = Callable[[Request], Response | Stream | Awaitable[Response | Stream]]
SWEEP_EVERY_S = 5.0
LAST_ANSWERS_S = 2.0  #: for requests that are being answered when the server ends

_log = logging.getLogger(__name__)


def _nothing_there(request: Request) -> Response:
    return Response.text("404: Not Found", 404)


class Listener:
    """An HTTP server, used as an asynchronous context manager. `address` is host:port; without a host, all addresses of the machine.
    `others` answers the requests for paths without a route."""

    def __init__(
        self,
        address: str,
        routes: Mapping[str, Handler],
        tls: ssl.SSLContext | None = None,
        *,
        others: Handler = _nothing_there,
        largest_body: int = LARGEST_BODY,
    ) -> None:
        self._address = address
        host, _, port = address.rpartition(":")
        self._host, self._port = host.strip("[]") or None, int(port)
        self._routes = routes
        self._others = others
        self._door = Connections(time.monotonic, tls=tls, largest_body=largest_body)
        self._answering: set[asyncio.Task[Response | Stream]] = set()
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.TimerHandle | None = None

    @property
    def port(self) -> int:
        """The port that was given, or for port 0 the one that the system chose."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def __aenter__(self) -> Self:
        """Start to serve. Raises OSError, with the address in the place of a file's name, if the address is in use."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(lambda: ServerConnection(self._respond, self._door), self._host, self._port)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._address) from None
        self._sweep()
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._server is not None and self._sweeper is not None
        self._sweeper.cancel()
        self._server.close()
        if self._answering:
            await asyncio.wait(self._answering, timeout=LAST_ANSWERS_S)
        for task in self._answering:
            task.cancel()
        self._door.close()
        await self._server.wait_closed()

    def _respond(self, request: Request) -> Answer:
        handler = self._routes.get(request.path, self._others)
        try:
            answer = handler(request)
        except Exception:
            return _failed(request)
        return self._later(request, answer) if isinstance(answer, Awaitable) else answer

    def _later(self, request: Request, answer: Awaitable[Response | Stream]) -> asyncio.Future[Response | Stream]:
        task = asyncio.get_running_loop().create_task(_awaited(request, answer))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)
        return task

    def _sweep(self) -> None:
        self._door.sweep()
        self._sweeper = asyncio.get_running_loop().call_later(SWEEP_EVERY_S, self._sweep)


async def _awaited(request: Request, answer: Awaitable[Response | Stream]) -> Response | Stream:
    try:
        return await answer
    except Exception:
        return _failed(request)


def _failed(request: Request) -> Response:
    """The answer to a request whose handler raised an exception. The exception is logged in full; the client gets only the status 500."""
    _log.exception("%s %s failed", request.method, request.path)
    return Response.text("500: Internal Server Error", 500)
