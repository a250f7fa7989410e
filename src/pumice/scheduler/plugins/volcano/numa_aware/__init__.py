"""numa-aware: pods with CPUs of their own go where the kubelet's topology policy will admit them.

It looks at Guaranteed pods only, and at nodes that have a Numatopology object. A pod may ask for a policy with the annotation
`volcano.sh/numa-topology-policy`: then it goes to nodes with that policy, preferably where its CPUs are on few NUMA nodes.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from pumice.api.annotations import NUMA_DECISION, NUMA_POLICY
from pumice.scheduler.engine import Filter, Reach, Reason, Refused, Scorer, Scores, View, to_hundred
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Task, Template, status
from pumice.scheduler.plugins.volcano.numa_aware.hints import NO_CPUS, NONE, Cpus, NumaTopology, assign
from pumice.scheduler.plugins.volcano.numa_aware.machines import CPU, Machines, NumaMachine

OTHER_POLICY = Reason("node(s) have not the NUMA topology policy that the pod asks for", final=True)
NOT_ADMITTED = Reason("node(s) have not the CPUs that the NUMA topology policy demands")
REASONS = (OTHER_POLICY, NOT_ADMITTED)
FINE = -1


class NumaAwareArgs(Struct):
    weight: int = 1


class CpuRequest(NamedTuple):
    """The number of CPUs for each container, and the requested policy ("" for any)."""

    requests: tuple[int, ...]
    policy: str


class NumaAware(Plugin):
    name = "numa-aware"
    Args = NumaAwareArgs

    def open(self, session: Session) -> None:
        super().open(session)
        memory = session.memory(self.name)
        self._given: dict[str, Cpus] = {}
        self.machines = Machines(session, memory, self._given)
        self._fits: dict[Hashable, Cpus | None] = {}
        self._answers: dict[CpuRequest, Answers] = {}
        for uid, (key, cpus, seen) in memory.setdefault("decided", {}).items():
            if not self._is_over(uid, key, seen):
                self._given[uid] = cpus

    def _is_over(self, uid: str, key: str, seen: Any) -> bool:
        """Whether CPUs given in an earlier session may be forgotten: the pod has left, or its node's Numatopology object now shows it."""
        task = self.session.cluster.tasks.get(key)
        machine = self.machines.of(task.node_name) if task is not None else None
        if task is None or machine is None or task.uid != uid or not task.status & status.ON_NODE:
            return True
        if machine.held is None:
            return task.status == status.RUNNING and machine.wire is not seen
        return uid in machine.held

    def filters(self) -> list[Filter]:
        return [NumaFilter(self)]

    def scorers(self) -> list[Scorer]:
        return [NumaScorer(self, self.args.weight)] if self.args.weight else []

    def answers(self, request: CpuRequest) -> Answers:
        if request not in self._answers:
            self._answers[request] = Answers(self, request)
        return self._answers[request]

    def assignment(self, machine: NumaMachine, free: Cpus, request: CpuRequest) -> Cpus | None:
        """The free CPUs that a request would get; None if it is not admitted. Equal machines share one answer."""
        key = (machine.topology, machine.policy, free, request)
        if key not in self._fits:
            self._fits[key] = assign(machine.topology, free, request.requests, machine.policy)
        return self._fits[key]

    def on_allocate(self, task: Task) -> None:
        request = request_of(task)
        machine = self.machines.of(task.node_name) if task.status & (status.ALLOCATED | status.PIPELINED) else None
        if request is None or machine is None or not decides(machine):
            return
        room = self.machines.room(task.node, machine)
        cpus = self.assignment(machine, room.now, request) if task.status == status.ALLOCATED else None
        cpus = cpus or self.assignment(machine, room.later, request)
        if cpus:
            self._given[task.uid] = cpus
            self.machines.forget(task.node)
            self.session.annotations.setdefault(task.uid, {})[NUMA_DECISION] = decision(machine.topology, cpus)

    def on_deallocate(self, task: Task) -> None:
        if task.status == status.PENDING and self._given.pop(task.uid, NO_CPUS):
            self.session.annotations.get(task.uid, {}).pop(NUMA_DECISION, None)

    def close(self, session: Session) -> None:
        """Remember the CPUs of pods that are bound now, or were bound before and are not shown by their node's Numatopology object yet."""
        before = session.memory(self.name)["decided"]
        bound = {bind.task.uid: bind for bind in session.decisions.binds if bind.task.uid in self._given}
        decided = {uid: before[uid] for uid in self._given if uid in before}
        for uid, bind in bound.items():
            machine = self.machines.of(bind.node)
            decided[uid] = (bind.task.key, self._given[uid], machine and machine.wire)
        session.memory(self.name)["decided"] = decided


def request_of(task: Task) -> CpuRequest | None:
    """The CPUs and the policy that a pod requests; None for pods that are not Guaranteed."""
    if not task.template.guaranteed:
        return None
    policy = task.annotations.get(NUMA_POLICY, "")
    return CpuRequest(cpu_requests(task.template), "" if policy == NONE else policy)


def cpu_requests(template: Template) -> tuple[int, ...]:
    """The number of exclusive CPUs for each container: 0 for a container that requests a fraction of a CPU."""
    milli = [c.resources.limits[CPU].milli if c.resources and c.resources.limits else 0 for c in template.containers]
    return tuple(0 if amount % 1000 else amount // 1000 for amount in milli)


def decides(machine: NumaMachine) -> bool:
    """Whether the node's kubelet looks at NUMA nodes at all."""
    return machine.is_static and machine.policy != NONE


def decision(topology: NumaTopology, cpus: Cpus) -> str:
    """The value of the pod's annotation, as JSON: the number of its CPUs on each NUMA node."""
    return json.dumps({"numa": {str(node): {CPU: str(count)} for node, count in sorted(topology.per_node(cpus).items())}})


class Answers:
    """For each node, whether a request can be met, and on how many NUMA nodes. Kept up to date from the cluster's log."""

    def __init__(self, plugin: NumaAware, request: CpuRequest) -> None:
        self._plugin = plugin
        self._request = request
        self._nodes = plugin.session.nodes
        self._log = plugin.session.cluster.log
        self._position = -1
        self.reasons = np.full(len(self._nodes), FINE)  #: the index in REASONS, or FINE
        self.spread = np.zeros(len(self._nodes))  #: the number of NUMA nodes that the pod's CPUs would be on

    def refresh(self) -> Answers:
        changed = list(self._nodes) if self._position < 0 else sorted({change.row for change in self._log[self._position :]})
        for row in changed:
            self.reasons[row], self.spread[row] = self._ask(row)
        self._position = len(self._log)
        return self

    def _ask(self, row: int) -> tuple[int, int]:
        machine, request = self._plugin.machines.of(self._nodes.names[row]), self._request
        if machine is None or not machine.is_static or (request.policy and (machine.policy != request.policy or not machine.free)):
            return (REASONS.index(OTHER_POLICY) if request.policy else FINE), 0
        if machine.policy == NONE:
            return FINE, 0
        free = self._plugin.machines.room(row, machine).later
        cpus = self._plugin.assignment(machine, free, request) if free or not request.policy else None
        if cpus is None:
            return REASONS.index(NOT_ADMITTED), 0
        return FINE, len(machine.topology.per_node(cpus))


class _NumaRule:
    name = "numa-aware"
    reach = Reach.NODE

    def __init__(self, plugin: NumaAware) -> None:
        self._plugin = plugin

    def prepare(self, task: Task) -> Any:
        request = request_of(task)
        return self._plugin.answers(request) if request is not None else None

    def key(self, task: Task) -> Hashable:
        return request_of(task)


class NumaFilter(_NumaRule, Filter):
    """Admits nodes whose kubelet would admit the pod."""

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        reasons = nodes.of(state.refresh().reasons)
        return [Refused(reasons == position, reason) for position, reason in enumerate(REASONS)]


class NumaScorer(_NumaRule, Scorer):
    """The score, for pods that request a policy: the fewer NUMA nodes, the better."""

    normalizes = True

    def __init__(self, plugin: NumaAware, weight: float) -> None:
        super().__init__(plugin)
        self.weight = weight

    def prepare(self, task: Task) -> Any:
        request = request_of(task)
        return self._plugin.answers(request) if request is not None and request.policy else None

    def score(self, state: Any, nodes: View) -> Scores:
        return np.asarray(nodes.of(state.refresh().spread), float)

    def normalize(self, scores: Scores) -> Scores:
        return to_hundred(scores, reverse=True)
