"""What stands around the loop: configuration, metrics, probes, logs, the state as a file, measured usage."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from pumice.api.errors import InputError
from pumice.api.manifests import Objects, read_stream
from pumice.http.listener import Listener
from pumice.http.loopback import is_loopback
from pumice.http.messages import Request, Response
from pumice.http.metrics import Counter, Gauge, Histogram, render
from pumice.inputs.cluster_from_files import complete
from pumice.inputs.recording.state_file import dump
from pumice.live.health_and_metrics import insights, probes
from pumice.live.log_format import Json, Logfmt
from pumice.live.scheduler import usage_sources
from pumice.live.scheduler.config_reloader import Reloader
from pumice.live.scheduler.live_world import LiveWorld
from pumice.live.scheduler.usage_sources import UsageFailure, fetch
from pumice.scheduler.config.volcano_conf import DEFAULT
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.world import FRESH_S, NodeUsage
from pumice.scheduler.model.cluster import Cluster
from tests.dripping import dripping
from tests.live.memory import MemoryServer
from tests.live.stories import policy, scheduling, until
from tests.live.virtual import VirtualClock, run

# ---- configuration


def volume(folder: Path, version: str, text: str) -> Path:
    """A ConfigMap volume: the file is a link through `..data`, which is swapped."""
    (folder / version).mkdir()
    (folder / version / "scheduler.conf").write_text(text)
    (folder / "..new").symlink_to(version)
    (folder / "..new").rename(folder / "..data")
    path = folder / "scheduler.conf"
    if not path.is_symlink():
        path.symlink_to("..data/scheduler.conf")
    return path


def test_a_changed_file_is_taken_over_and_a_bad_one_is_told_once_and_left(tmp_path: Path) -> None:
    path = volume(tmp_path, "v1", "one")
    taken: list[str] = []
    refused: list[str] = []

    def load() -> Any:
        if path.read_text() == "bad":
            raise InputError("is bad", where=str(path))
        return path.read_text()

    reloader = Reloader(path, load, taken.append, lambda error: refused.append(str(error)), VirtualClock())  # type: ignore[arg-type]
    reloader.check()
    assert taken == []
    volume(tmp_path, "v2", "two")
    reloader.check()
    reloader.check()
    assert taken == ["two"]
    volume(tmp_path, "v3", "bad")
    reloader.check()
    reloader.check()
    assert taken == ["two"] and len(refused) == 1
    volume(tmp_path, "v4", "four")
    reloader.check()
    assert taken == ["two", "four"]


def test_the_file_is_looked_at_every_second(tmp_path: Path) -> None:
    async def story() -> None:
        path = tmp_path / "conf"
        path.write_text("one")
        taken: list[Policy] = []
        running = asyncio.create_task(Reloader(path, lambda: path.read_text(), taken.append, print, VirtualClock()).run())  # type: ignore
        await asyncio.sleep(5)
        path.write_text("another")
        await asyncio.sleep(1.1)
        assert taken == ["another"]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run(story())


# ---- metrics


def test_metrics_are_written_as_prometheus_reads_them() -> None:
    counter, gauge = Counter("c_total", "Calls.", ["result"]), Gauge("g", "A gauge.")
    histogram = Histogram("h", "Sizes.", (1, 2), ["kind"])
    counter.add('quo"ted\n')
    gauge.set(0.5)
    for size in (0.5, 1, 1.5, 3):
        histogram.observe(size, "k")
    assert histogram.count("k") == 4 and histogram.count("never seen") == 0
    assert render([counter, gauge, histogram]) == (
        "# HELP c_total Calls.\n# TYPE c_total counter\n"
        'c_total{result="quo\\"ted\\n"} 1\n'
        "# HELP g A gauge.\n# TYPE g gauge\ng 0.5\n"
        "# HELP h Sizes.\n# TYPE h histogram\n"
        'h_bucket{kind="k",le="1"} 2\nh_bucket{kind="k",le="2"} 3\nh_bucket{kind="k",le="+Inf"} 4\n'
        'h_sum{kind="k"} 6\nh_count{kind="k"} 4\n'
    )


# ---- probes


class Told:
    """A status that tests set."""

    wrong = ""

    def alive(self) -> str:
        return self.wrong

    def ready(self) -> str:
        return self.wrong

    async def metrics(self) -> str:
        return "g 1\n"

    async def state(self) -> bytes:
        return b"{}"


def failing(_: Request) -> Response:
    raise KeyError


def test_probes_and_insights_are_served() -> None:
    async def story() -> None:
        status = Told()
        routes = {**probes(status), **insights(status), "/broken": failing}
        async with Listener("127.0.0.1:0", routes) as server, aiohttp.ClientSession() as session:

            async def get(path: str) -> tuple[int, str]:
                async with session.get(f"http://127.0.0.1:{server.port}{path}") as answer:
                    return answer.status, await answer.text()

            for path in ("/healthz", "/livez", "/readyz"):
                assert await get(path) == (200, "ok")
            assert (await get("/metrics"))[1].startswith("g 1\n") and await get("/debug/state") == (200, "{}")
            status.wrong = "the lead was lost"
            assert await get("/readyz") == (500, "the lead was lost")
            assert (await get("/none"))[0] == 404 and (await get("/broken"))[0] == 500

    asyncio.run(story())


@pytest.mark.parametrize(
    ("peer", "local"),
    [
        (("127.0.0.1", 4000), True),
        (("127.9.9.9", 4000), True),
        (("::1", 4000, 0, 0), True),
        (("::ffff:127.0.0.1", 4000, 0, 0), True),
        (("::ffff:10.0.0.1", 4000, 0, 0), False),
        (("10.0.0.1", 4000), False),
        (("fe80::1%eth0", 4000, 0, 2), False),
        ("", False),
        (None, False),
    ],
)
def test_only_this_machine_is_told_the_state(peer: object, local: bool) -> None:
    assert is_loopback(peer) is local
    page = insights(Told())["/debug/state"](Request("GET", "/debug/state", {}, local=local))
    assert not isinstance(page, Response)
    answer = asyncio.run(page)  # type: ignore[arg-type]
    assert (answer.status, b"{}" in answer.body) == ((200, True) if local else (403, False))


def test_everybody_is_told_the_metrics() -> None:
    page = insights(Told())["/metrics"](Request("GET", "/metrics", {}))
    assert asyncio.run(page).body.startswith(b"g 1\n# HELP process_cpu_seconds_total ")  # type: ignore[arg-type,union-attr]


# ---- logs


@pytest.mark.parametrize(
    ("form", "line"),
    [
        (Logfmt(), 'ts=1970-01-01T00:00:01.500Z level=warning logger=a.b msg="two \\"words\\""'),
        (Json(), '{"ts": "1970-01-01T00:00:01.500Z", "level": "warning", "logger": "a.b", "msg": "two \\"words\\""}'),
    ],
)
def test_log_lines_are_structured(form: logging.Formatter, line: str) -> None:
    record = logging.LogRecord("a.b", logging.WARNING, "f", 1, 'two "%s"', ("words",), None)
    record.created = 1.5
    assert form.format(record) == line


# ---- the state as a file


def test_the_state_is_a_file_that_decides_the_same() -> None:
    async def story() -> None:
        api = MemoryServer()
        api.queue("root")
        api.queue("default", capability={"cpu": "5"})
        for name in ("a", "b"):
            api.node(name, cpu=4)
        api.gang("train", pods=3)
        async with scheduling(api) as scheduler:
            await until(lambda: api.running() == 3)
            await asyncio.sleep(2)
            api.gang("more", pods=2)
            while "default/more-1" not in scheduler.cluster.tasks:
                await asyncio.sleep(0)
            state = dump(scheduler.cluster, DEFAULT)
            objects = Objects()
            read_stream(state, "state.json", objects)
            assert [text.text for text in objects.configurations] == [DEFAULT]
            again = Cluster()
            for kind, item in complete(objects.items):
                again.put(kind, item)
            expected = cycle(scheduler.cluster, policy(), 0.0)
            replayed = cycle(again, policy(), 0.0)
            placed = {bind.task.key: bind.node for bind in replayed.binds}
            assert placed == {bind.task.key: bind.node for bind in expected.binds} and len(placed) == 2

    run(story())


# ---- measured usage

PROMETHEUS = {
    "cpu": [("a:9100", "40.5"), ("b", "7"), ("nothing", "NaN"), ("endless", "5")],
    "memory": [("a:9100", "60"), ("b", "8"), ("nothing", "5"), ("endless", "+Inf")],
}


async def prometheus(request: web.Request) -> web.Response:
    rows = PROMETHEUS["cpu" if "node_cpu" in request.query["query"] else "memory"]
    result = [{"metric": {"instance": instance}, "value": [1000.5, value]} for instance, value in rows]
    return web.json_response({"status": "success", "data": {"result": result}})


async def elasticsearch(request: web.Request) -> web.Response:
    body = await request.json()
    assert body["aggs"]["nodes"]["terms"]["field"] == "host.hostname" and request.headers["Authorization"].startswith("Basic ")
    bucket = {"key": "a", "cpu": {"value": 0.405}, "memory": {"value": 0.6}, "newest": {"value": 1_000_500}}
    return web.json_response({"aggregations": {"nodes": {"buckets": [bucket, {**bucket, "key": "b", "cpu": {"value": None}}]}}})


async def adaptor(request: web.Request) -> web.Response:
    value = "405m" if "cpu" in request.path else "600m"
    return web.json_response({"items": [{"describedObject": {"name": "a"}, "value": value, "timestamp": "1970-01-01T00:16:40.5Z"}]})


async def broken(request: web.Request) -> web.Response:
    return web.json_response({"status": "error"})


async def odd(request: web.Request) -> web.Response:
    return web.json_response({"data": {"result": [{"metric": {"instance": 5}, "value": [1000, "1"]}]}})


@pytest.mark.parametrize(
    ("kind", "handler", "nodes"),
    [("prometheus", prometheus, {"a", "b"}), ("elasticsearch", elasticsearch, {"a"}), ("prometheus_adaptor", adaptor, {"a"})],
)
def test_usage_is_read_from_its_sources(kind: str, handler: Callable[[web.Request], Awaitable[web.Response]], nodes: set[str]) -> None:
    found = _fetch({"type": kind, "elasticsearch.username": "u"}, handler)
    assert set(found) == nodes
    assert (found["a"].cpu, found["a"].memory, found["a"].measured_at) == pytest.approx((40.5, 60.0, 1000.5))


def test_elasticsearch_is_told_user_and_password() -> None:
    asked: list[str] = []

    async def noting(request: web.Request) -> web.Response:
        asked.append(request.headers["Authorization"])
        return await elasticsearch(request)

    _fetch({"type": "elasticsearch", "elasticsearch.username": "u", "elasticsearch.password": "p"}, noting)
    assert asked == ["Basic dTpw"]


@pytest.mark.parametrize(
    ("kind", "handler"),
    [("prometheus", broken), ("prometheus", odd), ("elasticsearch", broken), ("prometheus_adaptor", broken), ("unheard-of", broken)],
)
def test_a_source_that_cannot_be_read_says_so(kind: str, handler: Callable[[web.Request], Awaitable[web.Response]]) -> None:
    with pytest.raises(UsageFailure):
        _fetch({"type": kind}, handler)


def test_of_nodes_that_are_gone_no_usage_is_kept() -> None:
    async def story() -> None:
        world = LiveWorld(VirtualClock())
        for number in range(100):
            at = VirtualClock().now()
            world.measured({f"n{number}": NodeUsage(1.0, 1.0, at), "old": NodeUsage(2.0, 2.0, at - FRESH_S - 1)})
            await asyncio.sleep(FRESH_S / 10)
        assert [name for name in ("old", "n80", "n90", "n99") if world.usage(name)] == ["n90", "n99"]

    run(story(), limit_s=1e6)


def test_a_source_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_sources, "TIMEOUT_S", 0.2)
    with dripping() as address, pytest.raises(UsageFailure, match="TimeoutError"):
        asyncio.run(fetch({"type": "prometheus", "address": address}, 2000.0))


def _fetch(metrics: dict[str, str], handler: Callable[[web.Request], Awaitable[web.Response]]) -> Any:
    async def story() -> Any:
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", handler)
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            return await fetch(metrics | {"address": f"http://127.0.0.1:{runner.addresses[0][1]}"}, 2000.0)
        finally:
            await runner.cleanup()

    return asyncio.run(story())


def test_a_state_is_valid_json() -> None:
    assert json.loads(dump(Cluster(), ""))["items"] == []


def test_an_address_that_is_taken_is_named() -> None:
    async def story() -> None:
        async with Listener("127.0.0.1:0", {}) as first:
            taken = f"127.0.0.1:{first.port}"
            with pytest.raises(OSError, match="address already in use") as refused:
                await Listener(taken, {}).__aenter__()
            assert refused.value.filename == taken

    asyncio.run(story())
