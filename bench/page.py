"""The page of 5,000 nodes and 20,000 pods while 500 pods a second change: what a reader costs the scheduler, and what it costs the browser.

First there is no reader, then a tab of Chromium (Debian's package), with the same changes and cycles. The difference is what the page
costs. `SECONDS=600 python -m bench page` reads for ten minutes.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import json

from bench.measure import Row
from pumice.http.messages import Request
from pumice.page.files import files
from tests.page.clusters import large
from tests.page.conftest import CHROMIUM, FLAGS
from tests.page.desk import Desk, desk

SPAN_S = float(os.environ.get("SECONDS", "60"))
ALONE_S = min(SPAN_S, 120.0)  #: the time without a reader, which comes first
CHANGES, TICK_S = 10, 0.02  #: pods that change at each tick, and the time between ticks: 500 changes per second
CYCLE_EVERY = 50  #: the number of ticks from cycle to cycle
ROWS, ROWS_A_SECOND = 200, 20_000
COUNTED = """() => {
  window.framesSeen = 0;
  window.longest = 0;
  window.draws = 0;
  let last = performance.now();
  const frame = () => {
    const now = performance.now();
    window.longest = Math.max(window.longest, now - last);
    last = now;
    window.framesSeen++;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  new MutationObserver(() => window.draws++).observe(document.getElementById("main"), {subtree: true, childList: true, attributes: true});
}"""

SNAPSHOTS = "performance.getEntriesByName(new URL('api/snapshot', location.href).href).length"


class Cost(NamedTuple):
    """What this process used during a span of time."""

    share: float  #: CPU time, as a part of a core
    cycle_ms: float  #: CPU time of the median cycle
    slow_ms: float  #: CPU time that one cycle in a hundred exceeds


def run() -> Iterator[Row]:
    from playwright.sync_api import sync_playwright

    sent = sum(len(file.respond(Request("GET", "/", {"accept-encoding": "gzip"})).body) for file in files().values()) / 1024
    yield Row("the page's files, zipped", 150.0, None, sent, sent, "KiB")
    if not Path(CHROMIUM).exists():
        return
    with desk() as made, sync_playwright() as playwright:
        objects = list(large())
        made.put(objects)
        made.cycle()
        pods = [(kind, obj) for kind, obj in objects if kind == "Pod"]
        alone = change(made, pods, ALONE_S)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        tab = browser.new_page()
        tab.goto(made.url)
        tab.wait_for_selector("a.node")
        drawn_s = tab.evaluate("performance.now()") / 1000
        painted_s = tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
        yield Row("first paint of the page, 5,000 nodes", 0.5, None, painted_s, painted_s, "s", {"all nodes drawn": f"{drawn_s:.2f} s"})
        devtools = tab.context.new_cdp_session(tab)
        before, _ = heap_mib(devtools), tab.evaluate(COUNTED)
        began = time.perf_counter()
        read = change(made, pods, SPAN_S)
        frames = tab.evaluate("window.framesSeen") / (time.perf_counter() - began)
        longest, draws, after = tab.evaluate("window.longest"), tab.evaluate("window.draws"), heap_mib(devtools)
        tell(made)
        at_last, resets = heap_mib(devtools), tab.evaluate(SNAPSHOTS) - 1
        browser.close()
    about = {"changes": round(SPAN_S / TICK_S) * CHANGES, "without": f"{alone.share:.1%}", "with": f"{read.share:.1%}"}
    extra = 100 * (read.share - alone.share)
    yield Row("what a reader costs the scheduler's process, per cent of a core", 3.0, None, extra, extra, "%", about)
    cycles = {"without": round(alone.cycle_ms, 2), "p99": round(read.slow_ms, 2), "p99 without": round(alone.slow_ms, 2)}
    yield Row("a cycle while somebody reads, ms", None, None, read.cycle_ms, read.cycle_ms, "ms", cycles)
    yield Row("frames of the tab meanwhile", 10.0, None, frames, frames, "/s", {"longest_ms": round(longest), "draws": draws})
    yield Row("heap of the tab afterwards", None, None, after, after, "MiB", {"before": round(before, 1)})
    yield Row("heap of the tab after a million rows more", None, None, at_last, at_last, "MiB", {"begun anew": resets})


def change(made: Desk, pods: list[tuple[str, Any]], span_s: float) -> Cost:
    """Remove a few pods and add them again, tick by tick, and run a cycle every CYCLE_EVERY ticks. Return what this cost."""
    cpu, began = time.process_time(), time.perf_counter()
    cycles = []
    for tick in range(round(span_s / TICK_S)):
        some = [pods[(tick // 2 * CHANGES + n) % len(pods)] for n in range(CHANGES)]
        if tick % 2:
            made.put(some)
        else:
            for kind, pod in some:
                made.remove(kind, f"default/{pod.metadata.name}")
        if tick % CYCLE_EVERY == 0:
            cycles.append(made.cycle() * 1000)
        time.sleep(max(0.0, began + (tick + 1) * TICK_S - time.perf_counter()))
    took = time.perf_counter() - began
    slow_ms = sorted(cycles)[len(cycles) * 99 // 100]
    return Cost((time.process_time() - cpu) / took, statistics.median(cycles), slow_ms)


def tell(made: Desk) -> None:
    """Publish a million node rows, at the highest rate at which the page sends the rows of 5,000 nodes."""
    names = [f"node-{n}" for n in range(5000)]
    row = {"group": "rack-1", "room": {"cpu": 64, "memory": 2**39, "gpu": 8}, "held": [["default/job-1", 4, 2]]}
    for number in range(1_000_000 // ROWS):
        some = names[number * ROWS % 5000 :][:ROWS]
        nodes = {name: row | {"used": {"gpu": number % 8, "cpu": number % 60}} for name in some}
        made.publish(json.encode({"at": time.time(), "count": number, "nodes": nodes}))
        time.sleep(ROWS / ROWS_A_SECOND)


def heap_mib(devtools: Any) -> float:
    devtools.send("HeapProfiler.collectGarbage")
    devtools.send("Performance.enable")
    metrics = {each["name"]: each["value"] for each in devtools.send("Performance.getMetrics")["metrics"]}
    return float(metrics["JSHeapUsedSize"]) / 2**20
