"""The world: evictions cost work, and nothing is lost or counted twice."""

from __future__ import annotations

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
