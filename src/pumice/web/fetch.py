"""One call to a server that is not asked often."""

from __future__ import annotations

import asyncio
import ssl
from urllib.parse import quote, urlsplit

from pumice.web.connection import Answer
from pumice.web.head import basic_of, head_of
from pumice.web.pool import NotConnected, Pool

LARGEST_ANSWER = 64 * 1024 * 1024
AS_WRITTEN = "!$%&'()*+,/:;=?@[]~"  #: of a URL; whatever else stands in one is quoted


async def fetch(
    url: str,
    *,
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
    tls: ssl.SSLContext | None = None,
    timeout_s: float,
    max_bytes: int = LARGEST_ANSWER,
) -> Answer:
    """GET, or POST if there is a body. Raises OSError, TooLong among them, or ValueError. All of it, however slowly it comes, may take
    `timeout_s`; `tls` is for https, the machine's authorities by default."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f'"{url}" is not an http or https URL')
    known = basic_of(parts)
    named = {"Accept-Encoding": "identity", **({"Authorization": known} if known else {}), **(headers or {})}
    head = head_of(named.items())
    target = quote(f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/", safe=AS_WRITTEN)
    pool = Pool(f"{parts.scheme}://{parts.netloc}")
    context = tls or ssl.create_default_context() if parts.scheme == "https" else None
    try:
        async with asyncio.timeout(timeout_s):
            return await pool.ask("GET" if body is None else "POST", target, head, body, context, timeout_s, max_bytes)
    except NotConnected as error:
        raise ConnectionError(f"no connection: {error}") from error
    finally:
        pool.close()
