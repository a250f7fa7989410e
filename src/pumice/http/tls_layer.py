"""TLS between two buffers in memory, so that one protocol works over any number of TLS layers: none, one, or two through a proxy."""

import ssl
from contextlib import suppress
from functools import cached_property
from typing import Any

Bytes = bytes | memoryview
RECORD = 16 * 1024  #: bytes that a TLS record holds at most


class TlsLayer:
    """One side of a TLS connection: the client's, with the `name` of the server, or without it the server's. `open` raises ssl.SSLError."""

    def __init__(self, context: ssl.SSLContext, name: str | None) -> None:
        self.ready = False
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        plain = name.encode() if name is not None and name.isascii() else name  # a str would load the tables of international names
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=name is None, server_hostname=plain)

    @property
    def owes(self) -> bool:
        """Whether the layer itself has something to send, such as a reply of the handshake."""
        return self._outgoing.pending > 0

    def open(self, data: Bytes) -> bytes:
        """The plain bytes of the encrypted bytes that were received. Bytes of the handshake are handled too; its reply comes with the next
        `seal`."""
        self._incoming.write(data)
        parts = []
        try:
            if not self.ready:
                self._tls.do_handshake()
                self.ready = True
            while (self._incoming.pending or self._tls.pending()) and (part := self._tls.read(RECORD)):
                parts.append(part)
        except ssl.SSLWantReadError:
            pass
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def seal(self, data: bytes) -> bytes:
        """The encrypted bytes to send for `data`, and for the handshake."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._tls.write(rest) :]
        return self._outgoing.read()

    @cached_property
    def client(self) -> tuple[str, tuple[str, ...]] | None:
        """The common name and the organizations of the client's certificate, if it has one. Ask once the layer is ready."""
        subject: Any = (self._tls.getpeercert() or {}).get("subject", ())
        parts = [pair for part in subject for pair in part]
        names = [value for key, value in parts if key == "commonName"]
        return (names[-1], tuple(value for key, value in parts if key == "organizationName")) if names else None

    def end(self) -> bytes:
        """The bytes to send last, which announce the end of the connection."""
        with suppress(ssl.SSLError):
            self._tls.unwrap()
        return self._outgoing.read()
