"""One HTTP exchange with an API server over aiohttp: no policy, only bytes, headers, TLS, and failures put into our words.

HTTP/1.1 with kept-alive connections, as many as there are requests under way. Answers are asked for uncompressed: on the way from a
server to its scheduler the processor is scarcer than the network.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from pumice.kube.access import Access
from pumice.kube.errors import KubeError, NoAnswer, api_error
from pumice.kube.tls import KeyPair, context

CONNECT_S = 10.0
KEPT_ALIVE_S = 60.0


class Wire:
    """Connections to one server as one user. To be entered before use: it needs the running event loop."""

    def __init__(self, access: Access, user_agent: str) -> None:
        self._access = access
        self._user_agent = user_agent
        self._session: aiohttp.ClientSession | None = None
        self._pair: KeyPair | None = None
        self._tls = context(access.trust, None, access.server) if access.server.startswith("https:") else False
        self._headers: dict[tuple[str, str], CIMultiDict[str]] = {}

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_ALIVE_S)
        self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._session:
            await self._session.close()
            self._session = None

    async def call(self, method: str, target: str, body: bytes | None, content_type: str, timeout_s: float) -> bytes:
        """The body of a good answer. A refusal of our credentials is tried once more if there are newer ones."""
        authorization = await self._access.credentials.authorization()
        try:
            return await self._exchange(method, target, body, content_type, timeout_s, authorization)
        except KubeError as error:
            if getattr(error, "code", 0) != 401:
                raise
            self._access.credentials.refused()
            renewed = await self._access.credentials.authorization()
            if renewed == authorization:
                raise
        return await self._exchange(method, target, body, content_type, timeout_s, renewed)

    async def _exchange(
        self, method: str, target: str, body: bytes | None, content_type: str, timeout_s: float, authorization: str
    ) -> bytes:
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_S)
        with _our_words(method, target):
            async with self._request(method, target, body, content_type, timeout, authorization) as response:
                answer = await response.read()
        if response.status >= 300:
            raise api_error(response.status, answer, response.headers.get("Retry-After", ""))
        return answer

    async def lines(self, target: str, idle_s: float) -> AsyncIterator[list[bytes]]:
        """The lines of an answer that does not end, in batches as they come. What follows the last line break is not a line."""
        authorization = await self._access.credentials.authorization()
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=idle_s)
        with _our_words("WATCH", target):
            async with self._request("GET", target, None, "", timeout, authorization) as response:
                if response.status >= 300:
                    raise api_error(response.status, await response.read(), response.headers.get("Retry-After", ""))
                rest: list[bytes] = []
                async for chunk in response.content.iter_any():
                    head, newline, tail = chunk.rpartition(b"\n")
                    if newline:
                        yield b"".join((*rest, head)).split(b"\n")
                        rest = []
                    rest.append(tail)

    def _request(
        self, method: str, target: str, body: bytes | None, content_type: str, timeout: aiohttp.ClientTimeout, authorization: str
    ) -> aiohttp.client._RequestContextManager:
        assert self._session is not None, "enter the client with `async with` before use"
        access = self._access
        pair = access.credentials.key_pair()
        if pair is not self._pair and self._tls:
            self._pair, self._tls = pair, context(access.trust, pair, access.server)
        return self._session.request(
            method,
            URL(access.server + target, encoded=True),
            data=body,
            headers=self._head(authorization, content_type),
            timeout=timeout,
            ssl=self._tls,
            server_hostname=access.trust.server_name or None,
            proxy=access.proxy or None,
            allow_redirects=False,
        )

    def _head(self, authorization: str, content_type: str) -> CIMultiDict[str]:
        """The headers of a request; equal ones are built once."""
        known = self._headers.get((authorization, content_type))
        if known is None:
            if len(self._headers) > 16:  # tokens that came and went
                self._headers.clear()
            known = CIMultiDict(self._access.headers)
            known.update({"User-Agent": self._user_agent, "Accept": "application/json", "Accept-Encoding": "identity"})
            if authorization:
                known["Authorization"] = authorization
            if content_type:
                known["Content-Type"] = content_type
            self._headers[authorization, content_type] = known
        return known


@contextmanager
def _our_words(method: str, target: str) -> Iterator[None]:
    """aiohttp's exceptions as NoAnswer, which knows whether the request may have arrived."""
    what = f"{method} {target.partition('?')[0]}"
    try:
        yield
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise NoAnswer(f"{what}: no connection: {error}", sent=False) from error
    except TimeoutError as error:
        raise NoAnswer(f"{what}: no answer in time", sent=True) from error
    except (aiohttp.ClientError, OSError) as error:
        raise NoAnswer(f"{what}: connection lost: {error}", sent=True) from error
