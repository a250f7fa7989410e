"""What queues held in the last day, week or month, from recordings or from a Prometheus server."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from pumice.live.scheduler.queue_metrics import QueueMetrics
from pumice.testing.builders import node, queue
from tests.page.desk import Desk, desk
from tests.page.recordings import HOUR_S, last_hours
from tests.page.tab import Tab
from tests.page.test_server import ask

GPUS = {"cpu": 4.0, "memory": 8.0 * 2**30, "gpu": 2.0}


def asked(made: Desk, span: str) -> tuple[int, Any]:
    status, _, body = ask(made, f"/api/history?span={span}")
    return status, json.loads(body)


@contextlib.contextmanager
def prometheus(refuses: str = "") -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server that answers range queries as Prometheus' HTTP API is documented, and what it was asked."""
    seen: list[dict[str, str]] = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            seen.append({name: values[0] for name, values in parse_qs(url.query).items()} | {"path": url.path})
            told: dict[str, Any] = {"status": "error", "errorType": "bad_data", "error": refuses}
            if not refuses:
                result = [{"metric": {"queue_name": "research"}, "values": samples(seen[-1])}]
                told = {"status": "success", "data": {"resultType": "matrix", "result": result}}
            body = json.dumps(told).encode()
            self.send_response(400 if refuses else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/", seen
        finally:
            server.shutdown()
            thread.join()


def samples(query: dict[str, str]) -> list[list[Any]]:
    """The amount at each step of the second half of the time."""
    name = next(name for name, metric in (("cpu", "milli_cpu"), ("memory", "memory_bytes"), ("gpu", "scalar")) if metric in query["query"])
    start, end, step = (float(query[each]) for each in ("start", "end", "step"))
    count = int((end - start) / step)
    return [[start + number * step, str(GPUS[name])] for number in range(count // 2, count)]


def test_a_recording_gives_the_mean_of_each_step_and_zeros_where_nothing_ran(tmp_path: Path) -> None:
    now = time.time()
    last_hours(tmp_path, now)
    with desk(str(tmp_path)) as made:
        status, told = asked(made, "day")
        assert status == 200
        held = {point["at"]: point["held"] for point in told["points"]}
        ran = [of["research"] for at, of in held.items() if now - 2 * HOUR_S <= at and at + 600.0 <= now - HOUR_S]
        assert len(ran) >= 4
        for amounts in ran:
            assert amounts == {
                "cpu": pytest.approx(8, rel=0.02),
                "memory": pytest.approx(64 * 2**30, rel=0.02),
                "gpu": pytest.approx(8, rel=0.02),
            }
        assert max(held) > now - 660.0 and held[max(held)] == {}
        assert all(not of.get("research") for at, of in held.items() if at >= now - HOUR_S + 600.0 or at + 600.0 <= now - 2 * HOUR_S)
        month = [of["research"] for of in (point["held"] for point in asked(made, "month")[1]["points"]) if of]
        assert sum(of.get("gpu", 0.0) for of in month) == pytest.approx(8, rel=0.02), "an hour of eight, in one step or in two"
        assert asked(made, "year") == (404, {"error": "write one of day, week, month as span"})


def test_a_prometheus_is_asked_for_our_own_metrics_of_queues() -> None:
    with prometheus() as (url, seen), desk(prometheus=url) as made:
        status, told = asked(made, "week")
        assert (status, len(told["points"])) == (200, 84)
        assert {json.dumps(point["held"], sort_keys=True) for point in told["points"]} == {json.dumps({"research": GPUS}, sort_keys=True)}
        assert {each["path"] for each in seen} == {"/api/v1/query_range"} and {each["step"] for each in seen} == {"3600.0"}
        named = {word for each in seen for word in re.findall(r"volcano_\w+", each["query"])}
        assert len(named) == 3 and named <= {family.name for family in QueueMetrics().families}


def test_what_prometheus_refuses_is_told() -> None:
    with prometheus("parse error") as (url, _), desk(prometheus=url) as made:
        assert asked(made, "day") == (502, {"error": "Prometheus: parse error"})
    with desk(prometheus="http://127.0.0.1:1") as made:
        assert asked(made, "day")[0] == 502
    with desk() as made:
        assert asked(made, "day") == (404, {"error": "there is neither --record nor --prometheus"})


@pytest.mark.page
def test_the_queues_of_the_last_day_are_drawn(tab: Tab, tmp_path: Path) -> None:
    last_hours(tmp_path, time.time())
    with desk(str(tmp_path)) as made:
        made.put([queue("research").build(), queue("vision").build(), node("n1").cpu(64).gpu(8).build()])
        tab.page.goto(f"{made.url}#/queues?resource=gpu")
        title = tab.page.locator(".chart strong")
        expect(title).to_have_text("The last hour")
        tab.page.get_by_role("combobox", name="The last").select_option("day")
        expect(title).to_have_text("The last day")
        expect(tab.page.locator(".chart figcaption")).to_contain_text("from recordings")
        expect(tab.page.locator(".chart .axis").first).to_have_text("GPUs")
        tab.screenshots("day")
        tab.check_accessible()
        tab.page.get_by_role("combobox", name="The last").select_option("hour")
        expect(title).to_have_text("The last hour")
        tab.page.goto("about:blank")


@pytest.mark.page
def test_without_a_longer_past_no_span_is_offered(tab: Tab) -> None:
    with desk() as made:
        made.put([queue("research").build()])
        tab.page.goto(f"{made.url}#/queues")
        expect(tab.page.locator(".chart strong")).to_have_text("The last hour")
        expect(tab.page.get_by_role("combobox", name="The last")).to_have_count(0)
        tab.page.goto("about:blank")
