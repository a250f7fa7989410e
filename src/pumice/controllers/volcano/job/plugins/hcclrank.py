"""hcclrank: the rank of a pod in an Ascend cluster, as the annotation `hccl/rankIndex`.

A RANK that the pod states itself is taken; else masters come first, then workers. Arguments: --master, --worker.
"""

from __future__ import annotations

from collections.abc import Sequence

from pumice.controllers.objects import Object
from pumice.controllers.volcano.job import spec
from pumice.controllers.volcano.job.plugins.plugin import JobPlugin, containers, flags, hosts_of

RANK_INDEX = "hccl/rankIndex"


class HcclRank(JobPlugin):
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
            return str(index + len(hosts_of(job, self.master)))
        return str(index) if role == self.master else None
