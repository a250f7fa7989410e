"""What a program serves over HTTP beside its work.

/healthz, /livez   the event loop answers, this replica has not lost its lead, and its cycles end
/readyz            this replica waits for the lead, or it leads and has read the cluster; of the scheduler: and the first queues are there
/metrics           the metrics in Prometheus' text format: of the program, and of its process
/debug/pod         of the scheduler: all that is remembered of one pod (live/scheduler/debug_pod.py)
/debug/state       the state as a file for `pumice cycle -f`, to requests from this machine only: it holds the pods of all users
"""

import ssl
from collections.abc import Callable
from typing import Protocol

from pumice.http.listener import Handler, Listener
from pumice.http.messages import Request, Response
from pumice.http.metrics import CONTENT_TYPE
from pumice.http.process_metrics import ProcessMetrics

Routes = dict[str, Handler]
_process = ProcessMetrics()


class Probed(Protocol):
    """A program that answers liveness and readiness probes."""

    def alive(self) -> str:
        """What is wrong; empty if nothing is."""

    def ready(self) -> str: ...


class Measured(Protocol):
    def metrics(self) -> str: ...


class SchedulerStatus(Probed, Protocol):
    """A scheduler that answers over HTTP. Answers that show the kept state wait for the end of a cycle."""

    async def metrics(self) -> str: ...

    async def state(self) -> bytes: ...


def probes(status: Probed) -> Routes:
    return {"/healthz": _probe(status.alive), "/livez": _probe(status.alive), "/readyz": _probe(status.ready)}


def measures(status: Measured) -> Routes:
    return {"/metrics": lambda _: _page(status.metrics())}


def insights(status: SchedulerStatus) -> Routes:
    async def metrics(_: Request) -> Response:
        return _page(await status.metrics())

    async def state(request: Request) -> Response:
        if not request.local:
            return Response.text("the state is told over loopback only: kubectl port-forward leads there", 403)
        return Response(await status.state())

    return {"/metrics": metrics, "/debug/state": state}


def _page(text: str) -> Response:
    return Response((text + _process.page()).encode(), content_type=CONTENT_TYPE)


def listeners(metrics_address: str, measured: Routes, healthz_address: str, probed: Routes, tls: ssl.SSLContext | None) -> list[Listener]:
    """A listener for each address that is given, or one if both are the same. `tls` is for the health address."""
    if metrics_address and metrics_address == healthz_address:
        return [Listener(metrics_address, {**probed, **measured}, tls)]
    servers = [Listener(metrics_address, measured)] if metrics_address else []
    return servers + ([Listener(healthz_address, probed, tls)] if healthz_address else [])


def _probe(question: Callable[[], str]) -> Handler:
    def answer(_: Request) -> Response:
        wrong = question()
        return Response.text(wrong or "ok", 500 if wrong else 200)

    return answer
