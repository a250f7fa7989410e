"""One line at the terminal while a simulation runs: how far it is, how fast, and how long it will take."""

from __future__ import annotations

import sys
import time
from operator import length_hint
from threading import Event, Thread
from types import TracebackType
from typing import TextIO

from pumice.cli.report.simulation import seconds
from pumice.simulate.record import Record
from pumice.simulate.work import Workload

EVERY_S = 0.5


class Progress:
    """Rewrites its line now and then, and takes it away in the end. Does nothing where nobody looks: `out` is no terminal."""

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
        """Time is left only where the workload knows how many jobs there are."""
        now = self._record.now - (self._record.submitted_first or 0.0)
        text = f"{seconds(now)} simulated, {seconds(now / max(took_s, 1e-9))} a second"
        come = self._jobs - length_hint(self._workload.jobs)
        if self._jobs and come:
            text += f", {100 * come // self._jobs} % of the jobs have come, about {seconds(took_s * (self._jobs - come) / come)} left"
        return text
