"""A whole cluster in a thread of the test's process, spoken to over plain HTTP; and one without a thread, whose clock is moved by hand."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Set
from typing import Any

from pumice.cli.embedded import running
from pumice.cli.up_options import UpRequest, policy_of
from pumice.cluster.apiserver import Server
from pumice.cluster.clock import VirtualClock
from pumice.cluster.control_plane import ControlPlane
from pumice.cluster.nodes.containers import SimulatedContainers
from pumice.cluster.nodes.node_pools import nodes_of, pools_of
from pumice.cluster.nodes.stage import Stages, read_stages
from pumice.scheduler.framework.feature_gates import DEFAULT, Release
from pumice.scheduler.framework.policy import Policy

SPEED = 200.0
PATIENCE_S = 30.0
MERGE = "application/merge-patch+json"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
START = 1_800_000_000.0

Object = dict[str, Any]


class Refused(Exception):
    """An answer that is no success; `status` is its body."""

    def __init__(self, status: Object) -> None:
        super().__init__(status.get("message"))
        self.status = status


class Api:
    """A client that knows nothing but HTTP and JSON."""

    def __init__(self, host: str, port: int, token: str) -> None:
        self._address = host, port
        self._head = {"Authorization": f"Bearer {token}"}

    def call(self, method: str, path: str, body: Object | None = None, content_type: str = "application/json", accept: str = "*/*") -> Any:
        connection = http.client.HTTPConnection(*self._address, timeout=PATIENCE_S)
        try:
            text = json.dumps(body) if body is not None else None
            connection.request(method, path, text, {**self._head, "Content-Type": content_type, "Accept": accept})
            answer = connection.getresponse()
            data = answer.read()
            read = json.loads(data) if "json" in (answer.getheader("Content-Type") or "") else data.decode()
            if answer.status >= 300:
                raise Refused(read)
            return read
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def items(self, path: str) -> list[Object]:
        return list(self.get(path)["items"])

    def create(self, path: str, body: Object) -> Any:
        return self.call("POST", path, body)

    def warnings(self, path: str, body: Object) -> list[str]:
        """What is said when it is created, beside that it is."""
        connection = http.client.HTTPConnection(*self._address, timeout=PATIENCE_S)
        connection.request("POST", path, json.dumps(body), {**self._head, "Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        assert answer.status == 201
        return [text.partition('"')[2].removesuffix('"') for text in answer.headers.get_all("Warning") or ()]

    def patch(self, path: str, body: Object) -> Any:
        return self.call("PATCH", path, body, MERGE)

    def delete(self, path: str) -> Any:
        return self.call("DELETE", path)

    def pods(self, **labels: str) -> list[Object]:
        selector = "%2C".join(f"{key.replace('__', '/').replace('_', '-')}%3D{value}" for key, value in labels.items())
        return self.items(f"{PODS}?labelSelector={selector}")

    def pods_of(self, owner: str) -> list[Object]:
        return [pod for pod in self.items(PODS) if any(each["name"] == owner for each in pod["metadata"].get("ownerReferences", ()))]


def until(holds: Callable[[], Any]) -> Any:
    """What `holds` gives once that is true."""
    ends = time.monotonic() + PATIENCE_S
    while not (found := holds()):
        assert time.monotonic() < ends, "it did not happen in time"
        time.sleep(0.02)
    return found


@contextlib.contextmanager
def cluster(nodes: str, speed: float = SPEED, release: Release = DEFAULT, policy: Policy | None = None) -> Iterator[Api]:
    """A cluster of these pools, of this release of Kubernetes, that ends with the block."""
    started: list[Api] = []
    failures: list[BaseException] = []
    ready = threading.Event()
    ended = asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def live() -> None:
        chosen = policy or policy_of(release=release)
        wanted = UpRequest(chosen, read_stages(), list(nodes_of(pools_of(nodes))), release=release, speed=speed, plain=True)
        async with running(wanted) as embedded:
            started.append(Api(embedded.server.host, embedded.server.port, embedded.server.token))
            loops.append(asyncio.get_running_loop())
            ready.set()
            await ended.wait()

    def main() -> None:
        try:
            asyncio.run(live())
        except BaseException as error:
            failures.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=main)
    thread.start()
    ready.wait(PATIENCE_S)
    try:
        if started:
            yield started[0]
    finally:
        if loops and thread.is_alive():
            loops[0].call_soon_threadsafe(ended.set)
        thread.join(PATIENCE_S)
        if failures:
            raise failures[0]


def moved(plane: ControlPlane, clock: VirtualClock, end: float) -> None:
    """Let time pass until then, instant by instant."""
    plane.quiet()
    while (when := clock.next_time()) is not None and when <= end:
        clock.move_to(when)
        plane.quiet()
    clock.move_to(end)
    plane.quiet()


class Still:
    """A control plane without scheduler and event loop, at a time of its own."""

    def __init__(self, nodes: str = "2x4cpu", stages: Stages | None = None, gates: Set[str] = frozenset(), plain: bool = True) -> None:
        self.clock = VirtualClock(START)
        numbers = iter(range(1, 1_000_000))
        uid = lambda: f"00000000-0000-0000-0000-{next(numbers):012d}"  # noqa: E731
        containers = SimulatedContainers(self.clock.now)
        server = Server(clock=self.clock.now, new_uid=uid, containers=containers, plain=plain, gates=frozenset(gates))
        self.plane = ControlPlane(self.clock, server, stages or read_stages())
        self.store = self.plane.store
        self.plane.add(nodes_of(pools_of(nodes)))
        self.plane.quiet()

    def after(self, seconds: float) -> None:
        """Let so much time pass, instant by instant."""
        moved(self.plane, self.clock, self.clock.now() + seconds)

    def pod(self, name: str, node: str = "", cpu: str = "1", notes: dict[str, str] | None = None, **spec: Any) -> None:
        container = {"name": "main", "image": "train:1", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
        body = {
            "metadata": {"name": name, "annotations": notes or {}},
            "spec": {"containers": [container], "restartPolicy": "Never", **spec},
        }
        self.store.create("pods", body, "default")
        if node:
            self.store.bind("default", name, node)
        self.plane.quiet()

    def find(self, name: str) -> Object | None:
        return self.store.find("pods", "default", name)

    def phase(self, name: str) -> str:
        pod = self.find(name)
        return "gone" if pod is None else "Terminating" if pod["metadata"].get("deletionTimestamp") else str(pod["status"]["phase"])
