"""The line at the terminal, and nothing where there is none."""

from __future__ import annotations

import io
from pathlib import Path

from pumice.cli.simulate_tables import Progress
from pumice.simulate.record import Record
from pumice.simulate.workload import Work, Workload, role


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def half_done() -> tuple[Workload, Record]:
    jobs = iter([Work(f"job-{number}", 0.0, 1.0, (role(1, {"cpu": 1}),)) for number in range(4)])
    return Workload("page", jobs), Record()


def test_it_tells_how_far_how_fast_and_how_long() -> None:
    workload, record = half_done()
    progress = Progress(workload, record, Terminal())
    with progress:
        next(workload.jobs)
        next(workload.jobs)
        record.now = 7200.0
        assert progress.line(10.0) == "2h simulated, 12m a second, 50 % of the jobs have come, about 10s left"


def test_of_jobs_without_end_it_tells_no_end() -> None:
    workload, record = half_done()
    progress = Progress(Workload("page", (work for work in workload.jobs)), record, Terminal())
    with progress:
        assert progress.line(1.0) == "0s simulated, 0s a second"


def test_the_line_is_taken_away(tmp_path: Path) -> None:
    out = Terminal()
    with Progress(*half_done(), out):
        pass
    assert out.getvalue() == "\r\033[K"


def test_without_a_terminal_there_is_none() -> None:
    out = io.StringIO()
    with Progress(*half_done(), out):
        pass
    assert out.getvalue() == ""
