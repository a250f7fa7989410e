"""Commands of kubectl that wait: get --watch, wait, rollout status, events --watch; and who may do what."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable

import pytest

from tests.kubectl.conftest import TIMEOUT_S, Kubectl

pytestmark = pytest.mark.kubectl

Until = Callable[[Callable[[], bool]], None]
POD = {"spec": {"containers": [{"name": "c", "image": "busybox"}]}}


def set_ready(kubectl: Kubectl, name: str) -> None:
    def write(store) -> None:  # type: ignore[no-untyped-def]
        pod = store.get("pods", name, "default")
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        store.update("pods", pod | {"status": status}, "status")

    kubectl.running.call(write)


def make(kubectl: Kubectl, name: str, **labels: str) -> None:
    kubectl.running.call(lambda store: store.create("pods", POD | {"metadata": {"name": name, "labels": labels}}, "default"))


def lines_until(process: subprocess.Popen[str], word: str) -> list[str]:
    """What it prints, up to a line with the word."""
    assert process.stdout is not None
    lines = []
    alarm = threading.Timer(TIMEOUT_S, process.kill)
    alarm.start()
    try:
        for line in process.stdout:
            lines.append(line)
            if word in line:
                return lines
    finally:
        alarm.cancel()
    raise AssertionError(f"{word} did not come: {lines}")


def ended(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_watching_a_list_shows_what_comes(kubectl: Kubectl) -> None:
    make(kubectl, "first")
    process = kubectl.popen("get", "pods", "-w")
    try:
        lines_until(process, "first")
        make(kubectl, "second")
        assert lines_until(process, "second")[-1].split()[:3] == ["second", "0/1", "Pending"]
        set_ready(kubectl, "second")
        assert lines_until(process, "Running")[-1].split()[0] == "second"
    finally:
        ended(process)


def test_watching_one_object(kubectl: Kubectl, until: Until) -> None:
    make(kubectl, "single")
    process = kubectl.popen("get", "pod", "single", "-w")
    try:
        lines_until(process, "single")
        until(lambda: kubectl.running.call(lambda store: len(store.storage.kind_storage("pods").watches) == 1))
        set_ready(kubectl, "single")
        lines_until(process, "Running")
    finally:
        ended(process)


def test_wait_for_a_condition(kubectl: Kubectl) -> None:
    make(kubectl, "awaited")
    process = kubectl.popen("wait", "--for=condition=Ready", "pod/awaited", "--timeout=10s")
    try:
        set_ready(kubectl, "awaited")
        lines_until(process, "condition met")
    finally:
        ended(process)
    assert "timed out" in kubectl.refused("wait", "--for=condition=Never", "pod/awaited", "--timeout=1s")


def test_wait_for_deletion(kubectl: Kubectl, until: Until) -> None:
    make(kubectl, "leaving")
    process = kubectl.popen("wait", "--for=delete", "pod/leaving", "--timeout=10s")
    try:
        until(lambda: kubectl.running.call(lambda store: len(store.storage.kind_storage("pods").watches) == 1))
        kubectl("delete", "pod", "leaving", "--wait=false")
        lines_until(process, "condition met")
    finally:
        ended(process)


def test_rollout_status_follows_a_deployment(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "rolls", "--image=nginx")
    process = kubectl.popen("rollout", "status", "deployment/rolls", "--timeout=10s")
    try:
        lines_until(process, "Waiting")

        def finish(store) -> None:  # type: ignore[no-untyped-def]
            deployment = store.get("deployments.apps", "rolls", "default")
            status = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}
            store.update("deployments.apps", deployment | {"status": status}, "status")

        kubectl.running.call(finish)
        lines_until(process, "successfully rolled out")
    finally:
        ended(process)


def test_events_are_watched(kubectl: Kubectl) -> None:
    process = kubectl.popen("events", "--watch")
    try:
        event = {
            "metadata": {"name": "e"},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
            "message": "seen by all",
        }
        kubectl.running.call(lambda store: store.create("events", event | {"type": "Normal", "reason": "R"}, "default"))
        lines_until(process, "seen by all")
    finally:
        ended(process)


def test_the_administrator_may_everything_and_knows_who_he_is(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    assert "pumice-admin" in kubectl("auth", "whoami")
    assert "*.*" in kubectl("auth", "can-i", "--list")


def test_others_may_what_their_roles_say(kubectl: Kubectl) -> None:
    kubectl("create", "role", "viewer", "--verb=get,list,watch", "--resource=pods")
    kubectl("create", "rolebinding", "viewers", "--role=viewer", "--user=ann", "--serviceaccount=default:robot")
    assert kubectl("auth", "can-i", "list", "pods", "--as=ann").strip() == "yes"
    assert kubectl.run("auth", "can-i", "delete", "pods", "--as=ann").stdout.startswith("no")
    kubectl("get", "pods", "--as=ann")
    refused = kubectl.refused("get", "pods", "-n", "kube-system", "--as=ann")
    assert 'User "ann" cannot list resource "pods" in API group "" in the namespace "kube-system"' in refused
    assert "Forbidden" in kubectl.refused("get", "nodes", "--as=bob")


def test_a_service_account_gets_a_token_that_works(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "robot")
    kubectl("create", "role", "lister", "--verb=list,get", "--resource=pods")
    kubectl("create", "rolebinding", "listers", "--role=lister", "--serviceaccount=default:robot")
    token = kubectl("create", "token", "robot").strip()
    host = ("--server", kubectl.running.url, "--insecure-skip-tls-verify", "--kubeconfig=/dev/null", f"--token={token}")
    assert "system:serviceaccount:default:robot" in kubectl("auth", "whoami", *host)
    kubectl("get", "pods", *host)
    assert "Forbidden" in kubectl.refused("delete", "pod", "any", *host)
    assert "logged in" in kubectl.refused("get", "pods", *host[:-1], "--token=wrong")


def test_waiting_for_a_field_and_for_a_creation(kubectl: Kubectl) -> None:
    make(kubectl, "fielded")
    process = kubectl.popen("wait", "--for=jsonpath={.status.phase}=Running", "pod/fielded", "--timeout=10s")
    coming = kubectl.popen("wait", "--for=create", "pod/coming", "--timeout=10s")
    try:
        set_ready(kubectl, "fielded")
        lines_until(process, "condition met")
        make(kubectl, "coming")
        lines_until(coming, "condition met")
    finally:
        ended(process)
        ended(coming)


def test_watching_only_what_changes_in_all_namespaces(kubectl: Kubectl, until: Until) -> None:
    make(kubectl, "old")
    before = kubectl.running.call(lambda store: len(store.storage.kind_storage("pods").watches))
    process = kubectl.popen("get", "pods", "-A", "--watch-only", "-o", "name")
    try:
        until(lambda: kubectl.running.call(lambda store: len(store.storage.kind_storage("pods").watches)) > before)
        make(kubectl, "fresh")
        assert lines_until(process, "fresh") == ["pod/fresh\n"]
    finally:
        ended(process)
