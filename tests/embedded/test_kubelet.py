"""Simulated kubelets, on a clock that is moved by hand and with pods bound by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pumice.api.errors import InputError
from pumice.cluster.apiserver import DeleteOptions, PatchRequest
from pumice.cluster.nodes.metrics_server import Metrics
from pumice.cluster.nodes.stage import read_stages
from tests.embedded.cluster import Still

RUN = "pumice.io/run-seconds"
CODE = "pumice.io/exit-code"


def annotate(still: Still, node: str, value: str | None) -> None:
    still.store.patch("nodes", node, PatchRequest("merge", {"metadata": {"annotations": {"pumice.io/kubelet": value}}}))


def container(still: Still, pod: str) -> Any:
    found = still.find(pod)
    assert found is not None
    return found["status"]["containerStatuses"][0]


def test_a_bound_pod_starts_after_a_second_and_runs_until_it_is_deleted() -> None:
    still = Still()
    still.pod("web", "cpu4-0")
    assert still.phase("web") == "Pending"
    still.after(1)
    assert still.phase("web") == "Running"
    pod = still.find("web")
    assert pod is not None
    assert pod["status"]["podIP"].startswith("10.")
    assert pod["status"]["hostIP"].startswith("172.")
    assert {each["type"]: each["status"] for each in pod["status"]["conditions"]}["Ready"] == "True"
    still.after(30 * 86400)
    assert still.phase("web") == "Running"


def test_a_pod_that_nobody_bound_stays_pending() -> None:
    still = Still()
    still.pod("waits")
    still.after(3600)
    assert still.phase("waits") == "Pending"


@pytest.mark.parametrize(("code", "phase", "reason"), [("0", "Succeeded", "Completed"), ("3", "Failed", "Error")])
def test_a_pod_runs_as_long_as_it_says_and_ends_with_its_exit_code(code: str, phase: str, reason: str) -> None:
    still = Still()
    still.pod("job", "cpu4-0", notes={RUN: "60", CODE: code})
    still.after(60)
    assert still.phase("job") == "Running"
    still.after(1)
    assert still.phase("job") == phase
    end = container(still, "job")["state"]["terminated"]
    assert (end["exitCode"], end["reason"]) == (int(code), reason)


@pytest.mark.parametrize(
    ("containers", "seconds"),
    [
        ([{"command": ["sleep", "30"]}], 30),
        ([{"command": ["/bin/sleep"], "args": ["1m", "5s"]}], 65),
        ([{"args": ["sleep", "1.5h"]}], 5400),
        ([{"command": ["/bin/sh", "-c", "sleep 10;"]}], 10),
        ([{"command": ["bash", "-c"], "args": ["sleep 10"]}], 10),
        ([{"command": ["sleep", "10"]}, {"command": ["sleep", "20"]}], 20),
        ([{"command": ["sleep", "infinity"]}], None),
        ([{"command": ["sleep", "10"]}, {"command": ["serve"]}], None),
        ([{"command": ["sh", "-c", "sleep 10; serve"]}], None),
        ([{"command": ["sh", "-c", "sleep '10"]}], None),
        ([{"command": ["sh", "-x", "-c", "sleep 10"]}], None),
        ([{"command": ["sleep"]}], None),
        ([{}], None),
    ],
)
def test_a_pod_that_only_sleeps_ends_when_it_wakes_up(containers: list[dict[str, Any]], seconds: float | None) -> None:
    still = Still()
    named = [{"name": f"c{number}", "image": "busybox", **each} for number, each in enumerate(containers)]
    still.store.create("pods", {"metadata": {"name": "job"}, "spec": {"containers": named, "restartPolicy": "Never"}}, "default")
    still.store.bind("default", "job", "cpu4-0")
    if seconds is not None:
        still.after(seconds)
        assert still.phase("job") == "Running"
        still.after(1)
        assert still.phase("job") == "Succeeded"
    else:
        still.after(86_400)
        assert still.phase("job") == "Running"


def test_how_long_a_pod_runs_may_be_a_distribution_and_the_same_pod_always_fares_the_same() -> None:
    ends = []
    for _ in range(2):
        still = Still()
        still.pod("job", "cpu4-0", notes={RUN: "{uniform: [100, 200]}"})
        still.after(500)
        end = container(still, "job")["state"]["terminated"]
        ends.append((end["startedAt"], end["finishedAt"]))
    assert ends[0] == ends[1]


def test_a_container_that_is_to_restart_does_so_after_a_pause_that_grows() -> None:
    still = Still()
    still.pod("loop", "cpu4-0", notes={RUN: "10", CODE: "1"}, restartPolicy="OnFailure")
    counts = []
    for _ in range(6):
        still.after(15)
        counts.append(container(still, "loop")["restartCount"])
    assert counts == [1, 1, 2, 2, 3, 3]
    assert still.phase("loop") == "Running"


def test_a_deleted_pod_is_given_its_grace_but_no_more() -> None:
    still = Still()
    still.pod("web", "cpu4-0")
    still.pod("hasty", "cpu4-1", terminationGracePeriodSeconds=0)
    still.after(1)
    for name in ("web", "hasty"):
        still.store.delete("pods", name, "default")
    still.plane.quiet()
    assert (still.phase("web"), still.phase("hasty")) == ("Terminating", "gone")
    still.after(1)
    assert still.phase("web") == "gone"


def test_a_deadline_ends_a_pod() -> None:
    still = Still()
    still.pod("late", "cpu4-0", activeDeadlineSeconds=30)
    still.after(40)
    pod = still.find("late")
    assert pod is not None
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "DeadlineExceeded")


def test_what_does_not_fit_is_turned_away_with_numbers() -> None:
    still = Still("1x4cpu")
    still.pod("first", "cpu4-0", cpu="3")
    still.pod("second", "cpu4-0", cpu="2")
    pod = still.find("second")
    assert pod is not None
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "OutOfcpu")
    assert "requested: 2000, used: 3000, capacity: 4000" in pod["status"]["message"]


def test_room_is_free_again_once_a_pod_has_ended() -> None:
    still = Still("1x4cpu")
    still.pod("first", "cpu4-0", cpu="3", notes={RUN: "5"})
    still.after(10)
    still.pod("second", "cpu4-0", cpu="3")
    still.after(1)
    assert still.phase("second") == "Running"


def test_a_pod_that_does_not_suit_the_node_is_turned_away() -> None:
    still = Still()
    still.pod("picky", "cpu4-0", nodeSelector={"disk": "fast"})
    pod = still.find("picky")
    assert pod is not None
    assert pod["status"]["reason"] == "NodeAffinity"


def test_a_pod_whose_host_port_is_taken_is_turned_away() -> None:
    def on(port: int, address: str = "", **fields: str) -> list[dict[str, Any]]:
        ports = [{"containerPort": 80, "hostPort": port, **({"hostIP": address} if address else {}), **fields}]
        return [{"name": "main", "image": "web:1", "ports": ports}]

    still = Still()
    still.pod("first", "cpu4-0", containers=on(8080, "127.0.0.1"))
    still.pod("second", "cpu4-0", containers=on(8080))
    still.pod("elsewhere", "cpu4-1", containers=on(8080))
    still.pod("other-address", "cpu4-0", containers=on(8080, "127.0.0.2"))
    still.pod("other-protocol", "cpu4-0", containers=on(8080, protocol="UDP"))
    still.after(2)
    pod = still.find("second")
    assert pod is not None
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "NodePorts")
    assert pod["status"]["message"].endswith("Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports")
    assert [still.phase(name) for name in ("first", "elsewhere", "other-address", "other-protocol")] == ["Running"] * 4
    still.store.delete("pods", "first", "default")
    still.after(5)
    still.pod("third", "cpu4-0", containers=on(8080, "127.0.0.1"))
    still.after(2)
    assert still.phase("third") == "Running"


def test_a_failed_node_is_noticed_after_forty_seconds_and_its_pods_end_after_their_toleration() -> None:
    still = Still()
    still.pod("web", "cpu4-0")
    still.after(3600)
    annotate(still, "cpu4-0", "stopped")
    still.after(39)
    assert "taints" not in still.store.get("nodes", "cpu4-0")["spec"]
    still.after(2)
    assert {taint["effect"] for taint in still.store.get("nodes", "cpu4-0")["spec"]["taints"]} == {"NoSchedule", "NoExecute"}
    still.after(301)
    assert still.phase("web") == "Terminating", "nobody is there to end it"
    annotate(still, "cpu4-0", None)
    still.after(2)
    assert still.phase("web") == "gone"
    assert not still.store.get("nodes", "cpu4-0")["spec"].get("taints")


def test_a_node_that_was_taken_for_dead_says_that_it_lives() -> None:
    still = Still()
    still.after(5)
    node = still.store.get("nodes", "cpu4-0")
    unknown = [{**each, "status": "Unknown"} if each["type"] == "Ready" else each for each in node["status"]["conditions"]]
    still.store.update("nodes", node | {"status": node["status"] | {"conditions": unknown}}, "status")
    still.after(1)
    node = still.store.get("nodes", "cpu4-0")
    assert [each["status"] for each in node["status"]["conditions"] if each["type"] == "Ready"] == ["True"]
    assert not node["spec"].get("taints")


def test_pods_stand_still_while_their_node_is_down() -> None:
    still = Still()
    still.pod("job", "cpu4-0", notes={RUN: "20"})
    still.after(5)
    annotate(still, "cpu4-0", "stopped")
    still.after(200)
    assert still.phase("job") == "Running"
    annotate(still, "cpu4-0", None)
    still.after(1)
    assert still.phase("job") == "Succeeded"


def test_pods_of_a_deleted_node_go_with_it() -> None:
    still = Still()
    still.pod("web", "cpu4-0")
    still.after(5)
    still.store.delete("nodes", "cpu4-0")
    still.after(1)
    assert still.phase("web") == "gone"


def test_metrics_tell_what_runs() -> None:
    still = Still()
    still.pod("web", "cpu4-0", cpu="2")
    still.pod("told", "cpu4-0", notes={"pumice.io/cpu-usage": "50m", "pumice.io/memory-usage": "10Mi"})
    still.after(30)
    assert not still.store.storage.has_any("pods.metrics.k8s.io")  # as long as nobody reads them
    assert still.store.get("pods.metrics.k8s.io", "told", "default")["containers"][0]["usage"] == {"cpu": "50m", "memory": "10Mi"}
    assert still.store.get("nodes.metrics.k8s.io", "cpu4-0")["usage"]["cpu"] == "1650m"
    still.store.delete("pods", "web", "default")
    still.after(30)
    assert still.store.find("pods.metrics.k8s.io", "default", "web") is None
    assert still.store.get("nodes.metrics.k8s.io", "cpu4-0")["usage"]["cpu"] == "50m"
    still.store.delete("pods", "told", "default")
    still.store.delete("nodes", "cpu4-0")
    still.after(30)
    Metrics(still.store)  # of a server that is started anew, with what was written before
    assert not list(still.store.all("pods.metrics.k8s.io"))
    assert [metrics["metadata"]["name"] for metrics in still.store.all("nodes.metrics.k8s.io")] == ["cpu4-1"]


def test_pods_that_came_and_went_are_not_kept_for_readers_of_metrics() -> None:
    still = Still()
    for number in range(3):
        still.pod(f"web-{number}", "cpu4-0")
        still.after(30)
        still.store.delete("pods", f"web-{number}", "default")
        still.after(30)
    assert not still.plane._workers[0]._metrics._changed_pods  # type: ignore[attr-defined]


def test_metrics_may_be_read_between_the_end_of_a_pod_and_its_kubelets_look() -> None:
    still = Still()
    still.pod("web", "cpu4-0")
    still.after(3)
    still.store.delete("pods", "web", "default", DeleteOptions(grace_s=0))
    assert not list(still.store.all("pods.metrics.k8s.io"))
    still.plane.quiet()
    still.pod("next", "cpu4-0")
    still.after(3)
    assert still.phase("next") == "Running"


def test_running_pods_cost_nothing_while_nothing_happens() -> None:
    still = Still("10x64cpu")
    for number in range(200):
        still.pod(f"web-{number}", f"cpu64-{number % 10}", cpu="10m")
    still.after(3600)
    before = still.store.storage.kind_storage("pods").events[-1].resource_version
    still.after(86400)
    assert still.store.storage.kind_storage("pods").events[-1].resource_version == before


STAGES = """
pods:
- {name: slow start, phase: Pending, after: 10s, becomes: Running}
- {name: crash, phase: Running, labels: {fragile: "yes"}, chance: 0.5, after: {exponential: 5}, becomes: Failed, exitCode: 9}
- {name: stop, phase: Terminating, after: 5, becomes: Gone}
"""


def test_other_stages_make_other_kubelets(tmp_path: Path) -> None:
    path = tmp_path / "stages.yaml"
    path.write_text(STAGES)
    still = Still("1x64cpu", read_stages(path))
    for number in range(40):
        still.store.create("pods", _fragile(number), "default")
        still.store.bind("default", f"p{number}", "cpu64-0")
    still.after(9)
    assert still.phase("p0") == "Pending"
    still.after(100)
    phases = [still.phase(f"p{number}") for number in range(40)]
    assert 8 < phases.count("Failed") < 32
    assert phases.count("Failed") + phases.count("Running") == 40


def test_a_stage_may_be_for_pods_that_run_a_program(tmp_path: Path) -> None:
    path = tmp_path / "stages.yaml"
    start = "{name: start, phase: Pending, becomes: Running}"
    path.write_text(f"pods: [{start}, {{name: said, phase: Running, command: say, after: 1s, becomes: Ended}}]")
    still = Still("1x64cpu", read_stages(path))
    runs = {"both": [{"command": ["/bin/say"]}, {"args": ["say", "it"]}], "one": [{"args": ["say"]}, {"args": ["do"]}], "none": [{}]}
    for name, each in runs.items():
        containers = [{"name": f"c{number}", "image": "x", **words} for number, words in enumerate(each)]
        still.store.create("pods", {"metadata": {"name": name}, "spec": {"containers": containers, "restartPolicy": "Never"}}, "default")
        still.store.bind("default", name, "cpu64-0")
    still.after(10)
    assert {name: still.phase(name) for name in runs} == {"both": "Succeeded", "one": "Running", "none": "Running"}


def _fragile(number: int) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "x"}], "restartPolicy": "Never"}
    return {"metadata": {"name": f"p{number}", "labels": {"fragile": "yes"}}, "spec": spec}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("pods: [{name: a, phase: Sleeping, becomes: Gone}]", "Sleeping"),
        ("pods: [{name: a, phase: Running, becomes: Gone, affter: 3}]", "affter"),
        ("pods: [{name: a, phase: Running, becomes: Gone, after: {uniform: 3}}]", "uniform takes 2 numbers"),
        ("pods: [{name: a, phase: Running, becomes: Gone, after: soon}]", '"soon" is not a duration'),
        ("pods: [{name: a, phase: Running, becomes: Gone, chance: 3}]", "not between 0 and 1"),
        ("pods: [", "flow"),
    ],
)
def test_stages_that_cannot_be_read_are_explained(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "stages.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        read_stages(path)
