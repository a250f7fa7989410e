"""TLS between two buffers in memory, so that one protocol speaks over as many layers of it as there are: none, one, or two by a proxy."""

from __future__ import annotations

import ssl
from contextlib import suppress

Bytes = bytes | memoryview
RECORD = 16 * 1024  #: what a record holds at most


class TlsLayer:
    """One side of a handshake and what follows: the client's, who names the server, or the server's. Raises ssl.SSLError from `open`."""

    def __init__(self, context: ssl.SSLContext, name: str | None) -> None:
        self.ready = False
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        plain = name.encode() if name is not None and name.isascii() else name  # a str would load the tables of international names
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=name is None, server_hostname=plain)

    def open(self, data: Bytes) -> bytes:
        """What they mean that came. The handshake goes on meanwhile; what it wants to say comes with the next `seal`."""
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
        """What to send for it."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._tls.write(rest) :]
        return self._outgoing.read()

    def end(self) -> bytes:
        """What to send last: that nothing more comes."""
        with suppress(ssl.SSLError):
            self._tls.unwrap()
        return self._outgoing.read()
