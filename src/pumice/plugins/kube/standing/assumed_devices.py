"""Which devices each claim of a placed pod gets: decided when the pod gets its row, given back when the last pod of the claim leaves.

What claim objects say themselves counts as in use; what was decided here is remembered until the object says it.
"""

from __future__ import annotations

from typing import NamedTuple

from pumice.api.cel.syntax import CelError
from pumice.api.devices import ResourceClaim
from pumice.model.cluster import Cluster
from pumice.model.task import Task
from pumice.plugins.kube.device_allocation import Pick, allocate
from pumice.plugins.kube.device_pools import DeviceKey, Pools
from pumice.plugins.kube.device_requests import Unclear, Wanted, wanted_by
from pumice.plugins.kube.standing.groups import standing

KINDS = ("ResourceClaim", "ResourceSlice", "DeviceClass")


class Allotted(NamedTuple):
    """What a claim will get."""

    claim: str  #: "namespace/name"
    node: str
    picks: tuple[Pick, ...]


class AssumedDevices:
    """See the module. Use `AssumedDevices.of(cluster)`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._users: dict[str, set[str]] = {}  #: claim to uids of placed pods
        self.by_claim: dict[str, Allotted] = {}
        self._read()
        for task in standing(cluster):
            self.change(task.node, task, 1)
        cluster.watchers.append(self.change)

    @classmethod
    def of(cls, cluster: Cluster) -> AssumedDevices:
        found: AssumedDevices | None = cluster.memory.get("assumed devices")
        if found is None:
            found = cluster.memory["assumed devices"] = cls(cluster)
        elif found._versions != _versions(cluster):
            found._read()
        return found

    def _read(self) -> None:
        """Take in what objects say, and forget what they say by now."""
        self._versions = _versions(self._cluster)
        self.pools = Pools(self._cluster)
        claims = self._cluster.of("ResourceClaim")
        for key in [key for key in self.by_claim if key not in claims or claims[key].status.allocation is not None]:
            del self.by_claim[key]
            self._users.pop(key, None)
        self.in_use: dict[DeviceKey, int] = {}  #: how often, never 0
        for claim in claims.values():
            self._use(_devices_of(claim), 1)
        for allotted in self.by_claim.values():
            self._use(_used_by(allotted), 1)

    # -- answers

    def of_pod(self, task: Task) -> list[Allotted]:
        """What is to be written before the pod can be bound."""
        return [self.by_claim[key] for key in _keys(task) if key in self.by_claim]

    def try_on(self, row: int, wanted: Wanted) -> list[Pick] | None:
        """Devices of the row for all that is wanted; None if there are not enough. Raises CelError."""
        return allocate(wanted, row, self.in_use, self.pools)

    # -- upkeep

    def change(self, row: int, task: Task, sign: int) -> None:
        if not task.claims:
            return
        if self._versions != _versions(self._cluster):
            self._read()
        if sign > 0:
            self._decide(row, task)
        for key in _keys(task):
            if key not in self.by_claim:
                continue
            users = self._users.setdefault(key, set())
            if sign > 0:
                users.add(task.uid)
                continue
            users.discard(task.uid)
            if not users:
                del self._users[key]
                self._use(_used_by(self.by_claim.pop(key)), -1)

    def _decide(self, row: int, task: Task) -> None:
        objects = self._cluster.of("ResourceClaim")
        undecided = [key for key in _keys(task) if key in objects and key not in self.by_claim]
        claims = {key: objects[key] for key in undecided if objects[key].status.allocation is None}
        try:
            picks = self.try_on(row, wanted_by(claims, self._cluster.of("DeviceClass"))) if claims else None
        except (Unclear, CelError):
            return  # it stands there all the same: somebody else put it there
        if picks is None:
            return
        for key in claims:
            allotted = Allotted(key, self._cluster.nodes.names[row], tuple(pick for pick in picks if pick.claim == key))
            self.by_claim[key] = allotted
            self._use(_used_by(allotted), 1)

    def _use(self, devices: list[DeviceKey], sign: int) -> None:
        for key in devices:
            count = self.in_use.get(key, 0) + sign
            if count:
                self.in_use[key] = count
            else:
                del self.in_use[key]


def _keys(task: Task) -> list[str]:
    return list(dict.fromkeys(f"{task.namespace}/{name}" for _, name in task.claims if name))


def _used_by(allotted: Allotted) -> list[DeviceKey]:
    return [pick.device for pick in allotted.picks if not pick.watches]


def _devices_of(claim: ResourceClaim) -> list[DeviceKey]:
    results = claim.status.allocation.devices.results if claim.status.allocation else None
    return [(result.driver, result.pool, result.device) for result in results or () if not result.admin_access]


def _versions(cluster: Cluster) -> tuple[int, ...]:
    return cluster.nodes.static_version, *(cluster.versions.get(kind, 0) for kind in KINDS)
