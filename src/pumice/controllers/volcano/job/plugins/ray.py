"""ray: the head and worker commands of a Ray cluster, and a Service in front of the head.

Arguments: --head and --worker name the tasks, --headContainer and --workerContainer the containers (head, worker),
--port (6379), --dashboardPort (8265), --clientServerPort (10001).
"""

from __future__ import annotations

from collections.abc import Sequence

from pumice.api import annotations as key
from pumice.controllers import kinds
from pumice.controllers.controller import Create, Write
from pumice.controllers.lister import Lister
from pumice.controllers.objects import Object, name_of, namespace_of
from pumice.controllers.volcano.job import spec
from pumice.controllers.volcano.job.plugins.plugin import JobPlugin, flags, hosts_of, owned, port, removed

DEFAULTS = {
    "head": "head",
    "worker": "worker",
    "headContainer": "head",
    "workerContainer": "worker",
    "port": "6379",
    "dashboardPort": "8265",
    "clientServerPort": "10001",
}
PORTS = {"gcs": "port", "dashboard": "dashboardPort", "client-server": "clientServerPort"}  #: name of a port, and the flag that states it


class Ray(JobPlugin):
    def __init__(self, arguments: Sequence[str]) -> None:
        given = flags(arguments, DEFAULTS)
        self.head, self.worker = given["head"], given["worker"]
        self.head_container, self.worker_container = given["headContainer"], given["workerContainer"]
        self.ports = {name: port(given[flag], DEFAULTS[flag]) for name, flag in PORTS.items()}

    def keep(self, job: Object, lister: Lister) -> list[Write]:
        name = _service_name(job)
        if lister.get(kinds.SERVICE, namespace_of(job), name) is not None:
            return []
        selector = {key.JOB_NAME: name_of(job), key.JOB_NAMESPACE: namespace_of(job), key.TASK_SPEC: self.head}
        ports = [{"name": each, "port": port, "targetPort": port, "protocol": "TCP"} for each, port in self.ports.items()]
        return [Create(owned(job, kinds.SERVICE, name, spec={"selector": selector, "ports": ports}), job)]

    def remove(self, job: Object, lister: Lister) -> list[Write]:
        return removed(job, kinds.SERVICE, _service_name(job), lister)

    def dress(self, pod: Object, job: Object, task: Object, index: int) -> None:
        role = spec.task_name(job, task)
        if role == self.head:
            self._dress_head(pod)
        elif role == self.worker:
            address = next(iter(hosts_of(job, self.head)), "")
            for container in _named(pod, self.worker_container):
                container["command"] = ["sh", "-c", f"ray start --block --address={address}:{self.ports['gcs']}"]

    def _dress_head(self, pod: Object) -> None:
        start = (
            f"ray start --head --block --dashboard-host=0.0.0.0 --port={self.ports['gcs']}"
            f" --dashboard-port={self.ports['dashboard']} --ray-client-server-port={self.ports['client-server']}"
        )
        for container in _named(pod, self.head_container):
            container["command"] = ["sh", "-c", start]
            taken = {each.get("containerPort") for each in container.get("ports") or ()}
            free = {name: port for name, port in self.ports.items() if port not in taken}
            container.setdefault("ports", []).extend({"name": name, "containerPort": port} for name, port in free.items())


def _service_name(job: Object) -> str:
    return f"{name_of(job)}-head-svc"


def _named(pod: Object, name: str) -> list[Object]:
    return [container for container in pod["spec"].get("containers") or () if container.get("name") == name]
