"""What is served over HTTP beside scheduling: probes, metrics, the state.

/healthz, /livez   the loop answers, and this replica has not lost its lead
/readyz            it stands by, or leads and has read the cluster
/metrics           Prometheus' text
/debug/state       the state as a file for `pumice cycle -f`
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from typing import Protocol

from aiohttp import web

from pumice.live.exposition import CONTENT_TYPE

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Probed(Protocol):
    """What probes ask about."""

    def alive(self) -> str:
        """Empty, or what is wrong."""

    def ready(self) -> str: ...


class Measured(Protocol):
    def metrics(self) -> str: ...


class Status(Probed, Measured, Protocol):
    """What a scheduler is asked about."""

    def state(self) -> bytes: ...


def probes(status: Probed) -> list[web.RouteDef]:
    return [web.get("/healthz", _probe(status.alive)), web.get("/livez", _probe(status.alive)), web.get("/readyz", _probe(status.ready))]


def measures(status: Measured) -> list[web.RouteDef]:
    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=status.metrics().encode(), headers={"Content-Type": CONTENT_TYPE})

    return [web.get("/metrics", metrics)]


def insights(status: Status) -> list[web.RouteDef]:
    async def state(_: web.Request) -> web.Response:
        return web.Response(body=status.state(), content_type="application/json")

    return [*measures(status), web.get("/debug/state", state)]


def _probe(question: Callable[[], str]) -> Handler:
    async def answer(_: web.Request) -> web.Response:
        wrong = question()
        return web.Response(text=wrong or "ok", status=500 if wrong else 200)

    return answer


class HealthServer:
    """One address and what it serves. Use it as an asynchronous context manager."""

    def __init__(self, address: str, routes: list[web.RouteDef], tls: ssl.SSLContext | None = None) -> None:
        host, _, port = address.rpartition(":")
        self._host, self._port = host.strip("[]") or None, int(port)
        self._tls = tls
        app = web.Application()
        app.router.add_routes(routes)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)

    @property
    def port(self) -> int:
        """The one that was given, or that the system chose."""
        return int(self._runner.addresses[0][1])

    async def __aenter__(self) -> HealthServer:
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port, ssl_context=self._tls).start()
        except BaseException:
            await self._runner.cleanup()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._runner.cleanup()
