"""Every example is a cluster to begin with, and something to submit; what files bring and what they lack."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pumice.api.errors import InputError
from pumice.cli.cluster_file import read_cluster_file
from pumice.cli.create_in_order import in_order
from pumice.cli.embedded import Embedded, running
from pumice.cli.up import NODES
from pumice.cli.up_options import UpRequest, wanted
from pumice.cli.up_submit import submit

EXAMPLES = Path(__file__).parents[2] / "examples"
#: pods that run in the end, for whom others may have had to go
RUN = {
    "answers": {"frontend-0", "frontend-1"},
    "bin-packing": {"on-node1", "on-node2", "train", "straight"},
    "capacity": {"due-worker-0", "due-worker-1"},
    "elastic": {"elastic-worker-0", "elastic-worker-1", "elastic-worker-2", "elastic-worker-3"},
    "first": {"train-worker-0", "train-worker-1"},
    "gang": {"small-worker-0", "small-worker-1"},
    "job": {"train-chief-0", "train-worker-0", "train-worker-1", "train-worker-2"},
    "kube-batch": {"alone", "job-1-abc", "job-2-def"},
    "preempt": {"incident-worker-0", "incident-worker-1"},
    "preemption": {"urgent"},
    "queues": {"job-a-worker-1", "job-b-worker-5"},
    "topology": {"train-worker-0", "train-worker-1", "train-worker-2", "train-worker-3"},
    "why-pending": set(),
}
#: how many are told why they do not
TOLD = {"answers": 4, "elastic": 2, "first": 2, "gang": 4, "queues": 4, "why-pending": 1}
QUEUES = "queues.scheduling.volcano.sh"


def asked(*files: Path, submitted: Path | None = None, conf: tuple[str, ...] = (), data: Path | None = None, **more: Any) -> UpRequest:
    options: dict[str, Any] = {
        "nodes": None,
        "speed": 50.0,
        "pause": False,
        "stages": None,
        "plugins_dir": None,
        "archive": None,
        "recover": False,
        "record": "",
    }
    options |= more
    where = {"host": "127.0.0.1", "port": 0}
    paths = tuple(map(str, files))
    return wanted(data, NODES, files=paths, submitted=str(submitted) if submitted else None, conf=conf, **options, **where)


def test_gates_are_those_of_the_latest_release_unless_one_is_named() -> None:
    assert asked().release.minor == 36 and not asked().release.places_groups
    chosen = asked(feature_gates="GenericWorkload=true")
    assert chosen.release.minor == 37 and "GenericWorkload" in chosen.release.gates
    assert chosen.policy.profiles is not None and chosen.policy.profiles.release == chosen.release
    for gates, text in (("Nothing=true", "unrecognized feature gate: Nothing"), ("WorkloadWithJob=true", "depends on features that are")):
        with pytest.raises(InputError, match=text):
            asked(feature_gates=gates)
    with pytest.raises(InputError, match="GenericWorkload is alpha"):
        asked(kubernetes_version="1.36", feature_gates="GenericWorkload=true")


def told(cluster: Embedded) -> int:
    """The pods whose condition says why they are not placed."""
    conditions = [
        pod.get("status", {}).get("conditions", ()) for pod in cluster.plane.store.all("pods") if pod["status"]["phase"] == "Pending"
    ]
    return sum(any(each["type"] == "PodScheduled" and each["status"] == "False" for each in one) for one in conditions)


def run(wanted: UpRequest, holds: Callable[[Embedded], bool]) -> list[str]:
    """Until it holds; what was said of what was submitted."""
    said: list[str] = []

    async def story() -> None:
        async with running(wanted) as cluster:
            ended = asyncio.Event()
            submitting = asyncio.create_task(submit(cluster.plane, wanted.submitted, said.append, ended))
            while not holds(cluster):
                await asyncio.sleep(0.02)
            ended.set()
            await submitting

    asyncio.run(asyncio.wait_for(story(), 60))
    return said


def running_pods(cluster: Embedded) -> set[str]:
    return {pod["metadata"]["name"] for pod in cluster.plane.store.all("pods") if pod["status"].get("phase") == "Running"}


@pytest.mark.parametrize("option", ["-f", "--submit"])
@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.yaml")))
def test_every_example_runs_in_a_cluster_of_our_own(name: str, option: str) -> None:
    path = EXAMPLES / f"{name}.yaml"
    begin = asked(path) if option == "-f" else asked(submitted=path)
    run(begin, lambda cluster: RUN[name] <= running_pods(cluster) and told(cluster) >= TOLD.get(name, 0))


def cluster_file(tmp_path: Path, *documents: str) -> Path:
    path = tmp_path / "cluster.yaml"
    path.write_text("\n---\n".join(documents))
    return path


POD = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: new}, spec: {priorityClassName: high, containers: [{name: c, image: i}]}}"
HIGH = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 7}"
NODE = "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}}"
CHILD = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: child}, spec: {parent: parent}}"
PARENT = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: parent}}"


def test_the_order_of_a_file_does_not_matter_and_its_namespaces_are_made(tmp_path: Path) -> None:
    path = cluster_file(tmp_path, POD, CHILD, NODE, PARENT, HIGH)
    said = run(asked(submitted=path), lambda cluster: running_pods(cluster) == {"p"})
    assert any("new         p" in line for line in said), "what is outside the default namespace is shown too"


def test_what_exists_is_said_to_and_queues_become_as_the_file_says(tmp_path: Path) -> None:
    queue = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: default}, spec: {weight: 7}}"
    root = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: root}, spec: {weight: 1}}"
    space = "{apiVersion: v1, kind: Namespace, metadata: {name: default}}"
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {schedulerName: mine, containers: [{name: c, image: i}]}}"
    tasks = "[{name: t, replicas: 1, template: {spec: {containers: [{name: c, image: i}]}}}]"
    job = f"{{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {{name: j}}, spec: {{schedulerName: yours, tasks: {tasks}}}}}"
    path = cluster_file(tmp_path, NODE, queue, root, space, pod, job)
    said = run(asked(submitted=path), lambda cluster: cluster.plane.store.get(QUEUES, "default")["spec"]["weight"] == 7)
    assert {"queue default configured", "queue root exists", "namespace default exists, and stays as it is", "pod p created"} <= set(said)
    for name in ("mine", "yours"):
        assert any(f'no scheduler "{name}" runs here unless you start one; volcano, ' in line for line in said)


def test_parts_of_a_queue_come_after_it_and_what_is_its_own_parent_does_no_harm() -> None:
    def queue(name: str, parent: str) -> dict[str, Any]:
        return {"kind": "Queue", "metadata": {"name": name}, "spec": {"parent": parent}}

    listed = [queue("c", "b"), queue("x", "x"), {"kind": "Pod", "metadata": {}}, queue("b", "a"), queue("a", "root")]
    assert [each["metadata"].get("name") for each in in_order(listed, lambda each: each)] == ["x", "a", "b", "c", None]


def test_what_is_asked_for_on_the_command_line_goes_before_what_files_hold(tmp_path: Path) -> None:
    conf = tmp_path / "my.conf"
    conf.write_text('actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n')
    found = EXAMPLES / "capacity.yaml"
    assert asked(found).policy.has_action("reclaim")
    assert not asked(found, conf=(str(conf),)).policy.has_action("reclaim")
    profiles = asked(EXAMPLES / "bin-packing.yaml").policy.profiles
    assert profiles is not None
    assert set(profiles.by_name) == {"by-curve", "straight"}


def test_a_wrong_configuration_among_the_objects_is_told_with_its_line(tmp_path: Path) -> None:
    lines = [
        "apiVersion: v1",
        "kind: ConfigMap",
        "metadata: {name: conf}",
        "data:",
        "  volcano-scheduler.conf: |",
        '    actions: "alocate"',
    ]
    path = cluster_file(tmp_path, NODE, "\n".join(lines))
    with pytest.raises(InputError, match=r"cluster.yaml:8: .*alocate"):
        asked(path)


def test_kube_batch_and_volcano_see_the_same_objects() -> None:
    def holds(cluster: Embedded) -> bool:
        store = cluster.plane.store
        group = store.get("podgroups.scheduling.incubator.k8s.io", "qj-1", "default")
        assert group["apiVersion"] == "scheduling.incubator.k8s.io/v1alpha1"
        volcano = store.get("podgroups.scheduling.volcano.sh", "qj-1", "default")
        return volcano.get("status", {}).get("phase") == "Running"

    run(asked(EXAMPLES / "kube-batch.yaml"), holds)


def test_a_configuration_that_changes_is_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = tmp_path / "my.conf"
    conf.write_text('actions: "enqueue"\ntiers:\n- plugins:\n  - name: gang\n')

    def holds(cluster: Embedded) -> bool:
        if "allocate" not in conf.read_text():
            conf.write_text('actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n')
        return "job-1-abc" in running_pods(cluster)

    run(asked(EXAMPLES / "kube-batch.yaml", conf=(str(conf),)), holds)
    assert f"{conf}: in force from now on" in capsys.readouterr().err


def test_lists_are_taken_apart(tmp_path: Path) -> None:
    path = cluster_file(tmp_path, f"{{apiVersion: v1, kind: List, items: [{NODE}, {HIGH}]}}")
    assert [one.obj["kind"] for one in read_cluster_file(str(path)).objects] == ["Node", "PriorityClass"]
