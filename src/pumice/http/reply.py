"""An answer as it comes in: its head, then its body, by length, in chunks, or until the connection ends."""

from __future__ import annotations

import re
import zlib
from enum import Enum

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection:[ \t]*close", re.IGNORECASE)
_ZIPPED = re.compile(rb"\r\ncontent-encoding:[ \t]*gzip", re.IGNORECASE)
_WARNING = re.compile(rb'\r\nwarning:[ \t]*299 [^ \r]+ "((?:[^"\\\r]|\\.)*)"', re.IGNORECASE)
_RETRY_AFTER = re.compile(rb"\r\nretry-after:[ \t]*([^\r]*)", re.IGNORECASE)
LONGEST_HEAD = 256 * 1024
GZIP = 16 + zlib.MAX_WBITS
MOST_ZIPPED = 1032  #: so many bytes become one at most


class TooLong(OSError):
    """An answer of more bytes than were wanted."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"more than {max_bytes} bytes")


class _Form(Enum):
    """How the end of a body is told."""

    LENGTH = 1
    CHUNKS = 2
    CLOSE = 3


class Reply:
    """Fed with bytes; `take` gives the body as far as it has come, `whole` all of it at its end. `status` is 0 until the head is there."""

    __slots__ = (
        "_body",
        "_form",
        "_left",
        "_max_bytes",
        "_raw",
        "_trailing",
        "_zipped",
        "ended",
        "lasting",
        "retry_after",
        "status",
        "warnings",
    )

    def __init__(self, max_bytes: int | None = None) -> None:
        """Without `max_bytes` the body may be of any length."""
        self.status = 0
        self.retry_after = ""
        self.warnings: tuple[str, ...] = ()
        self.lasting = True  #: the connection serves another call after this
        self.ended = False
        self._raw = bytearray()
        self._body = bytearray()
        self._form = _Form.LENGTH
        self._left = 0  #: bytes of the body, or of the chunk and the line break after it, still to come
        self._trailing = False  #: after the last chunk
        self._zipped = False
        self._max_bytes = max_bytes

    def feed(self, data: bytes | memoryview) -> None:
        """Raises ValueError if it is not HTTP, and TooLong."""
        self._raw += data
        if self.status == 0 and not self._head():
            return
        if self._form is _Form.CHUNKS:
            self._chunks()
        elif self._form is _Form.LENGTH:
            part = self._raw[: self._left]
            self._body += part
            self._left -= len(part)
            self._raw.clear()
            self.ended = self._left == 0
        else:
            self._body += self._raw
            self._raw.clear()
        if self._max_bytes is not None and len(self._body) > self._max_bytes:
            raise TooLong(self._max_bytes)

    def take(self) -> bytes:
        """What came since it was last asked."""
        body = bytes(self._body)
        self._body.clear()
        return body

    def whole(self) -> bytes:
        """The body, unzipped if need be. Raises OSError."""
        body = self.take()
        try:
            return self._unzipped(body) if self._zipped and body else body
        except zlib.error as error:
            raise ConnectionError(f"the answer cannot be unzipped: {error}") from error

    def _unzipped(self, body: bytes) -> bytes:
        if self._max_bytes is None:
            told = int.from_bytes(body[-4:], "little")  # how much it was, but for multiples of 4 GiB: room for it is made at once
            return zlib.decompress(body, GZIP, min(told, MOST_ZIPPED * len(body)))
        opening = zlib.decompressobj(GZIP)
        found = opening.decompress(body, self._max_bytes)
        if opening.unconsumed_tail:
            raise TooLong(self._max_bytes)
        return found

    def cut(self) -> None:
        """The connection ended; some answers end so."""
        self.ended = self.ended or (self.status != 0 and self._form is _Form.CLOSE)

    def _head(self) -> bool:
        """Read it if it is there, past those of 1xx, which come before the answer itself."""
        raw = self._raw
        end = raw.find(b"\r\n\r\n")
        if end < 0:
            if len(raw) > LONGEST_HEAD:
                raise ValueError("a head without an end")
            return False
        if raw[:5] != b"HTTP/":
            raise ValueError("not HTTP")
        status = int(raw[9:12])
        if status < 200:
            del raw[: end + 4]
            return self._head()
        self.lasting = raw[:8] != b"HTTP/1.0" and not _CLOSE.search(raw, 0, end)
        retry_after = _RETRY_AFTER.search(raw, 0, end)
        self.retry_after = retry_after[1].decode("latin-1").strip() if retry_after else ""
        self.warnings = tuple(re.sub(r"\\(.)", r"\1", text.decode(errors="replace")) for text in _WARNING.findall(raw, 0, end))
        self._zipped = _ZIPPED.search(raw, 0, end) is not None
        if status not in (204, 304):
            if _CHUNKED.search(raw, 0, end):
                self._form = _Form.CHUNKS
            elif length := _LENGTH.search(raw, 0, end):
                self._left = int(length[1])
            else:
                self._form, self.lasting = _Form.CLOSE, False
        del raw[: end + 4]
        self.status = status
        return True

    def _chunks(self) -> None:
        raw, at = self._raw, 0
        with memoryview(raw) as view:
            while not self.ended:
                if self._left:
                    part = min(self._left, len(raw) - at)
                    self._body += view[at : at + min(part, max(self._left - 2, 0))]
                    self._left -= part
                    at += part
                    if self._left:
                        break
                line = raw.find(b"\r\n", at)
                if line < 0:
                    break
                if self._trailing:
                    self.ended = line == at
                else:
                    size = int(raw[at:line].split(b";", 1)[0], 16)
                    self._trailing, self._left = size == 0, size + 2 if size else 0
                at = line + 2
        del raw[:at]
