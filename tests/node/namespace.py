"""What a user has in a namespace, and what became of it: objects applied, states waited for, and every change of its pods in order."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.node.images import BUSYBOX
from tests.node.node_cluster import NodeCluster

Object = dict[str, Any]
LIMIT_S = 150.0  #: of a state that never comes
#: a process that ends at once when it is asked to
ENDS_AT_ONCE = "trap 'exit 0' TERM; while :; do sleep 0.2; done"


def task(
    name: str,
    replicas: int,
    script: str = ENDS_AT_ONCE,
    *,
    image: str = BUSYBOX,
    asks: Object | None = None,
    policies: Sequence[Object] = (),
    **pod: Any,
) -> Object:
    """A task whose pods run a script. `pod` are further fields of their specs."""
    container = {"name": "c", "image": image, "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", script]}
    resources = {"requests": {"cpu": "10m", **(asks or {})}, "limits": asks or {}}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 5, "containers": [{**container, "resources": resources}], **pod}
    return {"name": name, "replicas": replicas, "policies": policies, "template": {"spec": spec}}


def job_of(name: str, *tasks: Object, **spec: Any) -> Object:
    body = {"schedulerName": "volcano", "minAvailable": sum(each["replicas"] for each in tasks), "tasks": tasks, **spec}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": body}


class Namespace:
    def __init__(self, cluster: NodeCluster, name: str) -> None:
        self.cluster = cluster
        self.name = name

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        return self.cluster.kubectl("-n", self.name, *arguments, stdin=stdin)

    def apply(self, *objects: Object) -> None:
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def job(self, name: str, *tasks: Object, **spec: Any) -> None:
        self.apply(job_of(name, *tasks, **spec))

    def until_phase(self, job: str, phase: str, limit_s: float = LIMIT_S) -> None:
        state = f"--for=jsonpath={{.status.state.phase}}={phase}"
        self.kubectl("wait", state, f"jobs.batch.volcano.sh/{job}", f"--timeout={limit_s}s")

    def get(self, kind: str, name: str = "") -> Any:
        found = json.loads(self.kubectl("get", kind, *([name] if name else []), "-o", "json"))
        return found if name else {item["metadata"]["name"]: item for item in found["items"]}

    def until(self, question: Callable[[], Any], what: str, limit_s: float = LIMIT_S) -> None:
        """For what kubectl cannot wait for."""
        deadline = time.monotonic() + limit_s
        while not question():
            assert time.monotonic() < deadline, f"{what}: not within {limit_s:.0f} s\n{self.kubectl('get', 'pods', '-A', '-o', 'wide')}"
            time.sleep(0.5)

    @contextmanager
    def history(self) -> Iterator[History]:
        """Notes every change of pods while the block runs."""
        path = self.cluster.folder / f"{self.name}-pods.json"
        program = str(self.cluster.control_plane.programs["kubectl"])
        places = [f"--kubeconfig={self.cluster.kubeconfig}", "-n", self.name]
        with path.open("ab") as out:
            command = [program, *places, "get", "pods", "--watch", "--output-watch-events", "-o", "json"]
            watch = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
        try:
            yield History(path)
        finally:
            watch.kill()
            watch.wait()


class History:
    """(kind of change, pod), as the API server ordered them."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def changes(self) -> list[tuple[str, Object]]:
        decoder, text, found = json.JSONDecoder(), self._path.read_text(), []
        while text := text.lstrip():
            try:
                event, end = decoder.raw_decode(text)
            except json.JSONDecodeError:
                break  # its end is still being written
            found.append((event["type"], event["object"]))
            text = text[end:]
        return found

    def first(self, prefix: str, wanted: Callable[[str, Object], bool]) -> int:
        """The place of the first change of a pod (of its uid, or its name's beginning) of which this is so."""
        for place, (kind, pod) in enumerate(self.changes()):
            if prefix in (pod["metadata"]["uid"], pod["metadata"]["name"][: len(prefix)]) and wanted(kind, pod):
                return place
        raise AssertionError(f"{prefix}: this never happened, in {len(self.changes())} changes")


def bound(_: str, pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName"))


def ended(kind: str, pod: Object) -> bool:
    """Its containers have: the kubelet says so a moment before the pod is deleted."""
    return kind == "DELETED" or pod["status"].get("phase") in ("Succeeded", "Failed")


def asked_to_end(_: str, pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def exit_codes(pods: Sequence[Object]) -> set[int]:
    """Of containers that have ended."""
    ended = [status["state"].get("terminated") for pod in pods for status in pod["status"].get("containerStatuses", [])]
    return {each["exitCode"] for each in ended if each}
