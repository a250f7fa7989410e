"""pumice compare over a Dask cluster: the same bytes as of one process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pumice.cli.compare import compare

PAGE = "duration: 20m\nnodes: 1x2cpu\njobs:\n- {arrivals: {poisson: 1/m}, run: {exponential: 90s}, request: {cpu: 1}}\n"


def compared(folder: Path, *more: str) -> Result:
    (folder / "page.yaml").write_text(PAGE)
    policies = ["--policy", "FIFO", "--policy", "EASY", "--seeds", "2", "-o", "json"]
    return CliRunner().invoke(compare, ["--workload", f"yaml:{folder}/page.yaml", *policies, *more])


def test_without_distributed_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    told = "--dask: needs the package distributed; install it, or leave this out for the cores of this machine"
    assert str(compared(tmp_path, "--dask", "127.0.0.1:1").exception) == told


@pytest.mark.filterwarnings("ignore")
def test_two_workers_give_the_bytes_of_one_process(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster:
        spread = compared(tmp_path, "--dask", cluster.scheduler_address)
    alone = compared(tmp_path, "--processes", "1")
    assert spread.exit_code == alone.exit_code == 0
    assert spread.stdout == alone.stdout and '"comparison"' in alone.stdout


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_does_not_answer_is_told(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="distributed is not installed")
    assert "--dask: nobody answers at 127.0.0.1:1" in str(compared(tmp_path, "--dask", "127.0.0.1:1").exception)
