"""Probes of JobFlows: asked in the background, answered from memory."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from pumice.controllers.volcano.jobflow import Probe
from pumice.live.clock import WallClock
from pumice.live.controllers.prober import Prober

CASES = {
    "http://127.0.0.1:{port}/ok": True,
    "http://127.0.0.1:{port}/moved": True,
    "http://127.0.0.1:{port}/broken": False,
    "http://127.0.0.1:{port}/guarded": False,
    "tcp://127.0.0.1:{port}": True,
    "tcp://127.0.0.1:1": False,
    "http://127.0.0.1:1/": False,
    "http://127.0.0.1:none/": False,
}


async def answer(request: web.Request) -> web.Response:
    codes = {"/ok": 200, "/moved": 302, "/broken": 500, "/guarded": 200 if request.headers.get("X-For") == "flow" else 401}
    return web.Response(status=codes[request.path])


async def found(probe: Probe) -> bool:
    """What is known once the answer has come; the first is no."""
    app = web.Application()
    app.router.add_get("/{any}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        probe = probe._replace(url=probe.url.format(port=runner.addresses[0][1]))
        async with Prober(WallClock()) as reach, asyncio.timeout(30):
            before = asyncio.all_tasks()
            assert reach(probe) is False
            (asking,) = asyncio.all_tasks() - before
            await asking
            return reach(probe)
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("url", CASES)
def test_what_answers_is_reachable(url: str) -> None:
    assert asyncio.run(found(Probe(url))) is CASES[url]


def test_a_header_that_would_break_out_of_its_line_is_not_sent() -> None:
    assert not asyncio.run(found(Probe("http://127.0.0.1:{port}/ok", ("X-For", "flow\r\nX-Evil: b"))))


def test_a_header_is_sent_along() -> None:
    assert asyncio.run(found(Probe("http://127.0.0.1:{port}/guarded", ("X-For", "flow"))))
