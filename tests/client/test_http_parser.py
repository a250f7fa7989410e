"""One parser reads requests and answers: the same however the bytes are split, strict in every number, and with a limit for everything."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given, strategies as st

from pumice.client.client import asked_delay_s
from pumice.client.failures import api_error
from pumice.http.connection import MOST_INTERIM, Reply, TooLong
from pumice.http.parser import (
    LONGEST_WAIT_S,
    MAX_CHUNK_LINE,
    MAX_HEAD,
    MAX_LINES,
    MAX_TRAILERS,
    Body,
    BodyTooLong,
    Framing,
    Malformed,
    take_head,
    waiting_time_s,
)

LARGEST = 20  #: bytes of a body in these tests
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

# The grammar: messages that are right, and in each place values that are not.

FIRST_LINES = [b"HTTP/1.1 200 OK", b"HTTP/1.0 200 OK", b"GET / HTTP/1.1", b"", b"HTTP/1.1 100 Continue", b"HTTP/2 200", b"\xff"]
NUMBERS = [b"0", b"3", b"5", b"05", b"", b"-6", b"+5", b"-0", b"0x5", b"1_0", b" 5", b"5 ", b"5,5", b"99", b"9" * 13, b"5;x=y"]
NUMBERS.append("\u0665".encode())
ENDS = [b"\r\n", b"\n", b"\r", b""]
BODIES = [b"", b"abc", b"hello", b"a\r\nb", b"\r\n", b"0\r\n\r\n", b"x" * 30]
HEADERS = [b"A: b", b"a:b", b"A : b", b": b", b"A", b" folded", b"A: \x00", b"Transfer-Encoding: gzip", b"Content-Encoding: gzip"]
LENGTHS = st.sampled_from(NUMBERS).map(lambda number: b"Content-Length: " + number)
CODINGS = st.sampled_from([b"Transfer-Encoding: chunked", b"transfer-encoding:Chunked", b"Transfer-Encoding: chunked, chunked"])
END = st.sampled_from(ENDS[:1] * 9 + ENDS[1:])  # mostly right
CHUNKS = st.lists(st.builds(lambda *parts: b"".join(parts), st.sampled_from(NUMBERS), END, st.sampled_from(BODIES), END), max_size=3)
LAST = st.sampled_from([b"0\r\n\r\n", b"0\r\nA: b\r\n\r\n", b"0\r\nno trailer\r\n\r\n", b"00\r\n\r\nmore", b"0\r\n", b""])
HEAD = st.builds(
    lambda first, lines, end: end.join([first, *lines]) + b"\r\n\r\n",
    st.sampled_from(FIRST_LINES[:1] * 5 + FIRST_LINES),
    st.lists(st.sampled_from(HEADERS) | LENGTHS | CODINGS, max_size=3),
    END,
)
BODY = st.sampled_from(BODIES) | st.builds(lambda chunks, last: b"".join([*chunks, last]), CHUNKS, LAST)
MESSAGE = st.builds(lambda head, body: head + body, HEAD, BODY)


def read(pieces: list[bytes], unstated: Framing | int) -> tuple[object, ...]:
    """What the parser makes of the bytes: the head, the body, whether it has ended, and what is left; or how it refuses them."""
    raw, head, body = bytearray(), None, None
    try:
        for piece in pieces:
            raw += piece
            if head is None:
                if (head := take_head(raw)) is None:
                    continue
                body = Body(head.framing(head.first[:8], unstated), LARGEST)
            assert body is not None
            body.read(raw)
    except Malformed as error:
        return "malformed", error.code
    except BodyTooLong:
        return ("too long",)
    if body is None or head is None:
        return "unfinished", bytes(raw)
    rest = bytes(raw) if body.ended else bytes(body.data + raw)
    return head.first, head.headers, bytes(body.data) if body.ended else b"", body.ended, rest


@given(MESSAGE, st.sampled_from([0, Framing.CLOSE]))
def test_a_message_is_the_same_however_its_bytes_are_split(message: bytes, unstated: Framing | int) -> None:
    whole = read([message], unstated)
    if whole[0] in ("malformed", "too long"):
        whole_kinds = {"malformed", "too long"}  # which of two faults is met first depends on what has arrived
    else:
        whole_kinds = set()
    for splits in [[message[:at], message[at:]] for at in range(len(message))] + [[bytes([byte]) for byte in message]]:
        found = read(splits, unstated)
        assert found == whole or (found[0] in whole_kinds)


@pytest.mark.parametrize("size", [b"-6", b"+5", b"0x5", b"1_0", b"-0", b" 5", b"", "\u0665".encode(), b"5\x00", b"100000000", b"5 5"])
def test_the_size_of_a_chunk_is_hexadecimal_digits_and_nothing_else(size: bytes) -> None:
    """With "-6" the client read the same line for ever."""
    with pytest.raises(Malformed):
        Reply().feed(CHUNKED + size + b"\r\nhello\r\n0\r\n\r\n")


@pytest.mark.parametrize(
    "endless",
    [
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * (MAX_LINES + 1) + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * MAX_HEAD,
        CHUNKED + b"1;" + b"x" * MAX_CHUNK_LINE,
        CHUNKED + b"0\r\nX: " + b"y" * MAX_TRAILERS,
        CHUNKED + b"0\r\n" + b"X: y\r\n" * MAX_TRAILERS,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 2000,
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 2\xc2\xb20 OK\r\n\r\n",
        b"HTTP/1.1 +20 OK\r\n\r\n",
    ],
    ids=lambda text: f"{text[:40]!r}",
)
def test_what_has_no_end_or_two_meanings_is_refused(endless: bytes) -> None:
    with pytest.raises(Malformed):
        Reply().feed(endless)


def test_some_heads_may_come_before_an_answer_in_one_piece() -> None:
    reply = Reply()
    reply.feed(b"HTTP/1.1 100 Continue\r\n\r\n" * MOST_INTERIM + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    assert reply.ended and reply.whole() == b"ok" and reply.lasting


def test_a_connection_on_which_more_came_than_was_asked_for_is_not_used_again() -> None:
    reply = Reply()
    reply.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK")
    assert reply.ended and reply.whole() == b"ok" and not reply.lasting


def zipped(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def test_an_answer_is_unzipped_no_further_than_its_caller_allows() -> None:
    bomb = gzip.compress(bytes(10_000_000))
    reply = Reply(1_000_000)
    reply.feed(zipped(bomb))
    with pytest.raises(TooLong):
        reply.whole()


@pytest.mark.parametrize("cut", [1, 4, 8, 12])
def test_half_of_a_zipped_answer_is_no_answer(cut: int) -> None:
    reply = Reply()
    reply.feed(zipped(gzip.compress(b"hello" * 99)[:-cut]))
    with pytest.raises((ConnectionError, zlib.error)):
        reply.whole()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        ("60", 60.0),
        ("000", 0.0),
        ("0", 0.0),
        ("9" * 400, LONGEST_WAIT_S),
        ("99999", LONGEST_WAIT_S),
        ("-1", None),
        ("+1", None),
        ("1.5", None),
        ("1_0", None),
        ("\u0661", None),
        ("", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
    ],
)
def test_a_server_may_ask_to_wait_for_a_minute_at_most(text: str, seconds: float | None) -> None:
    assert waiting_time_s(text) == seconds
    assert asked_delay_s(api_error(503, b"{}", text)) == (seconds or 0.0)


@pytest.mark.parametrize(("stated", "seconds"), [("1e300", LONGEST_WAIT_S), ("5", 5.0), ("-5", 0.0)])
def test_the_seconds_in_a_status_have_the_same_limit(stated: str, seconds: float) -> None:
    assert asked_delay_s(api_error(503, b'{"details": {"retryAfterSeconds": %s}}' % stated.encode())) == seconds
