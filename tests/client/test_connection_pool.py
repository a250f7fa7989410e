"""An answer is read as HTTP says, however its bytes arrive, and goes to the call that asked for it and to no other."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from aloop import run
from hypothesis import given, settings, strategies as st

from pumice.http.connection import Answer
from pumice.http.connection_pool import ConnectionPool, NotConnected, fetch
from pumice.http.listener import Listener
from tests.samples import times

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n"
HELLO = Answer(200, "", b"hello")
TOLD = Answer(204, "", b"", ('field "a" is old', "and"))
ZIPPED = gzip.compress(b"hello", mtime=0)


def zipped(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def served(
    answers: list[bytes],
    story: Callable[[ConnectionPool, list[int]], Coroutine[Any, Any, None]],
    *,
    pieces: int = 1 << 20,
    hang: bool = False,
) -> None:
    """A server that gives these answers one after the other, then closes; `connections` counts the requests of each connection."""
    connections: list[int] = []
    left = iter(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(connections)
        connections.append(0)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                connections[number] += 1
                answer = next(left)
                for start in range(0, len(answer), pieces):
                    writer.write(answer[start : start + pieces])
                    await writer.drain()
                    await asyncio.sleep(0)
                if not answer or b"until the end" in answer:
                    break
            if hang:
                await reader.read()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def whole() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        pool = ConnectionPool(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        try:
            async with server:
                await story(pool, connections)
                pool.close()
                await asyncio.sleep(0.01)
        finally:
            pool.close()

    run(whole())


async def ask(pool: ConnectionPool, timeout_s: float = 5.0) -> Answer:
    return await pool.ask("GET", "/", b"", None, None, timeout_s)


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        (OK, HELLO),
        (CHUNKED, HELLO),
        (zipped(ZIPPED), HELLO),
        (zipped(gzip.compress(b"hello" * 9999)), Answer(200, "", b"hello" * 9999)),
        (zipped(b""), Answer(200, "", b"")),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, HELLO),
        (b"HTTP/1.1 204 No Content\r\n\r\n", Answer(204, "", b"")),
        (b"HTTP/1.1 429 Slow Down\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n", Answer(429, "7", b"")),
        (b'HTTP/1.1 204 Fine\r\nWarning: 299 - "field \\"a\\" is old"\r\nWarning: 299 b "and"\r\n\r\n', TOLD),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", Answer(200, "", b"until the end")),
    ],
)
@pytest.mark.parametrize("pieces", [1, 7, 1000])
def test_answers_are_read_whatever_their_form_and_their_pieces(answer: bytes, read: Answer, pieces: int) -> None:
    async def story(pool: ConnectionPool, connections: list[int]) -> None:
        assert await ask(pool) == read

    served([answer], story, pieces=pieces)


@settings(max_examples=times(8), deadline=None)
@given(st.lists(st.sampled_from([OK, CHUNKED]), min_size=1, max_size=5), st.integers(1, 40))
def test_one_connection_serves_one_call_after_the_other(answers: list[bytes], pieces: int) -> None:
    async def story(pool: ConnectionPool, connections: list[int]) -> None:
        for _ in answers:
            assert await ask(pool) == HELLO
        assert connections == [len(answers)]

    served(answers, story, pieces=pieces)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        OK[:-2],
        CHUNKED[:-5],
        zipped(ZIPPED[:-9]),
        zipped(ZIPPED[:-4] + b"\xff\xff\xff\xff"),
        zipped(b"hello"),
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    ],
)
def test_half_an_answer_is_a_lost_connection(answer: bytes) -> None:
    async def story(pool: ConnectionPool, connections: list[int]) -> None:
        with pytest.raises(OSError):
            await ask(pool, timeout_s=0.2)
        assert await ask(pool) == HELLO and len(connections) == 2

    served([answer, OK], story)


def test_a_late_answer_reaches_nobody() -> None:
    async def story(pool: ConnectionPool, connections: list[int]) -> None:
        with pytest.raises(TimeoutError):
            await ask(pool, timeout_s=0.05)
        assert await ask(pool) == HELLO and connections == [1, 1]

    served([OK[:20], OK], story, hang=True)


def test_a_cancelled_call_takes_its_connection_with_it() -> None:
    async def story(pool: ConnectionPool, connections: list[int]) -> None:
        call = asyncio.create_task(ask(pool))
        while not connections or not connections[0]:
            await asyncio.sleep(0.001)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await ask(pool) == HELLO and connections == [1, 1]

    served([OK[:20], OK], story, hang=True)


def test_a_connection_that_the_server_will_close_is_not_used_again() -> None:
    async def story(pool: ConnectionPool, connections: list[int]) -> None:
        assert (await ask(pool)).body == b"" and await ask(pool) == HELLO
        assert connections == [1, 1]

    served([b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", OK], story)


def test_calls_at_the_same_time_have_a_connection_each() -> None:
    async def story(pool: ConnectionPool, connections: list[int]) -> None:
        assert await asyncio.gather(*(ask(pool) for _ in range(5))) == [HELLO] * 5
        assert connections == [1] * 5

    served([OK] * 5, story)


def test_an_answer_may_be_listened_to_as_it_comes() -> None:
    async def story(pool: ConnectionPool, connections: list[int]) -> None:
        heard = [part async for part in pool.listen("/", b"", None, 5.0)]
        assert heard[0].status == 200 and b"".join(part.body for part in heard) == b"hello" and len(heard) > 2
        await asyncio.sleep(0)
        assert await ask(pool) == HELLO and connections == [1, 1]

    served([CHUNKED, OK], story, pieces=1)


def test_what_came_while_nobody_listened_is_not_waited_for() -> None:
    async def story(pool: ConnectionPool, connections: list[int]) -> None:
        heard = b""
        async for part in pool.listen("/", b"", None, 5.0):
            heard += part.body
            await asyncio.sleep(0.05)
        assert heard == b"hello"

    served([CHUNKED], story, hang=True)


def test_a_silent_answer_and_one_that_breaks_off_are_failures() -> None:
    async def heard(pool: ConnectionPool, idle_s: float) -> None:
        async for part in pool.listen("/", b"", None, idle_s):
            assert part.status == 200

    async def story(pool: ConnectionPool, connections: list[int]) -> None:
        with pytest.raises(TimeoutError):
            await heard(pool, 0.05)

    served([CHUNKED[:-5]], story, hang=True)

    async def cut(pool: ConnectionPool, connections: list[int]) -> None:
        with pytest.raises(ConnectionError):
            await heard(pool, 5.0)

    served([b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nuntil the end"], cut)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_one_call_without_a_pool_may_be_plain_or_by_tls(scheme: str) -> None:
    with pytest.raises(ConnectionError):
        run(fetch(f"{scheme}://127.0.0.1:1/", timeout_s=15.0))


def test_who_talks_no_http_is_told_so() -> None:
    async def story() -> bytes:
        async with Listener("127.0.0.1:0", {}) as listener:
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            writer.write(b"HELO\r\n\r\n")
            told = await reader.read(1000)
            writer.close()
            return told

    assert run(story()).startswith(b"HTTP/1.1 400 ")


def test_nobody_at_home_is_not_connected() -> None:
    with pytest.raises(NotConnected):
        run(ask(ConnectionPool("http://127.0.0.1:1")))
