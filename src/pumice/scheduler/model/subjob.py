"""Sub-jobs: policies split the tasks of a gang into parts, each with a minimum of its own and perhaps a network topology.

A task belongs to the first policy whose selector and label keys match it; the others form the default sub-job.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pumice.api.integers import integer
from pumice.api.selectors import matches
from pumice.api.volcano import NetworkTopology, SubGroupPolicy
from pumice.scheduler.model import status
from pumice.scheduler.model.task import Task

if TYPE_CHECKING:
    from pumice.scheduler.model.job import Job

MAX_ID = 128


class SubJob:
    """Tasks of one job that start together."""

    def __init__(self, uid: str, policy: str, min_member: int, topology: NetworkTopology | None, match_index: int) -> None:
        self.uid = uid
        self.policy = policy  #: name of the policy; empty for the default sub-job
        self.min_member = min_member
        self.topology = topology
        self.match_index = match_index
        self.tasks: dict[str, Task] = {}
        self.allocated_hypernode = ""

    def __repr__(self) -> str:
        return f"<SubJob {self.uid}>"

    @property
    def priority(self) -> int:
        return max((task.priority for task in self.tasks.values()), default=0)

    def count(self, mask: int) -> int:
        return sum(1 for task in self.tasks.values() if task.status & mask)

    @property
    def _best_effort(self) -> int:
        return sum(1 for task in self.tasks.values() if task.status == status.PENDING and task.best_effort)

    @property
    def ready_margin(self) -> int:
        """The number of tasks that hold a node, have succeeded or are Pending and request nothing, less the minimum."""
        return self.count(status.READY) + self._best_effort - self.min_member

    @property
    def is_ready(self) -> bool:
        return self.ready_margin >= 0

    @property
    def pipelined_margin(self) -> int:
        """The same number with the Pipelined tasks added."""
        return self.ready_margin + self.count(status.PIPELINED)

    @property
    def is_pipelined(self) -> bool:
        return self.pipelined_margin >= 0

    @property
    def pending(self) -> list[Task]:
        return [task for task in self.tasks.values() if task.status == status.PENDING]


class SubJobs:
    """The sub-jobs of one job. Each is made when its first task is added."""

    def __init__(self, job: Job, policies: list[SubGroupPolicy], topology: NetworkTopology | None) -> None:
        self.job = job
        self.topology = topology
        self.policies = policies
        self.minimum = {policy.name: policy.min_sub_groups or 0 for policy in policies}
        self._selectors = [p.label_selector.requirements if p.label_selector else None for p in policies]
        self._by_uid: dict[str, SubJob] = {}
        for task in job.tasks.values():
            self.add(task)

    @property
    def has_policies(self) -> bool:
        return bool(self.policies)

    def __iter__(self) -> Iterator[SubJob]:
        return iter(self._by_uid.values())

    def of(self, task: Task) -> SubJob:
        return self._by_uid[self._place(task)[0]]

    def get(self, uid: str) -> SubJob | None:
        return self._by_uid.get(uid)

    def add(self, task: Task) -> None:
        uid, policy, values = self._place(task)
        subjob = self._by_uid.get(uid)
        if subjob is None:
            subjob = self._by_uid[uid] = self._make(uid, policy, values)
        subjob.tasks[task.uid] = task

    def remove(self, task: Task) -> None:
        subjob = self.of(task)
        del subjob.tasks[task.uid]
        if not subjob.tasks:
            del self._by_uid[subjob.uid]

    def _make(self, uid: str, policy: SubGroupPolicy | None, values: list[str]) -> SubJob:
        if policy is None:
            return SubJob(uid, "", 1 if self.policies else self.job.min_member, self.topology, 0)
        index = integer(values[0]) if values else 0
        return SubJob(uid, policy.name, policy.sub_group_size or 1, policy.network_topology, index)

    def _place(self, task: Task) -> tuple[str, SubGroupPolicy | None, list[str]]:
        for policy, selector in zip(self.policies, self._selectors, strict=True):
            if selector is not None and not matches(selector, task.labels):
                continue
            values = [task.labels.get(key, "") for key in policy.match_label_keys or ()]
            if values and all(values):
                joined = "-".join(values)
                if len(joined) > MAX_ID:
                    import hashlib  # OpenSSL is loaded only where names are long

                    joined = hashlib.sha256(joined.encode()).hexdigest()[:32]
                return f"{self.job.uid}/{policy.name}-{joined}", policy, values
        return self.job.uid, None, []
