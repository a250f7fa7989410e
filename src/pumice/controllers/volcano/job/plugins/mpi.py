"""mpi: the master learns its workers from MPI_HOST and reaches them over SSH.

Arguments: --master and --worker name the tasks, --port (22).
"""

from __future__ import annotations

from collections.abc import Sequence

from pumice.controllers.objects import Object
from pumice.controllers.volcano.job import spec
from pumice.controllers.volcano.job.plugins.plugin import JobPlugin, flags, hosts_of, open_port, port, set_env

DEFAULTS = {"master": "master", "worker": "worker", "port": "22"}


class Mpi(JobPlugin):
    def __init__(self, arguments: Sequence[str]) -> None:
        given = flags(arguments, DEFAULTS)
        self.master, self.worker, self.port = given["master"], given["worker"], port(given["port"], DEFAULTS["port"])

    def dress(self, pod: Object, job: Object, task: Object, index: int) -> None:
        if spec.task_name(job, task) == self.master:
            set_env(pod, MPI_HOST=",".join(hosts_of(job, self.worker)))
        open_port(pod, "mpijob-port", self.port)
