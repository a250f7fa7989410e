"""The summary as tables, and the progress line at the terminal."""

import sys
import time
from operator import length_hint
from threading import Event, Thread
from types import TracebackType
from typing import Any, TextIO

from pumice.simulate.output_columns import DISTRIBUTIONS, OVER_TIME, PERCENTILES
from pumice.simulate.record import Record
from pumice.simulate.workload import Workload
from pumice.text_table import columns

UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
EVERY_S = 0.5


def tables(summary: dict[str, Any]) -> str:
    """The summary as tables: distributions, totals, the queues if there are several, and the longest waits."""
    measures = summary["measures"]
    parts = [_distributions(measures), _totals(measures)]
    if len(summary["queues"]) > 1:
        parts.append(_queues(summary["queues"]))
    if any(longest["wait"] for longest in summary["longest"]):
        parts.append(_longest(summary["longest"]))
    return "\n\n".join(parts)


def curve_table(found: dict[str, Any]) -> str:
    """The table of the allocation curve, with a row for every ten per cent and for the last point."""
    points = list(found["curve"])
    shown = [point for point in points if not int(point) % 10 or point == points[-1]]
    rows = [(f"{point}%", f"{found['curve'][point]:.2f}%", f"{found['fragmentation'][point]:.2f}%") for point in shown]
    bound = f"No policy allocates more than {found['measures']['bound']['gpu']:.2%} of the GPUs to these pods."
    return f"{columns(('ASKED FOR', 'ALLOCATED', 'FRAGMENTED'), rows)}\n{bound}"


def seconds(value: float | None) -> str:
    """A span of time as text, in two units at most; "-" for None."""
    if value is None:
        return "-"
    if value < 60:
        return f"{value:.3g}s"
    left, parts = round(value), list[str]()
    for size, unit in UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2])


def _distributions(measures: dict[str, Any]) -> str:
    names = ("mean", *(f"p{percent}" for percent in PERCENTILES), "max")
    show = dict.fromkeys(DISTRIBUTIONS, seconds) | {"bounded_slowdown": _number}
    rows = [(name, *(show[name](measures[name][which]) for which in names)) for name in DISTRIBUTIONS]
    return columns(("MEASURE", *(name.upper() for name in names)), rows)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _totals(measures: dict[str, Any]) -> str:
    rows = [(name, str(measures[name])) for name in ("jobs", "done", "killed", "running", "waiting", "evictions")]
    rows.append(("makespan", seconds(measures["makespan"])))
    rows += [(f"mean {name}", f"{measures[name]['mean']:.4g}") for name in OVER_TIME if measures[name]["mean"] is not None]
    rows += [(f"utilisation {resource}", f"{share:.1%}") for resource, share in measures["utilisation"].items()]
    return columns(("TOTAL", "VALUE"), rows)


def _queues(queues: dict[str, Any]) -> str:
    rows = [
        (name, str(each["jobs"]), seconds(each["wait"]["mean"]), seconds(each["wait"]["p95"]), str(each["evictions"]))
        for name, each in sorted(queues.items())
    ]
    return columns(("QUEUE", "JOBS", "MEAN WAIT", "P95 WAIT", "EVICTIONS"), rows)


def _longest(longest: list[dict[str, Any]]) -> str:
    rows = [(each["job"], each["queue"], seconds(each["wait"]), each["reason"] or "-") for each in longest if each["wait"]]
    return columns(("LONGEST WAITS", "QUEUE", "WAIT", "WHY"), rows)


class Progress:
    """The progress line: rewrites itself now and then, and is removed in the end. Nothing is written if `out` is no terminal."""

    def __init__(self, workload: Workload, record: Record, out: TextIO | None = None) -> None:
        self._workload, self._record, self._out = workload, record, out or sys.stderr
        self._over = Event()
        self._writer = Thread(target=self._write, daemon=True)

    def __enter__(self) -> None:
        self._began, self._jobs = time.monotonic(), length_hint(self._workload.jobs)
        if self._out.isatty():
            self._writer.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        if self._writer.ident is not None:
            self._writer.join()

    def _write(self) -> None:
        while not self._over.wait(EVERY_S):
            self._out.write(f"\r{self.line(time.monotonic() - self._began)}\033[K")
            self._out.flush()
        self._out.write("\r\033[K")
        self._out.flush()

    def line(self, took_s: float) -> str:
        """The text of the line. It has the time left only if the workload knows its number of jobs."""
        now = self._record.now - (self._record.submitted_first or 0.0)
        text = f"{seconds(now)} simulated, {seconds(now / max(took_s, 1e-9))} a second"
        come = self._jobs - length_hint(self._workload.jobs)
        if self._jobs and come:
            text += f", {100 * come // self._jobs} % of the jobs have come, about {seconds(took_s * (self._jobs - come) / come)} left"
        return text
