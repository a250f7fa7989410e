"""pytorch: the variables with which torch.distributed meets: MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK.

Arguments: --master and --worker name the tasks, --port (23456); with --wait-master-enabled workers start only when the master
can be reached (--wait-master-timeout seconds, --wait-master-image).
"""

from __future__ import annotations

from collections.abc import Sequence

from pumice.controllers.objects import Object
from pumice.controllers.volcano.job import spec
from pumice.controllers.volcano.job.plugins.plugin import JobPlugin, flags, hosts_of, open_port, port, set_env

DEFAULTS = {
    "master": "master",
    "worker": "worker",
    "port": "23456",
    "wait-master-enabled": "false",
    "wait-master-timeout": "300",
    "wait-master-image": "busybox:1.36.1",
}


class Pytorch(JobPlugin):
    def __init__(self, arguments: Sequence[str]) -> None:
        given = flags(arguments, DEFAULTS)
        self.master, self.worker, self.port = given["master"], given["worker"], port(given["port"], DEFAULTS["port"])
        self.waits = given["wait-master-enabled"].lower() == "true"
        self.wait_s, self.wait_image = given["wait-master-timeout"], given["wait-master-image"]

    def dress(self, pod: Object, job: Object, task: Object, index: int) -> None:
        role = spec.task_name(job, task)
        masters, workers = len(hosts_of(job, self.master)), len(hosts_of(job, self.worker))
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
