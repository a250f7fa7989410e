"""`pumice up` and `pumice down` as a person uses them: processes, files, ports."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from kubernetes import client
from kubernetes.config import new_client_from_config

TIMEOUT_S = 60
JOB = Path(__file__).parents[2] / "examples" / "job.yaml"


class Pumice:
    """Runs the command with a home of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.place = home / ".pumice"
        kept = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
        self.environment = {**kept, "HOME": str(home)}
        self.started: list[subprocess.Popen[str]] = []
        self.command = [sys.executable, "-c", "from pumice.cli.program import main; main()"]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*self.command, *arguments], env=self.environment, capture_output=True, text=True, timeout=TIMEOUT_S)

    def popen(self, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*self.command, *arguments], env=self.environment, stdout=subprocess.PIPE, text=True, preexec_fn=heed_interrupts
        )
        self.started.append(process)
        return process

    def server(self, directory: Path | None = None) -> str:
        config = yaml.safe_load(((directory or self.place) / "kubeconfig").read_text())
        return str(config["clusters"][0]["cluster"]["server"])


def heed_interrupts() -> None:
    """Who was started in the background of a shell that takes no commands, or by nohup, ignores them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def pumice(tmp_path: Path) -> Iterator[Pumice]:
    command = Pumice(tmp_path)
    yield command
    for process in command.started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
    for directory in (command.place, tmp_path / "data"):
        if (directory / "pid").exists():
            command.run("down", "--data", str(directory))


def test_up_in_the_background_and_down_again(pumice: Pumice) -> None:
    up = pumice.run("up", "-d", "--port", "0", "--nodes", "3x4cpu")
    assert up.returncode == 0, up.stderr
    assert "A cluster of 3 nodes runs at https://127.0.0.1:" in up.stdout
    user_file = pumice.home / ".kube" / "config"
    assert f'"pumice" is the current context of {user_file} while it runs.' in up.stdout
    assert yaml.safe_load(user_file.read_text())["current-context"] == "pumice"
    assert f"`pumice down` ends it; its log is {pumice.place / 'log'}." in up.stdout
    assert (pumice.place / "kubeconfig").stat().st_mode & 0o777 == 0o600
    again = pumice.run("up", "--port", "0")
    assert again.returncode == 2
    assert "a cluster runs here already" in again.stderr
    assert "gpu" not in pumice.run("get", "nodes").stdout
    assert pumice.run("get", "nodes").stdout.count("cpu4-") == 3, "without a kubeconfig it is this user's own cluster that is meant"
    down = pumice.run("down")
    assert down.returncode == 0
    assert not pumice.place.exists()
    assert yaml.safe_load(user_file.read_text())["contexts"] == []
    assert pumice.run("down").returncode == 2


def test_clusters_with_names_run_side_by_side(pumice: Pumice, tmp_path: Path) -> None:
    assert "No clusters run" in pumice.run("clusters").stdout
    try:
        assert pumice.run("up", "-d", "--name", "dev", "--nodes", "1x4cpu").returncode == 0
        kept = pumice.run("up", "-d", "--data", str(tmp_path / "kept"), "--port", "0", "--nodes", "2x4cpu")
        assert kept.returncode == 0, kept.stderr
        listed = pumice.run("clusters").stdout.splitlines()
        assert [line.split()[:2] for line in listed] == [["NAME", "CONTEXT"], ["dev", "pumice-dev"], ["kept", "pumice-kept"]]
        assert pumice.run("get", "nodes", "--context", "pumice-dev").stdout.count("cpu4-") == 1
        assert pumice.run("get", "nodes").stdout.count("cpu4-") == 2, "the last one that came is current"
        assert "`pumice down --name kept` ends it" in pumice.run("up", "--name", "kept").stderr
        other = pumice.run("up", "--name", "kept", "--data", str(tmp_path / "other"))
        assert 'a cluster "kept" runs already' in other.stderr
    finally:
        downs = [pumice.run("down", "--name", name).returncode for name in ("dev", "kept")]
    assert downs == [0, 0]
    assert not pumice.place.exists()
    assert "is no name" in pumice.run("up", "--name", "Dev!").stderr


@pytest.mark.parametrize("name", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_leaves_nothing_behind(pumice: Pumice, name: signal.Signals) -> None:
    process = pumice.popen("up", "--port", "0")
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline().startswith("The page: http://127.0.0.1:")
        assert "runs at" in process.stdout.readline()
        process.send_signal(name)
        assert process.wait(TIMEOUT_S) == 0
    assert not pumice.place.exists()


def test_what_is_submitted_is_shown_once_it_runs(pumice: Pumice) -> None:
    done = pumice.run("up", "--port", "0", "--submit", str(JOB), "--once", "--speed", "20")
    assert done.returncode == 0, done.stderr
    assert "job train created" in done.stdout
    assert done.stdout.count("1/1     Running") == 4
    assert not pumice.place.exists()


def test_a_taken_port_is_explained(pumice: Pumice) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for background in ([], ["-d"]):
            up = pumice.run("up", "--port", port, *background)
            assert up.returncode == 2
            assert f"port {port} is taken by another program; give another, or 0 for any that is free" in up.stderr + up.stdout
    assert not pumice.place.exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--nodes", "many"], '--nodes: "many" is no pool of nodes'),
        (["-f", "absent.yaml"], "absent.yaml: cannot be read"),
        (["--conf", "absent.conf"], "absent.conf: cannot be read"),
        (["--stages", "absent.yaml"], "absent.yaml: cannot be read"),
    ],
)
def test_wrong_options_end_it_with_one_line(pumice: Pumice, arguments: list[str], problem: str) -> None:
    up = pumice.run("up", "--port", "0", *arguments)
    assert up.returncode == 2
    assert problem in up.stderr
    assert len(up.stderr.splitlines()) == 1
    assert not pumice.place.exists()


CLUSTER_FILE = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {capacity: {cpu: "4"}}
---
"""


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("{apiVersion: v1, kind: Nod, metadata: {name: x}}", ':6: document 2, Nod x: no such kind is served in v1; did you mean "Node"?'),
        ("{apiVersion: v1, kind: Pod}", ":6: document 2: not a Kubernetes object; it needs apiVersion, kind and metadata"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: []",
            ":10: document 2, Pod p, spec.containers: Required value",
        ),
        (
            "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\nspec: {weight: -1}",
            ":9: document 2, Queue q, spec.weight: Invalid value: -1: spec.weight in body should be greater than or equal to 1",
        ),
        ("{apiVersion: v1, kind: Pod, metadata: {name: [p]}}", ":6: document 2, metadata.name: is to be a string"),
    ],
)
@pytest.mark.parametrize("option", ["-f", "--submit"])
def test_what_is_wrong_in_a_file_is_told_with_its_line(pumice: Pumice, tmp_path: Path, option: str, document: str, problem: str) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER_FILE + document + "\n")
    up = pumice.run("up", "--port", "0", "--once", option, str(path))
    assert up.returncode == 2
    assert f"{path}{problem}" in up.stderr
    assert len(up.stderr.splitlines()) == 1
    assert not pumice.place.exists()


def test_fields_that_are_not_known_are_named_and_left_out(pumice: Pumice, tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER_FILE.replace("cpu:", "pods: 110}, capacitty: {cpu:"))
    up = pumice.run("up", "--port", "0", "--once", "-f", str(path))
    assert up.returncode == 0
    assert f'{path}:1: document 1, Node n1: unknown field "status.capacitty" is not taken' in up.stderr
    assert "A cluster of 1 node runs" in up.stdout


def test_whoever_keeps_a_cluster_is_told_how_to_end_it(pumice: Pumice, tmp_path: Path) -> None:
    data = tmp_path / "data"
    up = pumice.run("up", "-d", "--port", "0", "--data", str(data), "--submit", str(JOB))
    assert f"`pumice down --data {data}` ends it" in up.stdout
    assert "job train created" in up.stdout, "what becomes of the job is told although the cluster goes on in the background"
    assert f"`pumice down --data {data}` ends it" in pumice.run("up", "--data", str(data)).stderr
    assert pumice.run("down", "--data", str(data)).returncode == 0


@contextlib.contextmanager
def held_back(pumice: Pumice) -> Iterator[Path]:
    """A file whose reader waits until the block ends: a start that is not over before, however slow the test is."""
    path = pumice.home / "slow.yaml"
    os.mkfifo(path)
    yield path
    ends = time.monotonic() + TIMEOUT_S
    while True:
        try:
            file = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError:  # nobody reads yet
            assert time.monotonic() < ends, "the file was not read"
            time.sleep(0.01)
    os.write(file, CLUSTER_FILE.encode())
    os.close(file)


def claimed(pumice: Pumice) -> None:
    """Wait until a start has claimed its place."""
    ends = time.monotonic() + TIMEOUT_S
    while not (pumice.place / "pid").exists():
        assert time.monotonic() < ends, "it did not start"
        time.sleep(0.01)


@pytest.mark.parametrize("name", [signal.SIGINT, signal.SIGTERM])
def test_a_start_that_is_interrupted_leaves_nothing_behind(pumice: Pumice, name: signal.Signals) -> None:
    with held_back(pumice) as file:
        process = pumice.popen("up", "--port", "0", "-f", str(file))
        claimed(pumice)
        process.send_signal(name)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.read() == ""
    assert process.wait(TIMEOUT_S) == 0
    assert not pumice.place.exists()


def test_where_kubectl_and_pumice_are_not_on_the_path_the_welcome_says_what_works(pumice: Pumice, tmp_path: Path) -> None:
    script = tmp_path / "bin" / "pumice"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\nfrom pumice.cli.program import main\nmain()\n")
    script.chmod(0o700)
    pumice.command, pumice.environment["PATH"] = [str(script)], "/nowhere"
    up = pumice.run("up", "-d", "--port", "0", "--nodes", "2x4cpu")
    assert f"    {script} get nodes\n" in up.stdout
    assert "kubectl get" not in up.stdout
    assert f"`{script} down` ends it" in up.stdout
    for line in up.stdout.splitlines():
        if line.startswith(f"    {script}"):
            assert pumice.run(*line.split()[1:]).returncode == 0
    assert "train" in pumice.run("get", "vcjob").stdout
    assert pumice.run("down").returncode == 0


def test_a_start_in_the_background_that_is_interrupted_leaves_nothing_behind(pumice: Pumice) -> None:
    with held_back(pumice) as file:
        process = pumice.popen("up", "-d", "--port", "0", "-f", str(file))
        claimed(pumice)
        process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    with process.stdout:
        process.stdout.read()
    assert process.wait(TIMEOUT_S) == 1
    assert not pumice.place.exists()


def test_a_cluster_kept_in_a_directory_goes_on_where_it_was(pumice: Pumice, tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    first = pumice.run("up", "--port", "0", "--data", data, "--submit", str(JOB), "--once", "--speed", "20")
    assert first.returncode == 0, first.stderr
    second = pumice.run("up", "--port", "0", "--data", data, "--nodes", "1x4cpu", "--once")
    assert "A cluster of 5 nodes runs" in second.stdout, second.stderr


def test_a_cluster_that_was_killed_goes_on_with_all_it_had(pumice: Pumice, tmp_path: Path) -> None:
    data = tmp_path / "data"
    start = ("up", "-d", "--port", "0", "--data", str(data), "--speed", "20")
    first = pumice.run(*start, "--submit", str(JOB))
    assert first.returncode == 0, first.stderr
    kubeconfig = (data / "kubeconfig").read_text()
    os.kill(int((data / "pid").read_text()), signal.SIGKILL)
    until = time.monotonic() + TIMEOUT_S
    while pumice.run("down", "--data", str(data)).returncode != 2 and time.monotonic() < until:
        time.sleep(0.1)
    second = pumice.run(*start)
    assert "A cluster of 4 nodes runs" in second.stdout, second.stdout + second.stderr
    again = (data / "kubeconfig").read_text()
    server = re.compile("server: .*")
    assert server.sub("", again) == server.sub("", kubeconfig), "tokens and authority outlive the process"
    pods = pumice.run("get", "pods", "-k", str(data / "kubeconfig")).stdout
    assert pods.count("train-") == 4
    assert pumice.run("down", "--data", str(data)).returncode == 0


def test_objects_of_a_file_are_there_from_the_start(pumice: Pumice, tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(
        """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: big}, status: {allocatable: {cpu: 64, memory: 256Gi, pods: 110}}}
- {apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: research}, spec: {weight: 4}}
"""
    )
    process = pumice.popen("up", "--port", "0", "-f", str(path))
    assert process.stdout is not None
    with process.stdout:
        assert "A cluster of 1 node runs" in process.stdout.readline() + process.stdout.readline()
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0


def test_a_directory_that_cannot_be_read_is_explained(pumice: Pumice, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "pumice.db").write_text("this is no database " * 100)
    up = pumice.run("up", "--port", "0", "--data", str(data))
    assert up.returncode == 2
    assert "cannot be read: file is not a database; move it away to start anew" in up.stderr


def test_a_cluster_goes_into_a_file_and_out_of_it(pumice: Pumice, tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    assert "no cluster runs here" in pumice.run("export", str(file)).stderr
    assert pumice.run("up", "-d", "--port", "0", "--nodes", "4x8gpu", "--submit", str(JOB), "--speed", "20").returncode == 0
    done = pumice.run("export", str(file))
    assert done.returncode == 0, done.stderr
    assert file.stat().st_mode & 0o777 == 0o600
    pumice.run("down")
    again = pumice.run("up", "-d", "--port", "0", "--import", str(file))
    assert "A cluster of 4 nodes runs" in again.stdout, again.stderr
    shown = pumice.run("get", "pods", "--kubeconfig", str(pumice.place / "kubeconfig"))
    assert shown.stdout.count("Running") == 4, shown.stdout + shown.stderr


def test_a_file_that_is_no_cluster_is_explained(pumice: Pumice, tmp_path: Path) -> None:
    (tmp_path / "wrong.json").write_text('{"form": "other/1", "version": 1, "objects": {}}')
    (tmp_path / "none.json").write_text("nothing")
    for name, problem in (("wrong.json", 'its form is "other/1"'), ("none.json", "not a cluster file"), ("absent.json", "cannot be read")):
        up = pumice.run("up", "--port", "0", "--import", str(tmp_path / name))
        assert (up.returncode, len(up.stderr.splitlines())) == (2, 1)
        assert problem in up.stderr


def test_a_file_does_not_replace_a_cluster_that_is_kept(pumice: Pumice, tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text("{}")
    data = str(tmp_path / "data")
    assert pumice.run("up", "--port", "0", "--data", data, "--once").returncode == 0
    up = pumice.run("up", "--port", "0", "--data", data, "--import", str(tmp_path / "cluster.json"))
    assert "--data: holds a cluster already, which would be lost" in up.stderr


def test_amounts_that_no_cluster_has_are_kept_read_again_and_deleted(pumice: Pumice, tmp_path: Path) -> None:
    data, odd = tmp_path / "data", tmp_path / "odd.yaml"
    odd.write_text(
        f"""
apiVersion: v1
kind: Pod
metadata: {{name: odd}}
spec: {{schedulerName: volcano, containers: [{{name: c, image: i, resources: {{requests: {{cpu: "{"9" * 400}"}}}}}}]}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {{name: odd-group}}
spec: {{minMember: 1, minResources: {{memory: "{"9" * 400}"}}}}
"""
    )
    start = ("up", "-d", "--port", "0", "--data", str(data), "--nodes", "1x4cpu", "--speed", "20")
    assert pumice.run(*start).returncode == 0
    config = ("-k", str(data / "kubeconfig"))
    applied = pumice.run("apply", "-f", str(odd), *config)
    assert applied.returncode == 0, applied.stderr
    assert pumice.run("down", "--data", str(data)).returncode == 0
    again = pumice.run(*start)
    assert again.returncode == 0, again.stderr
    assert "odd" in pumice.run("get", "pods", *config).stdout
    with new_client_from_config(config_file=str(data / "kubeconfig")) as api:
        client.CoreV1Api(api).delete_namespaced_pod("odd", "default")
        group = ("scheduling.volcano.sh", "v1beta1", "default", "podgroups", "odd-group")
        client.CustomObjectsApi(api).delete_namespaced_custom_object(*group)
    assert "odd" not in pumice.run("get", "pods", *config).stdout
    assert pumice.run("down", "--data", str(data)).returncode == 0
