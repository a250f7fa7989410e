"""WebSocket (RFC 6455), the server's side: messages out of bytes and bytes out of messages, without I/O.

Strict as the parser of HTTP is: a client masks its frames, control frames are short and whole, and no message is longer than MOST bytes.
"""

import hashlib
from base64 import b64encode
from typing import NamedTuple

MOST = 1024 * 1024  #: bytes of a message
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
NORMAL, PROTOCOL_ERROR, TOO_BIG = 1000, 1002, 1009  #: why a connection is closed
_KEY = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Message(NamedTuple):
    kind: int
    data: bytes


class BadFrame(Exception):
    """The client broke the protocol. `code` is the reason to close with."""

    def __init__(self, code: int = PROTOCOL_ERROR) -> None:
        super().__init__(f"closed with {code}")
        self.code = code


def accepted(key: str) -> str:
    """The value of Sec-WebSocket-Accept that answers a client's Sec-WebSocket-Key."""
    return b64encode(hashlib.sha1(f"{key}{_KEY}".encode(), usedforsecurity=False).digest()).decode()


def frame(data: bytes, kind: int = BINARY) -> bytes:
    """A whole message as one frame."""
    size = len(data)
    if size < 126:
        head = bytes((0x80 | kind, size))
    elif size < 1 << 16:
        head = bytes((0x80 | kind, 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x80 | kind, 127)) + size.to_bytes(8, "big")
    return head + data


def closing(code: int = NORMAL) -> bytes:
    return frame(code.to_bytes(2, "big"), CLOSE)


class Messages:
    """The messages of one client, from its bytes as they arrive."""

    def __init__(self) -> None:
        self._raw = bytearray()
        self._parts = bytearray()  #: of a message in several frames
        self._kind = 0  #: of that message; 0 between messages

    def read(self, data: bytes) -> list[Message]:
        """The messages that are complete now. Raises BadFrame."""
        self._raw += data
        found = []
        while (each := self._next()) is not None:
            if each.kind >= CLOSE:
                found.append(each)
            elif (whole := self._joined(each)) is not None:
                found.append(whole)
        return found

    def _next(self) -> Message | None:
        """The next frame; its kind is negative if its message goes on after it. Its bytes are taken."""
        raw = self._raw
        if len(raw) < 2:
            return None
        kind, last, size, start = raw[0] & 15, raw[0] & 0x80, raw[1] & 127, 2
        if raw[0] & 0x70 or not raw[1] & 0x80 or kind not in (0, TEXT, BINARY, CLOSE, PING, PONG):
            raise BadFrame
        if kind >= CLOSE and (size > 125 or not last):
            raise BadFrame
        if size > 125:
            start += 2 if size == 126 else 8
            if len(raw) < start:
                return None
            size = int.from_bytes(raw[2:start], "big")
        if size > MOST:
            raise BadFrame(TOO_BIG)
        if len(raw) < start + 4 + size:
            return None
        mask, data = bytes(raw[start : start + 4]), bytes(raw[start + 4 : start + 4 + size])
        del raw[: start + 4 + size]
        return Message(kind if last else ~kind, _unmasked(mask, data))

    def _joined(self, part: Message) -> Message | None:
        """The message that ends with this frame; None if it goes on."""
        goes_on = part.kind < 0
        kind = ~part.kind if goes_on else part.kind
        if (kind == 0) != (self._kind != 0):
            raise BadFrame
        if not goes_on and kind:
            return part
        self._kind = self._kind or kind
        self._parts += part.data
        if len(self._parts) > MOST:
            raise BadFrame(TOO_BIG)
        if goes_on:
            return None
        whole = Message(self._kind, bytes(self._parts))
        self._kind = 0
        self._parts.clear()
        return whole


def _unmasked(mask: bytes, data: bytes) -> bytes:
    size = len(data)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")
