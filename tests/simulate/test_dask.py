"""pumice compare and tune over a Dask cluster: the same bytes as of one process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pumice.cli.compare import compare
from pumice.cli.tune import tune

PAGE = "duration: 20m\nnodes: 1x2cpu\njobs:\n- {arrivals: {poisson: 1/m}, run: {exponential: 90s}, request: {cpu: 1}}\n"
HOURS = """\
duration: 4h
nodes: 1x4gpu
jobs:
- {name: small, arrivals: {every: 10m}, run: 14m, request: {nvidia.com/gpu: 1}}
- {name: large, arrivals: {every: 60m}, run: 15m, request: {nvidia.com/gpu: 4}}
"""


def compared(folder: Path, *more: str) -> Result:
    (folder / "page.yaml").write_text(PAGE)
    policies = ["--policy", "FIFO", "--policy", "EASY", "--seeds", "2", "-o", "json"]
    return CliRunner().invoke(compare, ["--workload", f"yaml:{folder}/page.yaml", *policies, *more])


def test_without_distributed_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    told = "--dask: needs the package distributed; install it, or leave this out for the cores of this machine"
    assert str(compared(tmp_path, "--dask", "127.0.0.1:1").exception) == told


def tuned(folder: Path, *more: str) -> Result:
    (folder / "hours.yaml").write_text(HOURS)
    words = ["--objective", "mean(wait)", "--conf", "FIFO", "--period", "1h", "--trials", "3"]
    return CliRunner().invoke(tune, ["--workload", f"yaml:{folder}/hours.yaml", *words, *more])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("run", "says"), [(compared, '"comparison"'), (tuned, "3 configurations were tried on 2 periods")])
def test_two_workers_give_the_bytes_of_one_process(run: Callable[..., Result], says: str, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster:
        spread = run(tmp_path, "--dask", cluster.scheduler_address)
    alone = run(tmp_path, "--processes", "1")
    assert spread.exit_code == alone.exit_code == 0
    assert spread.stdout == alone.stdout and says in alone.stdout


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_does_not_answer_is_told(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="distributed is not installed")
    assert "--dask: nobody answers at 127.0.0.1:1" in str(compared(tmp_path, "--dask", "127.0.0.1:1").exception)
