"""How a replica of any of our programs starts, works and ends: signals, the election, concurrent work; and what it serves over HTTP.

/healthz, /livez   the event loop answers, this replica has not lost its lead, and its cycles end
/readyz            this replica waits for the lead, or it leads and has read the cluster
/metrics           the metrics in Prometheus' text format
/debug/state       the state as a file for `pumice cycle -f`, to requests from this machine only: it holds the pods of all users

Counters, gauges and histograms have the text form that Prometheus reads (`render`). A metric is a family: its children differ in the values
of its labels, which are given by position. Nothing here knows what is measured. A page may be written while another thread measures.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import ssl
import sys
import time
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Protocol

from pumice.client.leader_election import Election
from pumice.client.reflector import Reflector
from pumice.http.listener import Handler, Listener
from pumice.http.messages import Request, Response
from pumice.text_table import shown_in_line


class LostLead(Exception):
    """This replica does not lead any more, and another one may: what this one has assumed is no longer valid."""


async def first(*work: Awaitable[object]) -> None:
    """Wait until one awaitable ends, and raise its failure if it failed. The others are cancelled, except those that were tasks already."""
    tasks = [asyncio.ensure_future(each) for each in work]
    own = [task for task, each in zip(tasks, work, strict=True) if task is not each]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in own:
            task.cancel()
        await asyncio.gather(*own, return_exceptions=True)


async def while_leading(election: Election, work: Callable[[], Awaitable[object]]) -> None:
    """Wait for the lead, then work for as long as it lasts. Raises LostLead.

    The lease is released before anything is tidied up: the end of a cycle may take seconds, and whoever uninstalls us takes our role away.
    From then on the fence holds back every write.
    """
    tasks: list[asyncio.Future[Any]] = [asyncio.create_task(election.run())]
    try:
        await first(election.won.wait(), tasks[0])
        if not election.leading():
            raise LostLead
        tasks.append(asyncio.ensure_future(work()))
        await first(*tasks)
        raise LostLead
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(tasks[0], return_exceptions=True)
        await election.release()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def end_signal(others: Mapping[signal.Signals, Callable[[], object]] | None = None) -> Iterator[asyncio.Event]:
    """A context with an event that SIGTERM and SIGINT set. Other signals call the functions in `others`."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    handlers: dict[signal.Signals, Callable[[], object]] = {signal.SIGTERM: ended.set, signal.SIGINT: ended.set, **(others or {})}
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield ended
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)


# Time as an argument: the scheduler asks a clock for the time and to sleep, so that a simulated clock can take its place.


SLOWED = 0.9  #: the speed of a clock that is ahead of the machine's time


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since 1970."""

    async def sleep(self, seconds: float) -> None: ...


class WallClock:
    """The machine's time, except that it never goes back.

    When somebody sets the machine's time back, this clock runs at nine tenths of its speed until the machine's time has caught up. So
    nothing that is due in a second waits for hours.
    """

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._now, self._looked_at = wall(), monotonic()

    def now(self) -> float:
        wall, at = self._wall(), self._monotonic()
        least = self._now + SLOWED * (at - self._looked_at)
        self._looked_at = at
        self._now = wall if wall > least else least
        return self._now

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


# Log lines that machines read too: logfmt (`ts=... level=info msg="..."`) or one JSON object a line, on standard error.

FORMATS = ("logfmt", "text", "json")


class _Structured(logging.Formatter):
    def fields(self, record: logging.LogRecord) -> dict[str, str]:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        fields = {"ts": at, "level": record.levelname.lower(), "logger": record.name, "msg": record.getMessage()}
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return fields


class Logfmt(_Structured):
    def format(self, record: logging.LogRecord) -> str:
        return " ".join(f"{key}={_quoted(value)}" for key, value in self.fields(record).items())


class Json(_Structured):
    def format(self, record: logging.LogRecord) -> str:
        return shown_in_line(json.dumps(self.fields(record), ensure_ascii=False))


def _quoted(value: str) -> str:
    plain = value and not any(char in ' "=\\' or not char.isprintable() for char in value)
    return value if plain else shown_in_line(json.dumps(value, ensure_ascii=False))


def set_up(form: str, verbosity: int) -> None:
    """Set up logging. `verbosity` counts as in Kubernetes' programs: 0 logs what matters to an operator, 4 and more logs everything."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Json() if form == "json" else Logfmt())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbosity >= 4 else logging.INFO)
    logging.getLogger("asyncio").setLevel(logging.WARNING)


# At the start a program waits until the cluster has been read, and logs what it waits for.

WARN_AFTER_S = 1.0
PAUSE_S = 0.01
log = logging.getLogger(__name__)


async def synced(
    needed: Collection[Reflector[Any]], others: Collection[Reflector[Any]], timeout_s: float, seldom: Collection[Reflector[Any]] = ()
) -> None:
    """Wait until all kinds have been read; for `others` at most the time-out, and not at all for kinds that our role may not read. That
    kinds in `seldom` cannot be read is not told."""
    loop = asyncio.get_running_loop()
    began, warned = loop.time(), False
    while waits := _unread(needed, (*others, *seldom) if loop.time() - began < timeout_s else ()):
        if not warned and loop.time() - began >= WARN_AFTER_S:
            warned = True
            level = logging.WARNING if any(reflector.forbidden for reflector in waits) else logging.INFO
            log.log(level, "waiting until these have been read: %s", ", ".join(map(_with_trouble, waits)))
        await asyncio.sleep(PAUSE_S)
    if forbidden := _plurals(reflector for reflector in others if reflector.forbidden):
        log.info("our role does not let these be read, and we do without: %s", forbidden)
    if absent := _plurals(reflector for reflector in (*needed, *others) if reflector.absent):
        log.info("this server does not have these, and we do without: %s", absent)
    for reflector in others:
        if not reflector.synced.is_set() and not reflector.forbidden:
            log.error("%s cannot be read and are left out for now: %s", reflector.scope.resource.plural, reflector.trouble)


def _plurals(reflectors: Iterable[Reflector[Any]]) -> str:
    return ", ".join(sorted(reflector.scope.resource.plural for reflector in reflectors))


def _unread(needed: Collection[Reflector[Any]], others: Collection[Reflector[Any]]) -> list[Reflector[Any]]:
    missing = [reflector for reflector in needed if not reflector.synced.is_set()]
    return missing + [reflector for reflector in others if not reflector.synced.is_set() and not reflector.forbidden]


def _with_trouble(reflector: Reflector[Any]) -> str:
    plural = reflector.scope.resource.plural
    return f"{plural} ({reflector.trouble})" if reflector.trouble is not None else plural


# What is served over HTTP beside the work.

Routes = dict[str, Handler]


class Probed(Protocol):
    """A program that answers liveness and readiness probes."""

    def alive(self) -> str:
        """What is wrong; empty if nothing is."""

    def ready(self) -> str: ...


class Measured(Protocol):
    def metrics(self) -> str: ...


class Status(Probed, Protocol):
    """A scheduler that answers over HTTP. Answers that show the kept state wait for the end of a cycle."""

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


class FaultLog:
    """Logs faults of ours in work beside the cycles, each of them once. Such a fault stops nothing else."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._logged: set[str] = set()

    def exception(self, error: Exception, message: str, *arguments: object) -> None:
        fault = f"{type(error).__name__}: {error}"
        if fault not in self._logged:
            self._logged.add(fault)
            self._log.error(message, *arguments, exc_info=error)


ALIKE_LOGGED, ALIKE_WINDOW_S = 5, 600.0


class FirstOfMany:
    """Logs warnings of which many may be alike: the first of them in a while as warnings, the others for debugging only."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._logged: dict[Hashable, tuple[float, int]] = {}  #: for each kind of warning, since when it was told how often

    def warning(self, alike: Hashable, now: float, message: str, *arguments: object) -> None:
        since, count = self._logged.get(alike, (now, 0))
        if now - since > ALIKE_WINDOW_S:
            since, count = now, 0
        self._logged[alike] = since, count + 1
        more = f" (others like it are told with -v=4 only, for {ALIKE_WINDOW_S / 60:.0f} minutes)" if count + 1 == ALIKE_LOGGED else ""
        self._log.log(logging.WARNING if count < ALIKE_LOGGED else logging.DEBUG, message + more, *arguments)


Labels = tuple[str, ...]
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exponential(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Upper bounds of buckets, each `factor` times the one before."""
    return tuple(first * factor**power for power in range(count))


class Family:
    """What all metrics share."""

    kind = ""

    def __init__(self, name: str, text: str, labels: Sequence[str] = ()) -> None:
        self.name = name
        self.text = text
        self.labels = tuple(labels)

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.text}"
        yield f"# TYPE {self.name} {self.kind}"
        yield from self.samples()

    def samples(self) -> Iterator[str]:
        raise NotImplementedError

    def _line(self, name: str, values: Labels, number: float, more: Iterable[tuple[str, str]] = ()) -> str:
        pairs = [*zip(self.labels, values, strict=True), *more]
        inside = ",".join(f'{key}="{_escaped(value)}"' for key, value in pairs)
        return f"{name}{{{inside}}} {_number(number)}" if inside else f"{name} {_number(number)}"


class Counter(Family):
    """A metric that only grows."""

    kind = "counter"

    def __init__(self, name: str, text: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, text, labels)
        self._values: dict[Labels, float] = {} if labels else {(): 0.0}

    def add(self, *values: str, by: float = 1.0) -> None:
        self._values[values] = self._values.get(values, 0.0) + by

    def value(self, *values: str) -> float:
        return self._values.get(values, 0.0)

    def keep(self, wanted: Callable[[Labels], bool]) -> None:
        """Forget the children whose labels are not wanted any more."""
        self._values = {values: number for values, number in self._values.items() if wanted(values)}

    def replace(self, values: dict[Labels, float]) -> None:
        """Set all children at once, to what was counted elsewhere."""
        self._values = values

    def samples(self) -> Iterator[str]:
        return (self._line(self.name, values, number) for values, number in list(self._values.items()))


class Gauge(Family):
    """A metric that can take any number."""

    kind = "gauge"

    def __init__(self, name: str, text: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, text, labels)
        self._values: dict[Labels, float] = {}

    def set(self, number: float, *values: str) -> None:
        self._values[values] = number

    def value(self, *values: str) -> float:
        return self._values.get(values, 0.0)

    def drop(self, *values: str) -> None:
        self._values.pop(values, None)

    def replace(self, values: dict[Labels, float]) -> None:
        """Set all children at once. Children that are not named are dropped."""
        self._values = values

    def samples(self) -> Iterator[str]:
        return (self._line(self.name, values, number) for values, number in list(self._values.items()))


class Histogram(Family):
    """Counts of observations by size."""

    kind = "histogram"

    def __init__(self, name: str, text: str, bounds: Sequence[float], labels: Sequence[str] = ()) -> None:
        super().__init__(name, text, labels)
        self._bounds = tuple(bounds)
        self._values: dict[Labels, tuple[list[int], list[float]]] = {}  #: by labels: counts per bucket, and the sum

    def observe(self, number: float, *values: str, times: int = 1) -> None:
        known = self._values.get(values)
        if known is None:
            known = self._values[values] = [0] * (len(self._bounds) + 1), [0.0]
        counts, total = known
        counts[bisect_left(self._bounds, number)] += times
        total[0] += number * times

    def count(self, *values: str) -> int:
        return sum(self._values[values][0]) if values in self._values else 0

    def samples(self) -> Iterator[str]:
        for values, (counts, total) in list(self._values.items()):
            below = 0
            for bound, count in zip((*map(_number, self._bounds), "+Inf"), counts, strict=True):
                below += count
                yield self._line(f"{self.name}_bucket", values, below, [("le", bound)])
            yield self._line(f"{self.name}_sum", values, total[0])
            yield self._line(f"{self.name}_count", values, below)


def render(families: Iterable[Family]) -> str:
    """The page that a scrape gets."""
    return "".join(f"{line}\n" for family in families for line in family.lines())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
