"""HTTP exchanges with an API server: no policy, only bytes, headers, TLS, and failures put into our words.

Single calls go over a `Pool` of our own, for speed; watches, and everything through a proxy, over aiohttp. HTTP/1.1 with kept-alive
connections, as many as there are requests under way. Answers are asked for uncompressed: on the way from a server to its scheduler the
processor is scarcer than the network.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import urlsplit

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from pumice.api.errors import InputError
from pumice.kube.access import Access
from pumice.kube.errors import KubeError, NoAnswer, NoCredentials, api_error
from pumice.kube.pool import CONNECT_S, KEPT_ALIVE_S, Answer, NotConnected, Pool
from pumice.kube.tls import KeyPair, context

JSON = "application/json"


class Form(NamedTuple):
    """The media types of an exchange: of the body that is sent, if any, and of the answer."""

    content: str = ""
    accept: str = JSON


PLAIN = Form()


class Wire:
    """Connections to one server as one user. To be entered before use: it needs the running event loop."""

    def __init__(self, access: Access, user_agent: str) -> None:
        self._access = access
        self._user_agent = user_agent
        self._session: aiohttp.ClientSession | None = None
        self._pair: KeyPair | None = None
        self._tls = context(access.trust, None, access.server) if access.server.startswith("https:") else None
        self._headers: dict[tuple[str, Form], tuple[CIMultiDict[str], bytes]] = {}
        self._pool = None if access.proxy else Pool(access.server, access.trust.server_name)
        self._url = urlsplit(access.server)

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_ALIVE_S)
        self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._pool:
            self._pool.close()
        if self._session:
            await self._session.close()
            self._session = None

    async def call(self, method: str, target: str, body: bytes | None, form: Form, timeout_s: float) -> bytes:
        """The body of a good answer. A refusal of our credentials is tried once more if there are newer ones."""
        authorization = await self._authorization()
        try:
            return await self._exchange(method, target, body, form, timeout_s, authorization)
        except KubeError as error:
            if getattr(error, "code", 0) != 401:
                raise
            before = authorization, self._access.credentials.key_pair()
            self._access.credentials.refused()
            renewed = await self._authorization()
            if (renewed, self._access.credentials.key_pair()) == before:
                raise
        return await self._exchange(method, target, body, form, timeout_s, renewed)

    async def _authorization(self) -> str:
        try:
            return await self._access.credentials.authorization()
        except (InputError, OSError) as error:
            raise NoCredentials(str(error)) from error

    async def _exchange(self, method: str, target: str, body: bytes | None, form: Form, timeout_s: float, authorization: str) -> bytes:
        with _our_words(method, target):
            if self._pool:
                request = self._bytes(method, target, body, form, authorization)
                answer = await self._pool.ask(request, self._context(), timeout_s)
            else:
                timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_S)
                async with self._request(method, target, body, form, timeout, authorization) as response:
                    answer = Answer(response.status, response.headers.get("Retry-After", ""), await response.read())
        if answer.status >= 300:
            raise api_error(answer.status, answer.body, answer.retry_after)
        return answer.body

    async def lines(self, target: str, idle_s: float, form: Form = PLAIN) -> AsyncIterator[list[bytes]]:
        """The lines of an answer that does not end, in batches as they come. What follows the last line break is not a line."""
        authorization = await self._authorization()
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=idle_s)
        with _our_words("WATCH", target):
            async with self._request("GET", target, None, form, timeout, authorization) as response:
                if response.status == 401:
                    self._access.credentials.refused()  # whoever watches tries again
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
        self, method: str, target: str, body: bytes | None, form: Form, timeout: aiohttp.ClientTimeout, authorization: str
    ) -> aiohttp.client._RequestContextManager:
        assert self._session is not None, "enter the client with `async with` before use"
        access = self._access
        return self._session.request(
            method,
            URL(access.server + target, encoded=True),
            data=body,
            headers=self._head(authorization, form)[0],
            timeout=timeout,
            ssl=self._context() or False,
            server_hostname=access.trust.server_name or None,
            proxy=access.proxy or None,
            allow_redirects=False,
        )

    def _bytes(self, method: str, target: str, body: bytes | None, form: Form, authorization: str) -> bytes:
        head = self._head(authorization, form)[1]
        length = b"Content-Length: %d\r\n\r\n" % len(body) if body is not None else b"\r\n"
        return b"".join((f"{method} {self._url.path}{target} HTTP/1.1\r\n".encode("ascii"), head, length, body or b""))

    def _context(self) -> ssl.SSLContext | None:
        """TLS with the certificate of the day."""
        pair = self._access.credentials.key_pair()
        if pair is not self._pair and self._tls:
            self._pair, self._tls = pair, context(self._access.trust, pair, self._access.server)
        return self._tls

    def _head(self, authorization: str, form: Form) -> tuple[CIMultiDict[str], bytes]:
        """The headers of a request, as values and as bytes; equal ones are built once."""
        known = self._headers.get((authorization, form))
        if known is None:
            if len(self._headers) > 16:  # tokens that came and went
                self._headers.clear()
            head = CIMultiDict(self._access.headers)
            head.update({"User-Agent": self._user_agent, "Accept": form.accept, "Accept-Encoding": "identity"})
            head.update({"Authorization": authorization} if authorization else {})
            head.update({"Content-Type": form.content} if form.content else {})
            lines = [("Host", self._url.netloc.rpartition("@")[2]), *head.items()]
            known = self._headers[authorization, form] = head, "".join(map(_header_line, lines)).encode()
        return known


def _header_line(item: tuple[str, str]) -> str:
    name, value = item
    if any(ord(letter) < 32 and letter != "\t" for letter in value):
        raise NoCredentials(f"the value for the header {name} has a line break or another control character in it")
    return f"{name}: {value}\r\n"


@contextmanager
def _our_words(method: str, target: str) -> Iterator[None]:
    """aiohttp's exceptions as NoAnswer, which knows whether the request may have arrived."""
    what = f"{method} {target.partition('?')[0]}"
    try:
        yield
    except InputError as error:  # a certificate that an exec plugin gave
        raise NoCredentials(str(error)) from error
    except (NotConnected, aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise NoAnswer(f"{what}: no connection: {error}", sent=False) from error
    except TimeoutError as error:
        raise NoAnswer(f"{what}: no answer in time", sent=True) from error
    except (aiohttp.ClientError, OSError) as error:
        raise NoAnswer(f"{what}: connection lost: {error}", sent=True) from error
