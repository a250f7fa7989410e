"""exec, attach, port-forward, cp and logs -f by clients that others wrote: the official Python client, and kubectl on both wires."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.request
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from kubernetes import client, config
    from kubernetes.stream import portforward, stream

from pumice.cluster.nodes.containers import SimulatedContainers
from pumice.http.websocket import CLOSE
from tests.apiserver.server_process import Running, in_thread, kubeconfig_of
from tests.apiserver.wire import Wire
from tests.kubectl.conftest import Kubectl

CONTAINER = {
    "name": "main",
    "image": "x",
    "ports": [{"containerPort": 8080}],
    "env": [{"name": "K", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "k"}}}, {"name": "TWICE", "value": "$(K)$(K)"}],
    "volumeMounts": [{"name": "conf", "mountPath": "/etc/app"}, {"name": "id", "mountPath": "/id"}],
}
TOKEN = {"name": "id", "projected": {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}]}}
POD = {
    "metadata": {"name": "web"},
    "spec": {"nodeName": "n", "containers": [CONTAINER], "volumes": [{"name": "conf", "configMap": {"name": "cm"}}, TOKEN]},
}
BEGUN = "2026-01-01T00:00:00Z"
RUNNING = {"phase": "Running", "containerStatuses": [{"name": "main", "ready": True, "state": {"running": {"startedAt": BEGUN}}}]}

PLAIN = pytest.mark.parametrize("running", [True], indirect=True)


@pytest.fixture(scope="module", params=[False])
def running(request: pytest.FixtureRequest) -> Iterator[Running]:
    """A server with TLS, or a plain one if a test asks for it."""
    with in_thread(plain=request.param, containers=SimulatedContainers(time.time)) as made:

        def fill(store: Any) -> None:
            store.create("serviceaccounts", {"metadata": {"name": "default"}}, "default")
            store.create("configmaps", {"metadata": {"name": "cm"}, "data": {"k": "v", "app.conf": "color=blue\n"}}, "default")
            store.create("pods", POD, "default")
            store.update("pods", store.get("pods", "web", "default") | {"status": RUNNING}, "status")
            store.create("pods", {"metadata": {"name": "waits"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}, "default")

        made.call(fill)
        yield made


@pytest.fixture
def core(running: Running, tmp_path: Path) -> Iterator[Any]:
    with config.new_client_from_config(str(kubeconfig_of(running, tmp_path))) as made:
        yield client.CoreV1Api(made)


@pytest.fixture
def kubectl(running: Running, tmp_path: Path) -> Kubectl:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    return Kubectl(tmp_path, kubeconfig_of(running, tmp_path))


def test_command_by_the_python_client_with_both_outputs_and_its_exit_code(core: Any) -> None:
    talk = stream(
        core.connect_get_namespaced_pod_exec,
        "web",
        "default",
        command=["sh", "-c", "echo $TWICE; cat /etc/app/app.conf; echo bad >&2; exit 3"],
        stdout=True,
        stderr=True,
        _preload_content=False,
    )
    talk.run_forever(timeout=30)
    talk.sock.shutdown()
    assert (talk.read_stdout(), talk.read_stderr(), talk.returncode) == ("vv\ncolor=blue\n", "bad\n", 3)


def test_terminal_answers_line_by_line(core: Any) -> None:
    talk = stream(
        core.connect_get_namespaced_pod_exec,
        "web",
        "default",
        command=["/bin/sh"],
        stdin=True,
        stdout=True,
        tty=True,
        _preload_content=False,
    )
    talk.write_stdin("X=1\recho a$X\rexit 4\r")
    talk.run_forever(timeout=30)
    talk.sock.shutdown()
    assert talk.read_stdout() == "# X=1\r\n# echo a$X\r\na1\r\n# exit 4\r\n" and talk.returncode == 4


def test_port_by_the_python_client(core: Any) -> None:
    forwarded = portforward(core.connect_get_namespaced_pod_portforward, "web", "default", ports="8080")
    socket = forwarded.socket(8080)
    socket.settimeout(30)
    socket.sendall(b"GET / HTTP/1.1\r\nHost: web\r\n\r\n")
    assert b"200 OK" in socket.recv(4096)
    forwarded.close()


@PLAIN
@pytest.mark.parametrize(
    ("path", "headers", "code", "text"),
    [
        ("web/exec?stdout=1", {}, 400, "Upgrade request required"),
        ("web/exec?stdout=1", {"Upgrade": "websocket", "Sec_WebSocket_Protocol": "v5.channel.k8s.io"}, 400, "at least 1 command"),
        ("web/exec?command=env", {"Upgrade": "websocket", "Sec_WebSocket_Protocol": "v9"}, 403, "unable to negotiate protocol"),
        ("web/exec?command=env&container=x", {}, 400, "container x is not valid for pod web"),
        ("waits/exec?command=env", {}, 400, "pod waits does not have a host assigned"),
        ("none/attach", {}, 404, 'pods "none" not found'),
        ("web/portforward?ports=0", {"Upgrade": "websocket", "Sec_WebSocket_Protocol": "v4.channel.k8s.io"}, 400, "names ports"),
    ],
)
def test_what_cannot_be_reached_is_refused_in_words(running: Running, path: str, headers: dict[str, str], code: int, text: str) -> None:
    with Wire(running) as wire:
        status, answer = wire.ask("GET", f"/api/v1/namespaces/default/pods/{path}", **headers)
    assert (status, text in answer["message"]) == (code, True), answer


@PLAIN
def test_command_on_the_oldest_wire_says_nothing_when_all_is_well_and_text_when_not(running: Running) -> None:
    def said(command: str) -> list[tuple[int, bytes]]:
        path = f"/api/v1/namespaces/default/pods/web/exec?stdout=1&stderr=1&command={command}"
        with Wire(running) as wire:
            wire.send(wire.request("GET", path, Upgrade="websocket", Sec_WebSocket_Key="eA==", Sec_WebSocket_Protocol="channel.k8s.io"))
            assert wire.head()[0] == 101
            found = []
            while (head := wire.exactly(2))[0] & 15 != CLOSE:
                body = wire.exactly(head[1])
                found.append((body[0], body[1:]))
        return found

    assert said("whoami") == [(1, b"root\n")]
    assert said("false") == [(3, b"command terminated with non-zero exit code: exit status 1")]


@PLAIN
@pytest.mark.parametrize("stated", [{}, {"Sec_WebSocket_Protocol": "binary.k8s.io"}])
def test_log_over_websocket_ends_with_what_there_is(running: Running, stated: dict[str, str]) -> None:
    with Wire(running) as wire:
        path = "/api/v1/namespaces/default/pods/web/log?container=main"
        wire.send(wire.request("GET", path, Upgrade="websocket", Sec_WebSocket_Key="eA==", **stated))
        status, headers = wire.head()
        assert (status, headers.get("sec-websocket-protocol")) == (101, stated.get("Sec_WebSocket_Protocol"))
        text = wire.exactly(wire.exactly(2)[1])
        assert text.startswith(BEGUN.encode()) and wire.exactly(2)[0] & 15 == CLOSE


@PLAIN
def test_reader_of_pods_may_not_run_commands_though_a_websocket_begins_with_get(running: Running) -> None:
    def grant(store: Any) -> None:
        rule = {"apiGroups": [""], "resources": ["pods", "pods/exec"], "verbs": ["get"]}
        store.create("roles.rbac.authorization.k8s.io", {"metadata": {"name": "reads"}, "rules": [rule]}, "default")
        subjects = [{"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"}]
        reference = {"kind": "Role", "name": "reads", "apiGroup": "rbac.authorization.k8s.io"}
        binding = {"metadata": {"name": "reads"}, "subjects": subjects, "roleRef": reference}
        store.create("rolebindings.rbac.authorization.k8s.io", binding, "default")

    running.call(grant)
    with Wire(running) as wire:
        assert wire.ask("GET", "/api/v1/namespaces/default/pods/web", Impersonate_User="eve")[0] == 200
        status, answer = wire.ask("GET", "/api/v1/namespaces/default/pods/web/exec?command=env", Impersonate_User="eve")
    assert status == 403 and 'cannot create resource "pods/exec"' in answer["message"]


@pytest.mark.parametrize("wire", ["true", "false"], ids=["websocket", "spdy"])
def test_kubectl_runs_commands_and_forwards_ports(kubectl: Kubectl, wire: str) -> None:
    kubectl.environment |= {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": wire, "KUBECTL_PORT_FORWARD_WEBSOCKETS": wire}
    assert kubectl("exec", "web", "--", "cat", "/etc/app/app.conf") == "color=blue\n"
    done = kubectl.run("exec", "-i", "web", "--", "sh", "-c", "cat; exit 7", stdin="said\n")
    assert (done.stdout, done.returncode) == ("said\n", 7)
    forwarding = kubectl.popen("port-forward", "pod/web", ":8080")
    try:
        assert forwarding.stdout is not None
        port = forwarding.stdout.readline().split(":")[1].split(" ")[0]
        for _ in range(2):
            assert b"<h1>web</h1>" in urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30).read()
    finally:
        forwarding.kill()
        forwarding.communicate()


def test_token_in_a_container_is_one_of_its_pod(kubectl: Kubectl) -> None:
    token = kubectl("exec", "web", "--", "cat", "/id/token")
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    status = json.loads(kubectl("create", "-o", "json", "-f", "-", stdin=json.dumps(review)))["status"]
    assert status["authenticated"] and status["user"]["username"] == "system:serviceaccount:default:default"
    assert status["user"]["extra"]["authentication.kubernetes.io/pod-name"] == ["web"]


def test_kubectl_copies_files_in_and_out(kubectl: Kubectl) -> None:
    (kubectl.folder / "given").write_text("data\n")
    kubectl("cp", "given", "web:/tmp/given")
    assert kubectl("exec", "web", "--", "cat", "/tmp/given") == "data\n"
    kubectl("cp", "web:/etc/app", "got")
    assert (kubectl.folder / "got" / "app.conf").read_text() == "color=blue\n"


def test_followed_log_and_attached_client_end_with_the_container(kubectl: Kubectl, running: Running) -> None:
    def make(store: Any) -> None:
        store.create("pods", POD | {"metadata": {"name": "ends"}}, "default")
        store.update("pods", store.get("pods", "ends", "default") | {"status": RUNNING}, "status")

    running.call(make)
    followers = [kubectl.popen("logs", "-f", "ends"), kubectl.popen("attach", "ends")]
    first = [_line(follower, "started on") for follower in followers]
    ended = {"terminated": {"startedAt": BEGUN, "finishedAt": BEGUN, "exitCode": 5}}
    status = RUNNING | {"containerStatuses": [{"name": "main", "ready": False, "state": ended}]}
    running.call(lambda store: store.update("pods", store.get("pods", "ends", "default") | {"status": status}, "status"))
    rest = [follower.communicate(timeout=60)[0] for follower in followers]
    assert all(first) and all("ended with exit code 5" in text for text in rest), rest


def _line(process: subprocess.Popen[str], word: str) -> str:
    assert process.stdout is not None
    return next((line for line in process.stdout if word in line), "")
