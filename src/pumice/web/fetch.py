"""One call to a server that is not asked often."""

from __future__ import annotations

import ssl
from base64 import b64encode
from urllib.parse import unquote, urlsplit

from pumice.web.connection import Answer
from pumice.web.pool import NotConnected, Pool


async def fetch(
    url: str, *, headers: dict[str, str] | None = None, body: bytes | None = None, tls: ssl.SSLContext | None = None, timeout_s: float
) -> Answer:
    """GET, or POST if there is a body. Raises OSError or ValueError; `tls` is for https, the machine's authorities by default."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f'"{url}" is not an http or https URL')
    named = {"Accept-Encoding": "identity", **(headers or {})}
    if parts.username:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        named.setdefault("Authorization", f"Basic {b64encode(pair.encode()).decode()}")
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items()).encode("latin-1")
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    pool = Pool(f"{parts.scheme}://{parts.netloc}")
    context = tls or ssl.create_default_context() if parts.scheme == "https" else None
    try:
        return await pool.ask("GET" if body is None else "POST", target, head, body, context, timeout_s)
    except NotConnected as error:
        raise ConnectionError(f"no connection: {error}") from error
    finally:
        pool.close()
