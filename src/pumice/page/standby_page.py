"""The page's address at a replica that does not lead: whoever comes there is passed on to the leader, or told who it is.

A Service sends readers to any replica. Beyond loopback a connection is passed on as it is, without a look into it, to the same port of the
leader's pod: the reader speaks TLS with the leader, and shows it the token. The pod is the one that the holder of the Lease is named after.
On loopback, where a leader serves only its own pod, the answer is a sentence that names the leader.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import Self

import msgspec

from pumice.api.kinds import PODS, ObjectRef
from pumice.client.client import Client
from pumice.client.failures import ApiError, KubeError
from pumice.http.listener import Listener
from pumice.http.messages import NAMES_OF_LOOPBACK, Request, Response

log = logging.getLogger(__name__)

CONNECT_S = 2.0
CHUNK = 64 * 1024
Locate = Callable[[str], Awaitable[str]]  #: from the holder of the lease to the address of its pod; empty if it is not known


class _PodStatus(msgspec.Struct):
    podIP: str = ""


class _Pod(msgspec.Struct):
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


def address_of(client: Client, namespace: str) -> Locate:
    """Looks up the pod of a holder of the lease, which is called after the pod's host name."""

    async def locate(holder: str) -> str:
        if not holder:
            return ""
        try:
            answer = await client.get(PODS, ObjectRef(holder.rpartition("_")[0], namespace))
        except ApiError:
            return ""
        return msgspec.json.decode(answer, type=_Pod).status.podIP

    return locate


class WaitingPage:
    """Serves the address of the page until the context ends, which is when this replica leads."""

    def __init__(self, address: str, leader: Callable[[], str], locate: Locate) -> None:
        self._address = address
        self._leader = leader
        self._locate = locate
        self._under_way: set[asyncio.Task[None]] = set()
        self._stack = AsyncExitStack()
        self.port = 0

    async def __aenter__(self) -> Self:
        """Start to serve. Raises OSError if the address is in use."""
        host, _, port = self._address.rpartition(":")
        if host in NAMES_OF_LOOPBACK:
            listener = await self._stack.enter_async_context(Listener(self._address, {}, others=self._tell))
            self.port = listener.port
        else:
            server = await asyncio.start_server(self._begin, host.strip("[]") or None, int(port))
            self._stack.push_async_callback(server.wait_closed)
            self._stack.callback(server.close)
            self.port = server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error: object) -> None:
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._stack.aclose()

    def _tell(self, request: Request) -> Response:
        leader = self._leader()
        message = f"{leader} leads, and serves the page: ask its pod, {leader.rpartition('_')[0]}" if leader else "no replica leads yet"
        return Response.text(f"this replica waits; {message}\n", 503)

    # ---- passing on

    async def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        try:
            await self._pass_on(reader, writer)
        except (OSError, KubeError, TimeoutError) as error:
            log.debug("a reader of the page was not passed on to %s: %s", self._leader() or "a leader", error)
        finally:
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(CONNECT_S):
            host = await self._locate(self._leader())
            if not host:
                return  # nobody leads, or its pod is not known
            there, to_it = await asyncio.open_connection(host, self.port)
        try:
            await asyncio.gather(_copy(reader, to_it), _copy(there, writer))
        finally:
            to_it.close()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(CHUNK):
        target.write(data)
        await target.drain()
    with suppress(OSError):
        target.write_eof() if target.can_write_eof() else target.close()
