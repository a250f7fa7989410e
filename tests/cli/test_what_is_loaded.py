"""What a program loads, in a fresh interpreter: those that schedule nothing carry no scheduler,
and what has no expressions no language for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCHEDULER = {"numpy", "pumice.scheduler", "pumice.live.scheduler"}
LISTED = "import importlib, sys; importlib.import_module(sys.argv[1]); print(*sys.modules)"
CYCLE = """
import sys
from pumice.cli.program import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""
SMALL = """
kind: Node
apiVersion: v1
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
kind: Pod
apiVersion: v1
metadata: {name: p, namespace: default}
spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}], schedulerName: default-scheduler}
"""


@pytest.mark.parametrize(
    ("command", "unneeded"),
    [
        ("controllers", {*SCHEDULER, "cryptography"}),
        ("webhooks", SCHEDULER),
        ("get", {*SCHEDULER, "pumice.cluster", "pumice.controllers", "cryptography"}),
        ("job", {*SCHEDULER, "pumice.cluster", "pumice.controllers", "cryptography"}),
    ],
)
def test_who_schedules_nothing_loads_no_scheduler(command: str, unneeded: set[str]) -> None:
    program = [sys.executable, "-c", LISTED, f"pumice.cli.{command}"]
    loaded = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert not unneeded.intersection(loaded)


def test_a_scheduler_loads_no_answers_and_no_loop_of_kube_scheduler_before_they_are_asked_for() -> None:
    program = [sys.executable, "-c", LISTED, "pumice.cli.scheduler"]
    loaded = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert not {
        "pumice.answers",
        "pumice.scheduler.kube",
        "pumice.inputs.recording.file_format",
        "tempfile",
        "shutil",
        "dataclasses",
    }.intersection(loaded)


def test_a_cluster_starts_without_answers_simulations_a_shell_and_native_gangs(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CYCLE, "up", "--once", "--port", "0", "--data", str(tmp_path / "data")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert "A cluster of 4 nodes" in ran.stdout
    assert not {
        "pumice.answers",
        "pumice.simulate",
        "pumice.page",
        "pumice.api.cel.check",
        "pumice.inputs.recording",
        "pumice.cluster.nodes.shell",
        "pumice.scheduler.kube.group_cycle",
        "difflib",
        "importlib.resources",
        "sqlite3",
        "statistics",
        "tarfile",
        "zoneinfo",
    }.intersection(ran.stderr.split())


def test_answers_load_no_player_of_simulations() -> None:
    program = [sys.executable, "-c", LISTED, "pumice.answers"]
    loaded = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert not {"pumice.simulate.policy_comparison", "pumice.simulate.report"}.intersection(loaded)


def test_a_cycle_without_devices_loads_no_expression_language(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(SMALL)
    command = [sys.executable, "-c", CYCLE, "cycle", "-f", str(tmp_path / "small.yaml")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "Bound" in ran.stdout
    assert not {"pumice.api.cel", "re2"}.intersection(ran.stderr.split())


def test_a_cycle_over_jobs_loads_no_network_no_other_controllers_and_no_loop_of_kube_scheduler() -> None:
    job = Path(__file__).parents[2] / "examples" / "job.yaml"
    command = [sys.executable, "-c", CYCLE, "cycle", "-f", str(job)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "train" in ran.stdout
    libraries = {"asyncio", "ssl", "socket", "hashlib", "zoneinfo", "dataclasses", "logging", "random"}
    own = {"client", "http", "scheduler.kube", "scheduler.actions.schedule", "controllers.registry", "controllers.kubernetes"}
    assert not (libraries | {f"pumice.{name}" for name in own}).intersection(ran.stderr.split())


def test_no_garbage_is_looked_for_while_a_command_is_imported() -> None:
    noting = "import gc; gc.callbacks.append(lambda *_: print('looked', 'click' in sys.modules, file=sys.stderr))\n"
    job = Path(__file__).parents[2] / "examples" / "job.yaml"
    command = [sys.executable, "-c", f"import sys; {noting}{CYCLE}", "cycle", "-f", str(job)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    before, _, _ = ran.stderr.partition("builtins")  # the first of all modules
    assert "looked True" not in before


def test_garbage_is_looked_for_more_seldom_while_a_cluster_is_read() -> None:
    steps = ("collect_nothing", "imported", "reads", "collect_seldom")
    told = "; ".join(f"garbage_collection.{step}(); print(gc.isenabled() and gc.get_threshold()[0])" for step in steps)
    ran = subprocess.run(
        [sys.executable, "-c", f"import gc; from pumice import garbage_collection; {told}"], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["False", "20000", "500000", "20000"]


def test_a_search_for_garbage_among_what_was_made_lately_looks_at_few_objects() -> None:
    noted = """
import gc
from pumice import garbage_collection
young = []
def note(phase, found):
    if phase == "start":
        young.append(sum(len(gc.get_objects(each)) for each in range(found["generation"] + 1)))
garbage_collection.collect_seldom()
gc.callbacks.append(note)
kept = [[] for _ in range(1_200_000)]
print(len(young), max(young))
"""
    ran = subprocess.run([sys.executable, "-c", noted], capture_output=True, text=True, check=True)
    searches, most = map(int, ran.stdout.split())
    assert searches > 10 and most < 100_000, "nobody is answered meanwhile"


def test_no_garbage_is_looked_for_at_the_end() -> None:
    ending = "import atexit, gc; atexit.register(lambda: print('looked at:', len(gc.get_objects()), file=sys.stderr))\n"
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys; {ending}{CYCLE}", "--help"], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(ran.stderr.partition("looked at:")[2]) < 1000
