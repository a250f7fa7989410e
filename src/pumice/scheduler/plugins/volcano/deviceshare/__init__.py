"""deviceshare: several pods on one accelerator card: parts of its memory, slots with memory and cores, or whole cards.

A pod fits on a node where each kind of device that it asks for has the cards; which ones it gets is written on the pod together with
its binding. With `deviceshare.NodeLockEnable` a node hands out devices to one pod at a time: the next comes when that one runs.
"""

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field

from pumice.api import instant
from pumice.api.annotations import DEVICE_LOCK
from pumice.scheduler.engine import Filter, Reach, Reason, Refused, Scorer, Scores, View
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Task, status
from pumice.scheduler.plugins.volcano.deviceshare.cards import CardChoice, CardKind, CardRequest, Exclusive
from pumice.scheduler.plugins.volcano.deviceshare.gpushare import GpuShare
from pumice.scheduler.plugins.volcano.deviceshare.node_cards import CardPools
from pumice.scheduler.plugins.volcano.deviceshare.vgpu import Vgpu

LOCK_S = 300.0
LOCKED = Reason("node(s) are handing out devices to another pod")

Wants = tuple[tuple[CardPools, CardRequest], ...]


class DeviceShareArgs(Struct):
    gpu_sharing: bool = field(name="deviceshare.GPUSharingEnable", default=False)
    gpu_number: bool = field(name="deviceshare.GPUNumberEnable", default=False)
    node_lock: bool = field(name="deviceshare.NodeLockEnable", default=False)
    vgpu: bool = field(name="deviceshare.VGPUEnable", default=False)
    policy: str = field(name="deviceshare.SchedulePolicy", default="")
    weight: int = field(name="deviceshare.ScheduleWeight", default=0)
    exclusive: list[dict[str, str]] = field(name="deviceshare.GPUExclusiveRules", default_factory=list)


class DeviceShare(Plugin):
    name = "deviceshare"
    Args = DeviceShareArgs

    def open(self, session: Session) -> None:
        super().open(session)
        args = self.args
        self._given = self._on_their_way()
        kinds: list[CardKind] = []
        if args.gpu_sharing or args.gpu_number:
            kinds.append(GpuShare(by_memory=args.gpu_sharing, by_number=args.gpu_number))
        if args.vgpu:
            kinds.append(Vgpu(args.policy))
        exclusive = Exclusive(args.exclusive)
        self._pools = [CardPools(session, kind, exclusive, self._given) for kind in kinds]

    def _on_their_way(self) -> dict[str, dict[str, str]]:
        """The annotations of earlier cycles that pods do not show yet, by task uid. Annotations of pods without a node are dropped."""
        cluster = self.session.cluster
        given: dict[str, dict[str, str]] = {}
        for uid, (key, written) in self.session.memory(self.name).items():
            task = cluster.tasks.get(key)
            if task is not None and task.uid == uid and task.status & status.ON_NODE and not written.items() <= task.annotations.items():
                given[uid] = written
        return given

    def wants(self, task: Task) -> Wants:
        """The devices that the task asks for."""
        return tuple((pools, request) for pools in self._pools if (request := pools.request(task)) is not None)

    def filters(self) -> list[Filter]:
        return [DeviceFilter(self, locks=self.args.node_lock)]

    def scorers(self) -> list[Scorer]:
        return [DeviceScorer(self, self.args.weight)] if self.args.weight else []

    def on_allocate(self, task: Task) -> None:
        if not task.status & (status.ALLOCATED | status.PIPELINED):
            return
        given: dict[str, str] = {}
        for pools, request in self.wants(task):
            given |= pools.take(task, request)
        if given:
            self._given[task.uid] = given
            self.session.annotations.setdefault(task.uid, {}).update(given)
            for pools in self._pools:
                pools.forget(task.node)

    def on_deallocate(self, task: Task) -> None:
        if task.status == status.PENDING:
            for key in self._given.pop(task.uid, ()):
                self.session.annotations.get(task.uid, {}).pop(key, None)

    def close(self, session: Session) -> None:
        keys = {bind.task.uid: bind.task.key for bind in session.decisions.binds}
        before = session.memory(self.name)
        kept = {uid: (keys.get(uid) or before[uid][0], given) for uid, given in self._given.items() if uid in keys or uid in before}
        before.clear()
        before.update(kept)


class _DeviceRule:
    name = "deviceshare"
    reach = Reach.NODE

    def __init__(self, plugin: DeviceShare) -> None:
        self._plugin = plugin

    def prepare(self, task: Task) -> Any:
        return self._plugin.wants(task) or None

    def key(self, task: Task) -> Hashable:
        return tuple(request for _, request in self._plugin.wants(task)) or None


class DeviceFilter(_DeviceRule, Filter):
    """Admits nodes that have cards for all devices that the task requests."""

    def __init__(self, plugin: DeviceShare, *, locks: bool) -> None:
        super().__init__(plugin)
        self._locks = locks

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        refused: dict[Reason, list[int]] = {}
        for position, row in enumerate(nodes.row_numbers.tolist()):
            reason = self._reason(state, nodes, row)
            if reason is not None:
                refused.setdefault(reason, []).append(position)
        answers = []
        for reason, positions in refused.items():
            where = nodes.nothing()
            where[positions] = True
            answers.append(Refused(where, reason))
        return answers

    def _reason(self, wants: Wants, nodes: View, row: int) -> Reason | None:
        for pools, request in wants:
            pool = pools.at(row)
            if pool is None:
                return Reason(f"node not initialized with device {pools.kind.name}", final=True)
            if self._locks and (pool.arriving or self._locked(nodes, row)):
                return LOCKED
            verdict = pools.choose(request, pool.later)
            if not isinstance(verdict, CardChoice):
                return Reason(str(verdict))
        return None

    def _locked(self, nodes: View, row: int) -> bool:
        """Whether the node is locked for a pod, and the lock was taken less than LOCK_S seconds ago."""
        text = (nodes.table.wire[row].metadata.annotations or {}).get(DEVICE_LOCK)
        try:
            return text is not None and self._plugin.session.now - instant(text) < LOCK_S
        except ValueError:
            return False


class DeviceScorer(_DeviceRule, Scorer):
    """The score: how well the node's cards suit the policy."""

    def __init__(self, plugin: DeviceShare, weight: float) -> None:
        super().__init__(plugin)
        self.weight = weight

    def score(self, state: Any, nodes: View) -> Scores:
        return np.array([self._rate(state, row) for row in nodes.row_numbers.tolist()], float)

    @staticmethod
    def _rate(wants: Wants, row: int) -> float:
        verdicts = [pools.choose(request, pool.later) for pools, request in wants if (pool := pools.at(row)) is not None]
        return math.floor(sum(verdict.score for verdict in verdicts if isinstance(verdict, CardChoice)) + 0.5)
