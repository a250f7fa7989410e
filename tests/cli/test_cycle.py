"""`pumice cycle`, `check` and `plugins` as a person or a script meets them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.cli.main import cli

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests/cases/volcano"
GANG = str(ROOT / "examples/gang.yaml")


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("name", ["mixed-capacity-12x80", "mixed-default-20x120", "mixed-gangs-16x150"])
def test_two_runs_print_the_same_bytes_whatever_the_hash_seed(name: str) -> None:
    command = [sys.executable, "-m", "pumice", "cycle", "-f", str(CASES / f"{name}.yaml"), "--now", "2026-01-01T12:00:00Z", "-o", "json"]
    printed = [
        subprocess.run(command, capture_output=True, check=True, timeout=60, env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2")
    ]
    assert printed[0] == printed[1]
    assert json.loads(printed[0])["binds"]


def test_a_seed_breaks_ties_another_way_and_always_the_same() -> None:
    case = ("cycle", "-f", str(ROOT / "examples/queues.yaml"), "-o", "json")
    outcomes = {seed: run(*case, "--seed", seed) for seed in "12345678"}
    assert len(set(outcomes.values())) > 1
    assert run(*case, "--seed", "1") == outcomes["1"]


def test_the_table_tells_what_is_bound_what_goes_and_why_others_wait() -> None:
    printed = run("cycle", "-f", str(ROOT / "examples/first.yaml"))
    assert "default/train-worker-0   gpu-1   Pipelined (its room is being released)" in printed
    assert "default/sweep-trial-3   gpu-1   reclaim   default/train-worker-0" in printed
    assert "queue research holds 6 of the 4 nvidia.com/gpu it deserves, 8 more is asked for" in printed


def test_the_wide_table_lists_every_pod_and_every_group() -> None:
    printed = run("cycle", "-f", str(ROOT / "examples/first.yaml"), "-o", "wide")
    assert "default/dream-worker-1" in printed
    assert "PODGROUP" in printed


def test_yaml_and_json_say_the_same() -> None:
    import yaml

    arguments = ("cycle", "-f", str(ROOT / "examples/gang.yaml"), "-o")
    assert yaml.safe_load(run(*arguments, "yaml")) == json.loads(run(*arguments, "json"))


def test_an_empty_cluster_has_nothing_to_do(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    assert run("cycle", "-f", str(tmp_path / "empty.yaml")) == "Nothing to do: no pod waits for a node.\n"


def test_kube_batch_inputs_run_with_its_own_configuration_and_shadow_groups() -> None:
    outcome = json.loads(run("cycle", "-f", str(ROOT / "examples/kube-batch.yaml"), "-o", "json"))
    assert outcome["binds"] == {"default/job-1-abc": "n1", "default/job-2-def": "n1", "default/alone": "n1"}
    assert list(outcome["podGroups"]) == ["default/qj-1"]
    without = json.loads(run("cycle", "-f", str(ROOT / "examples/kube-batch.yaml"), "-o", "json", "--no-shadow-groups"))
    assert "default/alone" not in without["binds"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cycle", "-f", "absent.yaml"], "absent.yaml: cannot be read: No such file or directory"),
        (
            ["cycle", "-f", GANG, "--now", "noon"],
            '--now: "noon" is not a time; write one such as 2026-01-01T12:00:00Z',
        ),
        (
            ["cycle", "-f", GANG, "--conf", "absent.conf"],
            "absent.conf: cannot be read: No such file or directory",
        ),
    ],
)
def test_wrong_arguments_end_with_one_line_and_exit_code_2(arguments: list[str], message: str) -> None:
    done = subprocess.run([sys.executable, "-m", "pumice", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.strip()) == (2, message)


def test_check_makes_a_warning_an_error() -> None:
    inputs = ("-f", str(CASES / "conf-unknown-plugin.yaml"))
    result = CliRunner().invoke(cli, ["check", *inputs])
    assert 'there is no plugin "nosuch"' in str(result.exception)
    result = CliRunner().invoke(cli, ["cycle", *inputs])
    assert result.exit_code == 0
    assert 'warning: there is no plugin "nosuch" (skipped, as Volcano does)' in result.stderr


def test_plugins_are_listed_from_the_code() -> None:
    listed = json.loads(run("plugins", "-o", "json"))
    assert {"gang", "proportion", "capacity", "predicates"} <= set(listed["plugins"])
    assert {"enqueue", "allocate", "gangreclaim", "schedule"} <= set(listed["actions"])
    assert "binpack.resources.<name>" in run("plugins", "binpack")


def test_pods_of_a_gang_that_would_find_room_are_one_line() -> None:
    printed = run("cycle", "-f", str(CASES / "allocate-gang-min.yaml"))
    assert " and 1 more   a node has room for it, once minAvailable is satisfied" in printed


TWO_SPACES = """\
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "4", pods: "10"}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: team}, spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {containers: [{name: c, resources: {requests: {cpu: "9"}}}]}}
"""


def test_a_namespace_narrows_what_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(TWO_SPACES)
    found = json.loads(run("cycle", "-f", str(path), "-n", "team", "-o", "json"))
    assert (found["binds"], found["pending"], found["cycles"][0]["binds"]) == ({"team/a": "n1"}, {}, {"team/a": "n1"})
    assert "default/b" in run("cycle", "-f", str(path), "-n", "team", "-A")


def test_objects_that_are_checked_belong_to_the_namespace_of_the_option(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(TWO_SPACES)
    result = CliRunner().invoke(cli, ["check", "-f", str(path), "--against", str(path), "-n", "lab"])
    assert "pod/lab/b can never run here" in result.output
    assert "pod/team/a" in result.output
