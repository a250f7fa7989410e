"""What queues held in the last day, week or month: from the folder into which the scheduler records, else from a Prometheus server that
reads its metrics.

A point is the mean of a step of time in a recording, and a sample of Prometheus. Points look like those of the last hour (`sent_rows.py`).
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from pumice.api.times import instant
from pumice.http.connection_pool import fetch
from pumice.http.listener import Handler
from pumice.http.messages import Request, Response
from pumice.page.files import UNCACHED
from pumice.page.usage import PageUsage

PATIENCE_S = 20.0
GIB = float(1 << 30)
HELD = "volcano_queue_allocated"
QUERIES = {
    "cpu": f"max by (queue_name) ({HELD}_milli_cpu) / 1000",
    "memory": f"max by (queue_name) ({HELD}_memory_bytes)",
    "gpu": f'sum by (queue_name) (max by (queue_name, resource) ({HELD}_scalar_resources{{resource=~".*/gpu"}})) / 1000',
}  #: in the units of the page; of several replicas, only the one that leads has these metrics


class PastSpan(NamedTuple):
    length_s: float
    per: str  #: the period of `pumice usage`
    step_s: float


SPANS = {
    "day": PastSpan(86_400.0, "10min", 600.0),
    "week": PastSpan(7 * 86_400.0, "hour", 3_600.0),
    "month": PastSpan(30 * 86_400.0, "hour", 3_600.0),
}
Held = dict[str, dict[str, float]]  #: by queue and resource


class LongHistory:
    def __init__(self, usage: PageUsage, prometheus: str, now: Callable[[], float]) -> None:
        self._usage, self._prometheus, self._now = usage, prometheus.rstrip("/"), now

    @property
    def source(self) -> str:
        """Where the points come from, in words; empty if from nowhere."""
        return "recordings" if self._usage.folder else "Prometheus" if self._prometheus else ""

    @property
    def routes(self) -> dict[str, Handler]:
        return {"/api/history": self._history}

    async def _history(self, request: Request) -> Response:
        span = SPANS.get(request.query.get("span", ""))
        if span is None or not self.source:
            text = f"write one of {', '.join(SPANS)} as span" if self.source else "there is neither --record nor --prometheus"
            return Response.json({"error": text}, 404, headers=UNCACHED)
        try:
            held = await (self._recorded(span) if self._usage.folder else self._measured(span))
        except TimeoutError:
            return Response.json({"error": f"{self.source}: this takes too long"}, 503, headers=UNCACHED)
        except (RuntimeError, OSError, ValueError, KeyError, TypeError) as error:
            return Response.json({"error": f"{self.source}: {error}"}, 502, headers=UNCACHED)
        return Response.json({"points": [{"at": at, "held": held[at]} for at in sorted(held)]}, headers=UNCACHED)

    async def _recorded(self, span: PastSpan) -> dict[float, Held]:
        """The means of the steps from the first on of which anything is recorded; where there is nothing of a step, nothing ran."""
        head, *rows = await self._usage.table("queue", span.per)
        now, found = self._now(), dict[float, Held]()
        for row in (dict(zip(head, each, strict=True)) for each in rows):
            at, hours = instant(row["from"]), float(row["recorded"])
            if at >= now - span.length_s and hours > 0:
                means = (
                    (name, unit * float(row.get(f"{name}_got", 0)) / hours) for name, unit in (("cpu", 1.0), ("memory", GIB), ("gpu", 1.0))
                )
                found.setdefault(at, {})[row["queue"]] = {name: mean for name, mean in means if mean}
        first = min(found, default=now)
        for step in range(1, int((now - first) / span.step_s) + 1):
            found.setdefault(first + step * span.step_s, {})
        return found

    async def _measured(self, span: PastSpan) -> dict[float, Held]:
        """What Prometheus has of the metrics of queues."""
        end, found = self._now() // span.step_s * span.step_s, dict[float, Held]()
        for name, query in QUERIES.items():
            for series in (await self._asked(query, span, end))["data"]["result"]:
                for at, value in series["values"]:
                    found.setdefault(float(at), {}).setdefault(series["metric"]["queue_name"], {})[name] = float(value)
        return found

    async def _asked(self, query: str, span: PastSpan, end: float) -> Mapping[str, Any]:
        asked = urlencode({"query": query, "start": end - span.length_s, "end": end, "step": span.step_s})
        answer = await fetch(f"{self._prometheus}/api/v1/query_range?{asked}", timeout_s=PATIENCE_S)
        result: Mapping[str, Any] = json.loads(bytes(answer.body)) if answer.status in (200, 400, 422, 503) else {}
        if result.get("status") != "success":
            raise RuntimeError(result.get("error") or f"it answered {answer.status}")
        return result
