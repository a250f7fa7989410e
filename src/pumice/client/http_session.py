"""HTTP exchanges with an API server: no policy, only bytes, headers, TLS, and failures turned into KubeErrors.

HTTP/1.1 with kept-alive connections, as many as there are requests at the same time. Lists are requested with gzip: to unzip them costs a
fraction of what it costs to receive them unzipped, record by record.
"""

import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager
from types import TracebackType
from typing import Self

import msgspec
from msgspec import Struct

from pumice.api import InputError
from pumice.client.access import Access
from pumice.client.failures import KubeError, NoAnswer, NoCredentials, api_error
from pumice.client.odd_json import NOT_TAKEN, readable
from pumice.client.tls import KeyPair, context
from pumice.http.connection import Answer
from pumice.http.connection_pool import ConnectionPool, NotConnected
from pumice.http.messages import head_of

JSON = "application/json"
LONGEST_LINE = 64 * 1024 * 1024  #: bytes of one event; no object of any server is as large
LONGEST_REFUSAL = 1024 * 1024  #: bytes of the answer to a watch that is refused
_json = msgspec.json.Decoder(msgspec.Raw)  # checks the JSON without building objects


class WireFormat(Struct, frozen=True):
    """The media types of an exchange: of the body that is sent, if any, and of the answer, which may be sent `zipped`."""

    content: str = ""
    accept: str = JSON
    zipped: bool = False
    checked: bool = True  #: whether an answer of JSON is checked at once, so that the call is tried again if the answer was cut


PLAIN = WireFormat()


class HttpSession:
    """The connections to one server as one user. Enter it before use: it needs the running event loop."""

    def __init__(self, access: Access, user_agent: str, warned: Callable[[str], None]) -> None:
        """`warned` is called with each warning of the server."""
        self._access = access
        self._warned = warned
        self._user_agent = user_agent
        self._pair: KeyPair | None = None
        self._trust = access.trust.current()
        self._tls = context(self._trust, None, access.server) if access.server.startswith("https:") else None
        self._heads: dict[tuple[str, WireFormat], bytes] = {}
        self._pool = ConnectionPool(access.server, self._trust.server_name, access.proxy)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._pool.close()

    async def call(self, method: str, target: str, body: bytes | None, form: WireFormat, timeout_s: float) -> bytes:
        """The body of a successful answer. If the server refuses our credentials, the call is tried once more if there are newer ones."""
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

    async def _exchange(
        self, method: str, target: str, body: bytes | None, form: WireFormat, timeout_s: float, authorization: str
    ) -> bytes:
        with _our_words(method, target):
            head = self._head(authorization, form)
            answer = await self._pool.ask(method, target, head, body, self._context(), timeout_s)
        for warning in answer.warnings:
            self._warned(warning)
        if answer.status >= 300:
            raise _refusal(answer)
        if form.checked and form.accept.startswith(JSON):
            return _whole(answer.body, f"{method} {target.partition('?')[0]}")
        return answer.body

    async def lines(self, target: str, idle_s: float, form: WireFormat = PLAIN) -> AsyncIterator[list[bytes]]:
        """The lines of an answer that does not end, in batches as they come. Text after the last line break is not a line."""
        authorization = await self._authorization()
        with _our_words("WATCH", target):
            parts = self._pool.listen(target, self._head(authorization, form), self._context(), idle_s)
            async with aclosing(parts):  # type: ignore[type-var]
                rest, size = list[bytes](), 0
                async for part in parts:
                    if part.status >= 300:
                        raise await self._refused(part, parts)
                    lines = part.body.split(b"\n")
                    rest.append(lines[0])
                    size += len(lines[0])
                    if size > LONGEST_LINE:
                        raise NoAnswer(f"WATCH {target.partition('?')[0]}: a line of more than {LONGEST_LINE} bytes", sent=True)
                    if len(lines) > 1:
                        lines[0], rest = b"".join(rest), [lines.pop()]
                        size = len(rest[0])
                        yield lines

    async def _refused(self, first: Answer, others: AsyncIterator[Answer]) -> KubeError:
        """The error for a watch that the server refused. The caller tries the watch again."""
        if first.status == 401:
            self._access.credentials.refused()
        body = first.body
        async for part in others:
            body += part.body
            if len(body) > LONGEST_REFUSAL:
                break
        return _refusal(first._replace(body=body))

    def _context(self) -> ssl.SSLContext | None:
        """The TLS context with the present authorities and client certificate; None for plain HTTP."""
        trust, pair = self._access.trust.current(), self._access.credentials.key_pair()
        if self._tls and (pair is not self._pair or trust is not self._trust):
            self._tls = context(trust, pair, self._access.server)
            self._trust, self._pair = trust, pair
        return self._tls

    def _head(self, authorization: str, form: WireFormat) -> bytes:
        """The header lines of a request; equal header lines are built once."""
        known = self._heads.get((authorization, form))
        if known is None:
            if len(self._heads) > 16:  # of tokens that are no longer in use
                self._heads.clear()
            named = {"User-Agent": self._user_agent, "Accept": form.accept, "Accept-Encoding": "gzip" if form.zipped else "identity"}
            named |= {"Authorization": authorization} if authorization else {}
            named |= {"Content-Type": form.content} if form.content else {}
            try:
                known = self._heads[authorization, form] = head_of([*self._access.headers, *named.items()])
            except ValueError as error:
                raise NoCredentials(str(error)) from None
        return known


def _whole(body: bytes, what: str) -> bytes:
    """The body as decoders take it. Raises NoAnswer if it was cut on its way or is no object, as every answer of an API server is: then it
    does not tell what happened to the request."""
    try:
        _json.decode(body)
        body.decode()
    except NOT_TAKEN:
        body = readable(body)
    except msgspec.DecodeError as error:
        raise not_whole(what, error) from error
    if not body.lstrip().startswith(b"{"):
        raise NoAnswer(f"{what}: the answer is no object", sent=True)
    return body


def not_whole(what: str, error: msgspec.DecodeError) -> NoAnswer:
    return NoAnswer(f"{what}: the answer is not JSON: {error}", sent=True)


def _refusal(answer: Answer) -> KubeError:
    return api_error(answer.status, answer.body, answer.retry_after)


@contextmanager
def _our_words(method: str, target: str) -> Iterator[None]:
    """Turn failures of a connection into NoAnswer, which says whether the request may have arrived."""
    what = f"{method} {target.partition('?')[0]}"
    try:
        yield
    except InputError as error:  # a certificate that an exec plugin gave
        raise NoCredentials(str(error)) from error
    except NotConnected as error:
        raise NoAnswer(f"{what}: no connection: {error}", sent=False) from error
    except TimeoutError as error:
        raise NoAnswer(f"{what}: no answer in time", sent=True) from error
    except OSError as error:
        raise NoAnswer(f"{what}: connection lost: {error}", sent=True) from error
