"""tensorflow: TF_CONFIG tells every pod the whole cluster and its own part in it.

Arguments: --ps, --worker, --chief, --evaluator name the tasks (each defaults to its own name), --port (2222).
A job of a single pod is not distributed and gets none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pumice.controllers.objects import Object
from pumice.controllers.volcano.job import spec
from pumice.controllers.volcano.job.plugins.plugin import JobPlugin, flags, hosts_of, port, set_env

PORT = "2222"
ROLES = ("ps", "worker", "chief", "evaluator")


class Tensorflow(JobPlugin):
    def __init__(self, arguments: Sequence[str]) -> None:
        given = flags(arguments, {**{role: role for role in ROLES}, "port": PORT})
        self.port = port(given["port"], PORT)
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
