"""Where the use of nodes is measured: Prometheus, Elasticsearch (metricbeat), or the custom metrics API (prometheus_adaptor).

Each source is asked for all nodes at once and gives percentages of cpu and memory over the last ten minutes. A node is known by its name;
Prometheus' `instance` may have a port after it.
"""

import ssl
from collections.abc import Mapping
from math import isfinite
from typing import Any
from urllib.parse import urlencode

import msgspec

from pumice.api import instant
from pumice.api.quantity import quantity
from pumice.client.tls import Trust, context
from pumice.http.connection_pool import fetch as call
from pumice.http.messages import basic
from pumice.scheduler.framework.world import NodeUsage

PERIOD = "10m"
TIMEOUT_S = 10.0
CPU_QUERY = '100 * (1 - avg by (instance) (rate(node_cpu_seconds_total{{mode="idle"}}[{period}])))'
MEMORY_QUERY = "100 * avg_over_time((1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)[{period}:30s])"


class UsageFailure(Exception):
    """A source of usage could not be read."""


async def fetch(metrics: Mapping[str, str], now: float) -> dict[str, NodeUsage]:
    """The usage of each node, from the source that the section `metrics` names. What is no number is left out. Raises UsageFailure."""
    kind = metrics["type"]
    source = SOURCES.get(kind)
    if source is None:
        raise UsageFailure(f'there is no source "{kind}"; known: prometheus, elasticsearch, prometheus_adaptor')
    insecure = metrics.get("tls.insecureSkipVerify", "").lower() == "true"
    try:
        found = await source(_Asked(metrics, context(Trust(insecure=True), None) if insecure else None), now)
        return {node: usage for node, usage in found.items() if isfinite(usage.cpu) and isfinite(usage.memory)}
    except (OSError, msgspec.DecodeError, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise UsageFailure(f"{kind} at {metrics['address']}: {type(error).__name__}: {error}") from None


class _Asked:
    """A source of usage, with the section of the configuration that describes it."""

    def __init__(self, metrics: Mapping[str, str], tls: ssl.SSLContext | None) -> None:
        self.metrics = metrics
        self._tls = tls
        self._address = metrics["address"].rstrip("/")

    async def get(self, path: str, parameters: dict[str, str]) -> Any:
        return await self._call(f"{path}?{urlencode(parameters)}" if parameters else path, {}, None)

    async def post(self, path: str, body: Any) -> Any:
        user = self.metrics.get("elasticsearch.username", "")
        headers = {"Authorization": basic(user, self.metrics.get("elasticsearch.password", ""))} if user else {}
        return await self._call(path, {"Content-Type": "application/json", **headers}, msgspec.json.encode(body))

    async def _call(self, target: str, headers: dict[str, str], body: bytes | None) -> Any:
        answer = await call(self._address + target, headers=headers, body=body, tls=self._tls, timeout_s=TIMEOUT_S)
        if answer.status >= 300:
            raise ConnectionError(f"it answered {answer.status}")
        return msgspec.json.decode(answer.body)


async def _prometheus(source: _Asked, now: float) -> dict[str, NodeUsage]:
    columns = []
    for query in (CPU_QUERY, MEMORY_QUERY):
        answer = await source.get("/api/v1/query", {"query": query.format(period=PERIOD)})
        columns.append({series["metric"]["instance"].split(":")[0]: series["value"] for series in answer["data"]["result"]})
    cpu, memory = columns
    both = [node for node in cpu if node in memory]
    return {node: NodeUsage(float(cpu[node][1]), float(memory[node][1]), float(cpu[node][0])) for node in both}


async def _elasticsearch(source: _Asked, now: float) -> dict[str, NodeUsage]:
    index = source.metrics.get("elasticsearch.index", "metricbeat-*")
    host = source.metrics.get("elasticsearch.hostnameFieldName", "host.hostname")
    averages = {
        "cpu": {"avg": {"field": "host.cpu.usage"}},
        "memory": {"avg": {"field": "system.memory.actual.used.pct"}},
        "newest": {"max": {"field": "@timestamp"}},
    }
    body = {
        "size": 0,
        "query": {"range": {"@timestamp": {"gte": f"now-{PERIOD}", "lt": "now"}}},
        "aggs": {"nodes": {"terms": {"field": host, "size": 10_000}, "aggs": averages}},
    }
    answer = await source.post(f"/{index}/_search", body)
    found = {}
    for bucket in answer["aggregations"]["nodes"]["buckets"]:
        cpu, memory, newest = (bucket[name]["value"] for name in ("cpu", "memory", "newest"))
        if cpu is not None and memory is not None:
            found[str(bucket["key"])] = NodeUsage(100 * cpu, 100 * memory, now if newest is None else newest / 1000)
    return found


async def _adaptor(source: _Asked, now: float) -> dict[str, NodeUsage]:
    columns: list[dict[str, tuple[float, float]]] = []
    for name in ("node_cpu_usage_avg", "node_memory_usage_avg"):
        answer = await source.get(f"/apis/custom.metrics.k8s.io/v1beta2/nodes/*/{name}", {})
        columns.append({item["describedObject"]["name"]: _fraction(item, now) for item in answer["items"]})
    cpu, memory = columns
    return {node: NodeUsage(100 * value, 100 * memory[node][0], at) for node, (value, at) in cpu.items() if node in memory}


def _fraction(item: dict[str, Any], now: float) -> tuple[float, float]:
    return quantity(item["value"]).milli / 1000, instant(item["timestamp"]) if item.get("timestamp") else now


SOURCES = {"prometheus": _prometheus, "elasticsearch": _elasticsearch, "prometheus_adaptor": _adaptor}
