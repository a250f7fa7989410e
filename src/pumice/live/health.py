"""What is served over HTTP beside scheduling: probes, metrics, the state.

/healthz, /livez   the loop answers, this replica has not lost its lead, and its cycles come to an end
/readyz            it stands by, or leads and has read the cluster
/metrics           Prometheus' text
/debug/state       the state as a file for `pumice cycle -f`, to this machine only: it holds everybody's pods
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Protocol

from pumice.http.listener import Handler, Listener
from pumice.http.messages import Request, Response
from pumice.live.exposition import CONTENT_TYPE

Routes = dict[str, Handler]


class Probed(Protocol):
    """What probes ask about."""

    def alive(self) -> str:
        """Empty, or what is wrong."""

    def ready(self) -> str: ...


class Measured(Protocol):
    def metrics(self) -> str: ...


class Status(Probed, Protocol):
    """What a scheduler is asked about. What shows the kept state waits for the end of a cycle."""

    async def metrics(self) -> str: ...

    async def state(self) -> bytes: ...


def probes(status: Probed) -> Routes:
    return {"/healthz": _probe(status.alive), "/livez": _probe(status.alive), "/readyz": _probe(status.ready)}


def measures(status: Measured) -> Routes:
    return {"/metrics": lambda _: _page(status.metrics())}


def insights(status: Status) -> Routes:
    async def metrics(_: Request) -> Response:
        return _page(await status.metrics())

    async def state(request: Request) -> Response:
        if not request.local:
            return Response.text("the state is told over loopback only: kubectl port-forward leads there", 403)
        return Response(await status.state())

    return {"/metrics": metrics, "/debug/state": state}


def _page(text: str) -> Response:
    return Response(text.encode(), content_type=CONTENT_TYPE)


def listeners(metrics_address: str, measured: Routes, healthz_address: str, probed: Routes, tls: ssl.SSLContext | None) -> list[Listener]:
    """One for each address that is given, or one for both; the TLS is that of the health address."""
    if metrics_address and metrics_address == healthz_address:
        return [Listener(metrics_address, {**probed, **measured}, tls)]
    servers = [Listener(metrics_address, measured)] if metrics_address else []
    return servers + ([Listener(healthz_address, probed, tls)] if healthz_address else [])


def _probe(question: Callable[[], str]) -> Handler:
    def answer(_: Request) -> Response:
        wrong = question()
        return Response.text(wrong or "ok", 500 if wrong else 200)

    return answer
