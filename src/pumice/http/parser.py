"""HTTP/1.1 as a state machine over bytes: heads, and the three forms of a body. It does no I/O, and does not know which side it serves.

Both sides read through it, so a message ends for both at the same byte. It is strict: a message is refused if two parsers could disagree
about where it ends. Lines end with CR LF only, contain no control character except the tab, and are not continued on the next line. The
length of a body is stated once and in one way: Content-Length, or Transfer-Encoding "chunked". Every number is written in ASCII digits and
nothing else, and everything that a peer could make long has a limit: lines, heads, sizes, trailers, and the time that it asks to wait.
"""

import re
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import Final

MAX_HEAD = 64 * 1024
MAX_LINES = 256
MOST_KEPT = 2048  #: bytes of header lines that are kept as they were read: a client sends the same ones with most requests
MAX_CHUNK_LINE = 256
MAX_TRAILERS = 8 * 1024  #: bytes of the lines after the last chunk, which are read over
LONGEST_WAIT_S = 60.0  #: that a peer may ask for: whoever waited longer would be taken for dead

_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")  #: all except the tab
_CONTROLS = "a control character stands in the head of the message"
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,8})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?\Z")
_TRAILER = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\Z")
_SIZE = re.compile(r"[0-9]{1,12}\Z")
_SECONDS = re.compile(r"[0-9]+\Z")
#: headers that may stand in one line only
_WITH_COMMAS = "impersonate-"  #: headers whose values may have commas: if one is sent several times, its values are lines
_ONCE = frozenset({"host", "content-length", "transfer-encoding", "content-type", "authorization", "expect", "impersonate-user"})


class Malformed(Exception):
    """A message is not well-formed HTTP. `code` is the status for a request like that. The connection is of no further use."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class BodyTooLong(Exception):
    """A body has, or says that it will have, more bytes than are taken."""


class Framing(Enum):
    """How the end of a body is marked, if it is not by its length."""

    CHUNKS = 1
    CLOSE = 2  #: by the end of the connection


class Head:
    """The first line of a message, and its headers by their names in lower case. Lines of one name are joined with commas."""

    __slots__ = ("first", "headers")

    def __init__(self, text: bytes) -> None:
        first, _, lines = text.partition(b"\r\n")
        if _CONTROL.search(first):
            raise Malformed(400, _CONTROLS)
        self.first = first.decode("latin-1")
        self.headers: Mapping[str, str] = (_kept_headers if len(lines) <= MOST_KEPT else _headers)(lines)

    def framing(self, version: str, unstated: Framing | int) -> Framing | int:
        """How the body is marked, or its length; `unstated` if the head says nothing about it."""
        coding, length = self.headers.get("transfer-encoding"), self.headers.get("content-length")
        if coding is None:
            if length is None:
                return unstated
            if not _SIZE.match(length):
                raise Malformed(400, "the length of the body is malformed")
            return int(length)
        if version == "HTTP/1.0" or length is not None:
            raise Malformed(400, "Transfer-Encoding has no place beside Content-Length, or in HTTP/1.0")
        if coding.lower() != "chunked":
            raise Malformed(501, f"transfer encoding {coding} is not known")
        return Framing.CHUNKS


def _headers(text: bytes) -> Mapping[str, str]:
    """The headers in these lines. Raises Malformed."""
    headers: dict[str, str] = {}
    lines = text.split(b"\r\n") if text else []
    if len(lines) > MAX_LINES:
        raise Malformed(431, f"the head of the message has more than {MAX_LINES} lines")
    if _CONTROL.search(text.replace(b"\r\n", b"")):
        raise Malformed(400, _CONTROLS)
    for line in lines:
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon or not _NAME.match(name):
            raise Malformed(400, "a header line is malformed")
        name, value = name.lower(), value.strip(" \t")
        if name in headers:
            if name in _ONCE:
                raise Malformed(400, f"the header {name} stands twice")
            between = "\n" if name.startswith(_WITH_COMMAS) else ", "
            value = f"{headers[name]}{between}{value}"
        headers[name] = value
    return headers


_kept_headers = lru_cache(maxsize=512)(_headers)


def take_head(raw: bytearray) -> Head | None:
    """The head at the start of the bytes, which are taken from them; None if it is not complete. Raises Malformed."""
    end = raw.find(b"\r\n\r\n", 0, MAX_HEAD)
    if end < 0:
        if len(raw) >= MAX_HEAD:
            raise Malformed(431, "the head of the message is too long")
        if raw.count(b"\n") != raw.count(b"\r\n"):
            raise Malformed(400, "a line ends without CR")
        return None
    head = Head(bytes(raw[:end]))
    del raw[: end + 4]
    return head


_AFTER_CHUNK: Final = b"\r\n"


class Body:
    """The body of a message, which is moved piece by piece from the received bytes into `data`. Whoever has used `data` may clear it."""

    __slots__ = ("_framing", "_left", "_most", "_size", "_trailing", "data", "ended")

    def __init__(self, framing: Framing | int, most: int | None = None) -> None:
        """Of at most `most` bytes. Raises BodyTooLong if it says that it has more."""
        self.data = bytearray()
        self.ended = framing == 0
        self._framing = framing
        self._most = most
        self._size = 0  #: bytes of the body so far, with those that the present chunk has still to bring
        self._left = 0  #: bytes of the body or of the chunk that are still to come
        self._trailing = -1  #: bytes of the lines after the last chunk; negative before it
        if isinstance(framing, int):
            self._left = framing
            self._grow(framing)

    def read(self, raw: bytearray) -> None:
        """Take from the bytes what belongs to the body; what follows it is left. Raises Malformed and BodyTooLong."""
        if self._framing is Framing.CHUNKS:
            self._read_chunks(raw)
        elif self._framing is Framing.CLOSE:
            self._grow(len(raw))
            self.data += raw
            raw.clear()
        elif not self.ended:
            self._take(raw)
            self.ended = self._left == 0

    def close(self) -> None:
        """Note that the connection has ended. This ends a body without a length and without chunks."""
        self.ended = self.ended or self._framing is Framing.CLOSE

    def _grow(self, count: int) -> None:
        self._size += count
        if self._most is not None and self._size > self._most:
            raise BodyTooLong

    def _take(self, raw: bytearray) -> None:
        part = raw[: self._left]
        self.data += part
        self._left -= len(part)
        del raw[: len(part)]

    def _read_chunks(self, raw: bytearray) -> None:
        while not self.ended:
            if self._left:
                if len(raw) < self._left + 2:
                    self._take_but_the_end(raw)
                    return
                if raw[self._left : self._left + 2] != _AFTER_CHUNK:
                    raise Malformed(400, "a chunk has not the size it says")
                self._take(raw)
                del raw[:2]
            if not self._next_line(raw):
                return

    def _take_but_the_end(self, raw: bytearray) -> None:
        """Take what has arrived of a chunk, and leave its last byte: the chunk is complete only with the line break after it."""
        part = raw[: min(len(raw), self._left - 1)]
        self.data += part
        self._left -= len(part)
        del raw[: len(part)]

    def _next_line(self, raw: bytearray) -> bool:
        """Read the size of a chunk, or a line after the last chunk. Return whether there was a whole line."""
        end = raw.find(b"\r\n", 0, MAX_CHUNK_LINE if self._trailing < 0 else MAX_TRAILERS)
        if end < 0:
            if len(raw) >= (MAX_CHUNK_LINE if self._trailing < 0 else MAX_TRAILERS):
                raise Malformed(400, "a line between chunks is too long")
            return False
        if self._trailing < 0:
            line = _CHUNK_LINE.match(raw, 0, end)
            if line is None:
                raise Malformed(400, "the size of a chunk is malformed")
            self._left = int(line[1], 16)
            self._grow(self._left)
            self._trailing = 0 if self._left == 0 else -1
        elif end == 0:
            self.ended = True
        else:
            self._trailing += end + 2
            if self._trailing > MAX_TRAILERS or _TRAILER.match(raw, 0, end) is None:
                raise Malformed(400, "the lines after the last chunk are malformed")
        del raw[: end + 2]
        return True


def waiting_time_s(retry_after: str) -> float | None:
    """The seconds that a Retry-After asks for, at most LONGEST_WAIT_S; None if it states none in digits."""
    if not _SECONDS.match(retry_after):
        return None
    return LONGEST_WAIT_S if len(retry_after) > 3 else min(float(retry_after), LONGEST_WAIT_S)
