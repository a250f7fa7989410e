"""The frameworks whose pods must find each other: tensorflow, pytorch, mpi, ray, and hcclrank for Ascend clusters.

Each plugin gives its pods the addresses of the other pods and their own role, in the form that the framework expects.
"""

import json
from collections.abc import Sequence

from pumice.api import Object, annotations as key, kinds, name_of, namespace_of
from pumice.controllers.controller import Lister
from pumice.controllers.volcano.job import spec
from pumice.controllers.volcano.job.plugins.plugin import (
    JobPlugin,
    containers,
    flags,
    hosts_of,
    number_of,
    open_port,
    owned,
    port,
    present,
    removed,
    set_env,
)
from pumice.controllers.writes import Create, Write

TENSORFLOW_PORT = "2222"
ROLES = ("ps", "worker", "chief", "evaluator")

PYTORCH_DEFAULTS = {
    "master": "master",
    "worker": "worker",
    "port": "23456",
    "wait-master-enabled": "false",
    "wait-master-timeout": "300",
    "wait-master-image": "busybox:1.36.1",
}

MPI_DEFAULTS = {"master": "master", "worker": "worker", "port": "22"}

RAY_DEFAULTS = {
    "head": "head",
    "worker": "worker",
    "headContainer": "head",
    "workerContainer": "worker",
    "port": "6379",
    "dashboardPort": "8265",
    "clientServerPort": "10001",
}
RAY_PORTS = {
    "gcs": "port",
    "dashboard": "dashboardPort",
    "client-server": "clientServerPort",
}  #: name of a port, and the flag that states it

RANK_INDEX = "hccl/rankIndex"


class Tensorflow(JobPlugin):
    """Sets TF_CONFIG, which gives every pod the whole cluster and its own role in it.

    Arguments: --ps, --worker, --chief, --evaluator name the tasks (each defaults to its own name), --port (2222).
    A job of a single pod is not distributed and gets no TF_CONFIG.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        given = flags(arguments, {**{role: role for role in ROLES}, "port": TENSORFLOW_PORT})
        self.port = port(given["port"], TENSORFLOW_PORT)
        self.task_of_role = {role: given[role] for role in ROLES}

    def dress(self, pod: Object, job: Object, task: Object, index: int) -> None:
        if spec.total_replicas(job) <= 1:
            return
        names = {task_name: role for role, task_name in self.task_of_role.items()}
        role = names.get(spec.task_name(job, task))
        if role is not None:
            config = {"cluster": self._cluster(job), "task": {"type": role, "index": index}}
            set_env(pod, TF_CONFIG=json.dumps(config, separators=(",", ":")))

    def _cluster(self, job: Object) -> dict[str, list[str]]:
        addresses = {role: [f"{host}:{self.port}" for host in hosts_of(job, name)] for role, name in self.task_of_role.items()}
        return {role: found for role, found in addresses.items() if found}


class Pytorch(JobPlugin):
    """Sets the variables with which torch.distributed connects the pods: MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK.

    Arguments: --master and --worker name the tasks, --port (23456); with --wait-master-enabled workers start only when the master
    can be reached (--wait-master-timeout seconds, --wait-master-image).
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        given = flags(arguments, PYTORCH_DEFAULTS)
        self.master, self.worker, self.port = given["master"], given["worker"], port(given["port"], PYTORCH_DEFAULTS["port"])
        self.waits = given["wait-master-enabled"].lower() == "true"
        self.wait_s, self.wait_image = given["wait-master-timeout"], given["wait-master-image"]

    def dress(self, pod: Object, job: Object, task: Object, index: int) -> None:
        role = spec.task_name(job, task)
        masters, workers = number_of(job, self.master), number_of(job, self.worker)
        if role not in (self.master, self.worker):
            return
        open_port(pod, "pytorchjob-port", self.port)
        address = next(iter(hosts_of(job, self.master)), "")
        if not address:
            return
        rank = index + (masters if role == self.worker else 0)
        set_env(pod, MASTER_ADDR=address, MASTER_PORT=str(self.port), WORLD_SIZE=str(masters + workers), RANK=str(rank))
        if self.waits and role == self.worker:
            pod["spec"].setdefault("initContainers", []).append(self._wait(address))

    def _wait(self, address: str) -> Object:
        loop = f"timeout {self.wait_s} sh -c 'until nc -z {address} {self.port}; do sleep 1; done'"
        return {"name": "wait-for-master", "image": self.wait_image, "command": ["sh", "-c", loop]}


class Mpi(JobPlugin):
    """Sets MPI_HOST, which names the workers for the master. The master reaches them over SSH.

    Arguments: --master and --worker name the tasks, --port (22).
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        given = flags(arguments, MPI_DEFAULTS)
        self.master, self.worker, self.port = given["master"], given["worker"], port(given["port"], MPI_DEFAULTS["port"])

    def dress(self, pod: Object, job: Object, task: Object, index: int) -> None:
        if spec.task_name(job, task) == self.master:
            set_env(pod, MPI_HOST=",".join(hosts_of(job, self.worker)))
        open_port(pod, "mpijob-port", self.port)


class Ray(JobPlugin):
    """Sets the head and worker commands of a Ray cluster, and creates a Service for the head.

    Arguments: --head and --worker name the tasks, --headContainer and --workerContainer the containers (head, worker),
    --port (6379), --dashboardPort (8265), --clientServerPort (10001).
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        given = flags(arguments, RAY_DEFAULTS)
        self.head, self.worker = given["head"], given["worker"]
        self.head_container, self.worker_container = given["headContainer"], given["workerContainer"]
        self.ports = {name: port(given[flag], RAY_DEFAULTS[flag]) for name, flag in RAY_PORTS.items()}

    def keep(self, job: Object, lister: Lister) -> list[Write]:
        name = _service_name(job)
        if present(job, kinds.SERVICE, name, lister) is not None:
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


class HcclRank(JobPlugin):
    """Sets the rank of a pod in an Ascend cluster, as the annotation `hccl/rankIndex`.

    If the pod has a variable RANK, its value is taken; else masters come first, then workers. Arguments: --master, --worker.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        given = flags(arguments, {"master": "master", "worker": "worker"})
        self.master, self.worker = given["master"], given["worker"]

    def dress(self, pod: Object, job: Object, task: Object, index: int) -> None:
        variables = (each for container in containers(pod) for each in container.get("env") or ())
        rank = next((each.get("value") for each in variables if each.get("name") == "RANK"), None) or self._rank(job, task, index)
        if rank is not None:
            pod["metadata"]["annotations"][RANK_INDEX] = rank

    def _rank(self, job: Object, task: Object, index: int) -> str | None:
        role = spec.task_name(job, task)
        if role == self.worker:
            return str(index + number_of(job, self.master))
        return str(index) if role == self.master else None
