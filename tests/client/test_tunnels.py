"""Behind a proxy, HTTPS goes in a tunnel, whatever the proxy itself speaks; the server's name is what the certificate is held against."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from base64 import b64encode
from pathlib import Path

import pytest
from aloop import run, until

from pumice.api.kinds import PODS
from pumice.client.access import Access, Fixed
from pumice.client.certificates import Authority
from pumice.client.client import Backoff, Client, Retry
from pumice.client.failures import NoAnswer
from pumice.client.tls import KeyPair, Trust
from pumice.client.transport import ListScope
from pumice.http.connection_pool import ConnectionPool

QUICK = Retry(2, Backoff(0.001, 0.01))
HEAD = b"HTTP/1.1 200 OK\r\n"
LARGE = b'{"big":"' + b"x" * 3_000_000 + b'"}'


async def api(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A large object, and a watch of two lines that come a while apart."""
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while head := await reader.readuntil(b"\r\n\r\n"):
            if b"watch=true" not in head:
                writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(LARGE) + LARGE)
                continue
            writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
            for line in (b"one\n", b"two\n"):
                await asyncio.sleep(0.05)
                writer.write(b"%x\r\n%b\r\n" % (len(line), line))
            writer.write(b"0\r\n\r\n")
    writer.close()


class Proxy:
    """Connects every CONNECT to one port. `asked` are the heads of the requests; with `refusal` it answers only that."""

    def __init__(self, target: int, refusal: bytes = b"") -> None:
        self.asked: list[bytes] = []
        self._target = target
        self._refusal = refusal

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked.append(await reader.readuntil(b"\r\n\r\n"))
        if self._refusal:
            writer.write(self._refusal)
            writer.close()
            return
        their_reader, their_writer = await asyncio.open_connection("127.0.0.1", self._target)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(self._pipe(reader, their_writer), self._pipe(their_reader, writer))

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
        writer.close()


def context(folder: Path, pair: KeyPair) -> ssl.SSLContext:
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    file = folder / "pair.pem"
    file.write_bytes(pair.certificate + pair.key)
    made.load_cert_chain(file)
    return made


async def guests_gone() -> None:
    """Servers' handlers have noticed that their connections ended."""
    await until(lambda: len(asyncio.all_tasks()) == 1)
    await asyncio.sleep(0.05)


def port(server: asyncio.Server) -> int:
    return int(server.sockets[0].getsockname()[1])


@pytest.mark.parametrize("proxy_tls", [False, True])
def test_calls_and_watches_go_through_the_tunnel(tmp_path: Path, proxy_tls: bool) -> None:
    authority = Authority(time.time(), days=1)
    tls = context(tmp_path, authority.issue("server", "kubernetes.example", "localhost"))

    async def story() -> None:
        server = await asyncio.start_server(api, "127.0.0.1", 0, ssl=tls)
        proxy = Proxy(port(server))
        listening = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, ssl=tls if proxy_tls else None)
        address = f"{'https' if proxy_tls else 'http'}://jane:s%40cret@localhost:{port(listening)}"
        access = Access("https://kubernetes.example:6443", Fixed(), Trust(authority.pem), proxy=address)
        async with server, listening:
            async with Client(access, retry=QUICK) as client:
                assert await client.get_path("/version") == LARGE == await client.get_path("/version")
                watch = client.watch(ListScope(PODS), resource_version="1", timeout_s=1, idle_s=5.0)
                lines = [line async for batch in watch for line in batch]
                assert lines == [b"one", b"two"]
            await guests_gone()
        assert len(proxy.asked) == 1, "the watch takes the connection that was free"
        assert proxy.asked[0].startswith(b"CONNECT kubernetes.example:6443 HTTP/1.1\r\n")
        assert b64encode(b"jane:s@cret") in proxy.asked[0]

    run(story())


def test_a_proxy_that_refuses_is_told_as_no_connection() -> None:
    async def story() -> None:
        proxy = Proxy(0, b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        listening = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
        access = Access("https://kubernetes.example", Fixed(), proxy=f"http://127.0.0.1:{port(listening)}")
        async with listening, Client(access, retry=QUICK) as client:
            with pytest.raises(NoAnswer, match="no connection: the proxy answered 407") as failed:
                await client.get_path("/version")
            assert not failed.value.sent
        assert proxy.asked[0].startswith(b"CONNECT kubernetes.example:443 ")

    run(story())


@pytest.mark.parametrize("proxied", [False, True])
def test_a_user_who_is_named_in_the_address_of_a_server_is_no_part_of_its_host(proxied: bool) -> None:
    """A server that goes by the host would not know this one, and a password does not belong in logs of hosts and addresses."""

    async def story() -> None:
        server = Proxy(0, HEAD + b"Content-Length: 2\r\n\r\n{}")
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        at = f"localhost:{port(listening)}"
        host = "kubernetes.example" if proxied else at
        pool = ConnectionPool(f"http://jane:secret@{host}/root", proxy=f"http://{at}" if proxied else "")
        async with listening:
            assert (await pool.ask("GET", "/version", b"", None, None, 5.0)).body == b"{}"
            pool.close()
        target = f"http://{host}/root/version" if proxied else "/root/version"
        assert server.asked == [f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()]
        await guests_gone()

    run(story())
