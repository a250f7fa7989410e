"""The world: evictions cost work, and nothing is lost or counted twice."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from pumice.simulate.inputs import Source
from tests.simulate.playing import played

CONF = """\
actions: "allocate, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
"""


@pytest.mark.parametrize("checkpoint, lost", [("", 100.0), ("  checkpoint: 30s\n", 10.0)])
def test_an_evicted_job_begins_again_from_its_checkpoint(tmp_path: Path, checkpoint: str, lost: float) -> None:
    """The urgent job comes after 100 s and runs for 50; the pod that it evicts is gone a second later."""
    page = tmp_path / "page.yaml"
    page.write_text(
        "nodes: 1x1cpu\njobs:\n- name: low\n  arrivals: {at: [0]}\n  run: 150s\n  request: {cpu: 1}\n  minimum: 0\n"
        + checkpoint
        + "- name: urgent\n  arrivals: {at: [100]}\n  run: 50s\n  request: {cpu: 1}\n  priority: 10\n"
    )
    conf = tmp_path / "volcano-scheduler.conf"
    conf.write_text(CONF)
    summary, (low, urgent) = played(Source("yaml", str(page)), str(conf))
    assert (urgent["start"], urgent["end"]) == (101, 151)
    assert (low["evictions"], low["lost"], low["end"]) == (1, lost, 151 + 150 - (100 - lost))
    assert summary["measures"]["lost_work"]["cpu"] == lost
    assert summary["measures"]["goodput"]["cpu"] == 200


def test_littles_law_holds_to_rounding(tmp_path: Path) -> None:
    """Jobs in line, summed over time, are waits, summed over jobs; work done is work asked for."""
    page = tmp_path / "page.yaml"
    page.write_text(
        "duration: 1h\nnodes: 1x2cpu\njobs:\n- arrivals: {poisson: 1/m}\n  run: {exponential: 100s}\n  request: {cpu: 1}\n"
        "  pods: {choice: {1: 3, 2: 1}}\n"
    )
    summary, rows = played(Source("yaml", str(page)), "EASY", out=tmp_path / "out")
    series = [line.split(",") for line in (tmp_path / "out/series.csv").read_text().splitlines()]
    steps = [(float(time), float(value)) for time, name, _, queue, value in series[1:] if (name, queue) == ("waiting", "")]
    in_line = sum(value * (until - time) for (time, value), (until, _) in itertools.pairwise(steps))
    assert in_line == pytest.approx(sum(row["wait"] for row in rows), rel=1e-4) and in_line > 0
    assert summary["measures"]["goodput"]["cpu"] == pytest.approx(sum(row["run"] * row["cpu"] for row in rows))
    assert {row["state"] for row in rows} == {"done"}
