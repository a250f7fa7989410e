"""WebSocket and SPDY as state machines: however their bytes are split, the same is read; what breaks the protocol is refused."""

from __future__ import annotations

import contextlib
import itertools
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from pumice.cluster.apiserver.streams.remote import Command, SpdyCommand
from pumice.http import spdy, websocket
from pumice.http.messages import Request


def masked(data: bytes, kind: int = websocket.BINARY, last: bool = True, mask: bytes = b"\1\2\3\4") -> bytes:
    """A frame as clients send it."""
    size = len(data)
    length = bytes((size | 0x80,)) if size < 126 else bytes((126 | 0x80,)) + size.to_bytes(2, "big")
    return bytes((kind | (0x80 if last else 0),)) + length + mask + bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))


def test_key_is_answered_as_in_the_standard() -> None:
    assert websocket.accepted("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


@given(st.lists(st.binary(max_size=300), max_size=4), st.integers(1, 40))
def test_messages_are_the_same_however_they_are_split(bodies: list[bytes], step: int) -> None:
    sent = b"".join(
        masked(body[:5], last=False) + masked(b"p", websocket.PING) + masked(body[5:], 0) if len(body) > 5 else masked(body)
        for body in bodies
    )
    messages = websocket.Messages()
    found = [each for start in range(0, len(sent), step) for each in messages.read(sent[start : start + step])]
    assert [each.data for each in found if each.kind == websocket.BINARY] == bodies
    assert sum(each.kind == websocket.PING for each in found) == sum(len(body) > 5 for body in bodies)


@pytest.mark.parametrize(
    "sent",
    [
        websocket.frame(b"not masked"),
        masked(b"", kind=3),
        masked(b"", kind=0),
        masked(b"a", last=False) + masked(b"b"),
        masked(b"x" * 126, kind=websocket.PING),
        masked(b"", kind=websocket.CLOSE, last=False),
        bytes((0x82 | 0x40, 0x80)) + bytes(4),
        bytes((0x82, 0xFF)) + (1 << 40).to_bytes(8, "big") + bytes(4),
    ],
)
def test_frame_against_the_standard_is_refused(sent: bytes) -> None:
    with pytest.raises(websocket.BadFrame):
        websocket.Messages().read(sent)


def test_message_in_parts_is_bounded() -> None:
    messages, part = websocket.Messages(), masked(bytes(60_000), kind=0, last=False)
    messages.read(masked(b"", last=False))
    with pytest.raises(websocket.BadFrame) as refused:
        for _ in range(20):
            messages.read(part)
    assert refused.value.code == websocket.TOO_BIG


@given(st.binary(max_size=200))
def test_no_bytes_trip_the_readers(data: bytes) -> None:
    for read, fault in ((websocket.Messages().read, websocket.BadFrame), (spdy.Frames().read, spdy.BadSpdyFrame)):
        with contextlib.suppress(fault):
            read(data)


def opening(deflate: zlib._Compress, stream: int, **headers: str) -> bytes:
    text = len(headers).to_bytes(4, "big")
    for part in itertools.chain.from_iterable(headers.items()):
        text += len(part).to_bytes(4, "big") + part.encode()
    packed = deflate.compress(text) + deflate.flush(zlib.Z_SYNC_FLUSH)
    body = stream.to_bytes(4, "big") + bytes(6) + packed
    return bytes((0x80, 3, 0, spdy.SYN_STREAM, 0)) + len(body).to_bytes(3, "big") + body


@pytest.mark.parametrize("step", [1, 3, 7, 1000])
def test_streams_are_the_same_however_they_are_split(step: int) -> None:
    deflate, frames = zlib.compressobj(zdict=spdy.DICTIONARY), spdy.Frames()
    ping = bytes((0x80, 3, 0, spdy.PING, 0, 0, 0, 4, 0, 0, 0, 9))
    sent = opening(deflate, 1, streamtype="data", port="80") + opening(deflate, 3, streamType="error") + ping
    sent += frames.data(1, b"hello") + frames.data(1, b"", last=True) + frames.data(9, b"to nobody")
    events = [each for start in range(0, len(sent), step) for each in frames.read(sent[start : start + step])]
    assert events == [
        spdy.Opened(1, {"streamtype": "data", "port": "80"}),
        spdy.Opened(3, {"streamtype": "error"}),
        spdy.Data(1, b"hello"),
        spdy.Ended(1, False),
    ]
    assert bytes(frames.answers) == ping


def test_streams_and_frames_are_bounded() -> None:
    deflate, frames = zlib.compressobj(zdict=spdy.DICTIONARY), spdy.Frames()
    with pytest.raises(spdy.BadSpdyFrame, match="too many"):
        for stream in range(spdy.MOST_STREAMS + 1):
            frames.read(opening(deflate, stream, a="b"))
    with pytest.raises(spdy.BadSpdyFrame, match="too long"):
        spdy.Frames().read(bytes((0, 0, 0, 1, 0)) + b"\xff\xff\xff")


class Heard:
    """A process that notes what it gets."""

    def __init__(self) -> None:
        self.got: list[object] = []

    def start(self, out: Callable[[bytes, bool], None], done: Callable[[int], None]) -> None:
        self.got.append("begun")

    def stdin(self, data: bytes) -> None:
        self.got.append(data)

    def stdin_ended(self) -> None:
        self.got.append("ended")

    def stop(self) -> None:
        self.got.append("stopped")


def test_what_comes_before_the_last_stream_is_open_reaches_the_command_once_it_has_begun() -> None:
    deflate, frames, process = zlib.compressobj(zdict=spdy.DICTIONARY), spdy.Frames(), Heard()
    command = SpdyCommand("v4.channel.k8s.io", Command(Request("POST", "/exec?command=cat&stdin=true&stdout=true", {})), process)
    command.received(opening(deflate, 1, streamtype="error") + opening(deflate, 3, streamtype="stdin"))
    command.received(frames.data(3, b"early") + frames.data(3, b"", last=True))
    assert process.got == []
    command.received(opening(deflate, 5, streamtype="stdout"))
    assert process.got == ["begun", b"early", "ended"]
