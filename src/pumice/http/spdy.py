"""SPDY/3.1, as much of it as kubectl speaks when it forwards ports, or runs commands with an older client: the server's side, without I/O.

A connection carries streams, which the client opens with headers. There is no flow control, as in the clients. Headers are compressed with
a dictionary that both sides know.
"""

import zlib
from typing import NamedTuple

MOST = 1024 * 1024  #: bytes of a frame
MOST_STREAMS = 256  #: open at a time on one connection
SYN_STREAM, SYN_REPLY, RST_STREAM, PING, GOAWAY = 1, 2, 3, 6, 7
FIN = 1

_WORDS = """options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow authorization
cache-control connection content-base content-encoding content-language content-length content-location content-md5 content-range
content-type date etag expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified location
max-forwards pragma proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade user-agent
vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie keep-alive origin"""
_TEXT = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found"
    "500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,public"
    "privatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _counted(text: bytes) -> bytes:
    return len(text).to_bytes(4, "big") + text


DICTIONARY = b"".join(_counted(word.replace("_", " ").encode()) for word in _WORDS.split()) + _TEXT.encode()


class BadSpdyFrame(Exception):
    """The client broke the protocol."""


class Opened(NamedTuple):
    """A new stream, with its headers by their names in lower case."""

    stream: int
    headers: dict[str, str]


class Data(NamedTuple):
    stream: int
    data: bytes


class Ended(NamedTuple):
    """The client sends no more on a stream."""

    stream: int
    reset: bool


Event = Opened | Data | Ended


class Frames:
    """One connection: what the client's bytes say, and the bytes that answer."""

    def __init__(self) -> None:
        self._raw = bytearray()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._deflate = zlib.compressobj(zdict=DICTIONARY)
        self._open: set[int] = set()
        self.answers = bytearray()  #: that the protocol itself owes the client; whoever has sent them clears them

    def read(self, data: bytes) -> list[Event]:
        """What has happened on the streams. Raises BadFrame."""
        self._raw += data
        events: list[Event] = []
        while len(self._raw) >= 8:
            size = int.from_bytes(self._raw[5:8], "big")
            if size > MOST:
                raise BadSpdyFrame("a frame is too long")
            if len(self._raw) < 8 + size:
                break
            head, flags, body = int.from_bytes(self._raw[:4], "big"), self._raw[4], bytes(self._raw[8 : 8 + size])
            del self._raw[: 8 + size]
            if head >> 31:
                events += self._control(head & 0xFFFF, flags, body)
            elif head in self._open:
                events += [Data(head, body)] if body else []
                events += [Ended(head, False)] if flags & FIN else []
        return events

    def _control(self, kind: int, flags: int, body: bytes) -> list[Event]:
        if kind == PING:
            self.answers += _control(PING, body)
        if kind not in (SYN_STREAM, RST_STREAM):
            return []
        if len(body) < (10 if kind == SYN_STREAM else 8):
            raise BadSpdyFrame("a frame is too short")
        stream = int.from_bytes(body[:4], "big") & 0x7FFFFFFF
        if kind == RST_STREAM:
            self._open.discard(stream)
            return [Ended(stream, True)]
        if stream in self._open or len(self._open) >= MOST_STREAMS:
            raise BadSpdyFrame("too many streams")
        self._open.add(stream)
        return [Opened(stream, self._headers(body[10:])), *([Ended(stream, False)] if flags & FIN else [])]

    def _headers(self, packed: bytes) -> dict[str, str]:
        try:
            text = self._inflate.decompress(packed, MOST)
        except zlib.error as error:
            raise BadSpdyFrame(str(error)) from None
        fields, place = [], 4
        while place < len(text):
            end = place + 4 + int.from_bytes(text[place : place + 4], "big")
            fields.append(text[place + 4 : end].decode("latin-1"))
            place = end
        return {name.lower(): value for name, value in zip(fields[::2], fields[1::2], strict=False)}

    def reply(self, stream: int) -> bytes:
        """Accept a stream, without headers."""
        packed = self._deflate.compress(b"\0\0\0\0") + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return _control(SYN_REPLY, stream.to_bytes(4, "big") + packed)

    def data(self, stream: int, data: bytes, last: bool = False) -> bytes:
        return stream.to_bytes(4, "big") + bytes((FIN if last else 0,)) + len(data).to_bytes(3, "big") + data

    def forget(self, stream: int) -> None:
        """A stream has ended on both sides."""
        self._open.discard(stream)

    def going_away(self) -> bytes:
        return _control(GOAWAY, bytes(8))


def _control(kind: int, body: bytes) -> bytes:
    return bytes((0x80, 3)) + kind.to_bytes(2, "big") + b"\0" + len(body).to_bytes(3, "big") + body
