"""The devices that claims are assumed to get: decided when a pod gets its row, given back when the claim's last pod leaves.

What claim objects say themselves counts as in use; what was decided here is remembered until the object says it. A pod whose extended
resources are served by devices has a claim of the scheduler's making beside those that it names. Dry runs change nothing here: a pod that
a dry run adds gets no devices, and a pod that it removes keeps its devices.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

import numpy as np
from msgspec import Struct

from pumice.api.devices import AllocationResult, ResourceClaim
from pumice.api.pod import ClaimCharge
from pumice.api.structs import encode
from pumice.scheduler.engine.evaluations import LastUsed
from pumice.scheduler.model import Cluster, Index, NDArray, Task, status
from pumice.scheduler.plugins.kube.devices.allocation import Faulty, GivenUp, Pick, allocate, picked
from pumice.scheduler.plugins.kube.devices.charges import CHARGES, charges_of, is_mapped
from pumice.scheduler.plugins.kube.devices.claims import named_claims
from pumice.scheduler.plugins.kube.devices.extended_resources import Served, claim_for, classes_by_resource, special_key, written_specials
from pumice.scheduler.plugins.kube.devices.in_use import DeviceUse, InUse, use_of, uses_of
from pumice.scheduler.plugins.kube.devices.node_selector import reach
from pumice.scheduler.plugins.kube.devices.pools import DevicePools
from pumice.scheduler.plugins.kube.devices.requests import ClaimedDevices, Failed, Unclear, wanted_by

OFFERS = ("ResourceSlice", "DeviceTaintRule")

KINDS_KEPT = 64  #: how many kinds of requests have their verdicts kept; the least recently used kind goes first
UNKNOWN, ENOUGH, LACKING = np.arange(3, dtype=np.int8)
Verdicts = NDArray[np.int8]

NO_POD_WITH_DEVICES: tuple[str, int, list[Allotted]] = ("", -1, [])


class Allotted(Struct, frozen=True):
    """The devices that a claim will get. `special`: the claim itself, if the scheduler makes it."""

    claim: str  #: "namespace/name"
    node: str
    picks: tuple[Pick, ...]
    special: Served | None = None

    @property
    def as_result(self) -> AllocationResult:
        """The allocation as the claim will state it, without its devices."""
        return AllocationResult(node_selector=reach(self.picks, self.node))


class AssumedDevices(Index):
    kinds = ("ResourceClaim", "DeviceClass", *OFFERS)

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._users: dict[str, set[str]] = {}  #: from claim to the uids of the placed pods that use it
        self._offered: tuple[int, ...] = ()
        self.by_claim: dict[str, Allotted] = {}
        self.charges = CHARGES in cluster.device_gates
        if self.charges and cluster.devices_take is None:
            cluster.devices_take = self._charges_of
        self._read()

    def refresh(self) -> None:
        if self._versions != self.versions():
            self._read()

    def _read(self) -> None:
        """Read the objects again, and forget decisions that the objects have taken over."""
        self._versions = self.versions()
        if self._offered != self.versions(*OFFERS):
            self._offered = self.versions(*OFFERS)
            self.pools = DevicePools(self.cluster)
        self._verdicts: LastUsed[Verdicts] = LastUsed(KINDS_KEPT)
        self._left: tuple[str, int, list[Allotted]] = NO_POD_WITH_DEVICES  #: the pod that left just now, its row, its devices
        self.classes: Mapping[str, str] = classes_by_resource(self.cluster)  #: device classes by the extended resource that they serve
        claims = self.cluster.of("ResourceClaim")
        self.specials = written_specials(claims)
        for key in [key for key in self.by_claim if not self._still_waits(key, claims)]:
            del self.by_claim[key]
            self._users.pop(key, None)
        self.in_use = InUse()
        for key, claim in claims.items():
            if not self._is_stale(key, claim):
                self.in_use.change(uses_of(claim), 1)
        for allotted in self.by_claim.values():
            self.in_use.change(picked(allotted.picks), 1)

    def _still_waits(self, key: str, claims: Mapping[str, ResourceClaim]) -> bool:
        if self.by_claim[key].special is not None:
            return key not in self.specials
        return key in claims and claims[key].status.allocation is None

    def _is_stale(self, key: str, claim: ResourceClaim) -> bool:
        """Whether the claim is left from a failed attempt: its pod has no node. It goes when another claim is written for the pod."""
        owner = claim.metadata.controller
        task = self.cluster.tasks.get(f"{key.partition('/')[0]}/{owner.name}") if owner is not None else None
        return task is not None and task.node < 0 and self.specials.get(special_key(task)) == key

    # -- answers

    def of_pod(self, task: Task) -> list[Allotted]:
        """The assumed devices that must be written before the pod can be bound."""
        return [self.by_claim[key] for key in (*_keys(self.cluster, task), special_key(task)) if key in self.by_claim]

    def try_on(self, row: int, wanted: ClaimedDevices) -> list[Pick] | None:
        """The devices of the row for all requests; None if there are not enough. Raises Failed, GivenUp, Faulty."""
        return allocate(wanted, row, self.in_use, self.pools)

    def charges_on(self, row: int, task: Task, picks: Iterable[Pick]) -> list[ClaimCharge]:
        """What the devices of the pod's claims take of the row's own resources, with these for the claims that are undecided. Raises
        Failed."""
        if not (self.charges and self.pools.charge):
            return []
        objects, uses = self.cluster.of("ResourceClaim"), dict[str, list[DeviceUse]]()
        for key in _keys(self.cluster, task):
            allocation = objects[key].status.allocation if key in objects else None
            if allocation is not None:
                uses[key] = [use_of(result) for result in allocation.devices.results or ()]
            else:
                chosen = self.by_claim[key].picks if key in self.by_claim else [pick for pick in picks if pick.claim == key]
                uses[key] = [DeviceUse(pick.device, pick.amounts) for pick in chosen]
        names = {ref: f"{task.namespace}/{name}" for ref, name in named_claims(self.cluster, task)}
        return charges_of(task.template.spec, names, uses, lambda key: self.pools.device(key, row))

    def is_taken(self, key: str, users: Container[str]) -> bool:
        """Whether others than these use a claim that has a device which is a part of a node's own resources."""
        if not (self.charges and self.pools.charge):
            return False
        claim: ResourceClaim = self.cluster.of("ResourceClaim")[key]
        allocation, allotted = claim.status.allocation, self.by_claim.get(key)
        if allocation is not None:
            devices = [use_of(each).device for each in allocation.devices.results or ()]
            holders = [user.uid for user in claim.status.reserved_for or ()]
            shared = bool(holders) and not any(user in users for user in holders)
        else:
            devices = [pick.device for pick in allotted.picks] if allotted is not None else []
            shared = any(user not in users for user in self._users.get(key, ()))
        return shared and any(is_mapped(self.pools.device(device)) for device in devices)

    def verdicts(self, claims: Iterable[ResourceClaim]) -> Verdicts:
        """For each row, whether it has enough devices for such claims, as far as that is known. The caller writes new verdicts into the
        array."""
        key = tuple(encode(claim.spec) for claim in claims)
        known = self._verdicts.find(key)
        return known if known is not None else self._verdicts.keep(key, np.full(len(self.cluster.nodes), UNKNOWN))

    def served(self, task: Task) -> dict[str, tuple[int, str]]:
        """The requested resources that device classes serve: the column and the class of each."""
        columns, template = self.cluster.dimensions.columns, task.template
        asked = {name: columns[name] for name in self.classes if name in columns}
        return {name: (column, self.classes[name]) for name, column in asked.items() if template.request[column] > 0}

    def special_on(self, task: Task, row: int) -> Served | None:
        """The claim for the requested resources that the row serves by devices only; None if there are none."""
        lacking = {n: kind for n, (column, kind) in self.served(task).items() if not self.cluster.nodes.allocatable[column, row]}
        return claim_for(task.namespace, task.template.spec, lacking) if lacking else None

    # -- upkeep

    def change(self, row: int, task: Task, sign: int) -> None:
        if self.cluster.imagined or not (task.claims or self.classes):
            return
        self.refresh()
        if sign > 0:
            self._decide(row, task)
        keys = [key for key in (*_keys(self.cluster, task), special_key(task)) if key in self.by_claim]
        if sign < 0:
            self._left = (task.uid, row, [self.by_claim[key] for key in keys])
        for key in keys:
            users = self._users.setdefault(key, set())
            if sign > 0:
                users.add(task.uid)
                continue
            users.discard(task.uid)
            if not users:
                del self._users[key]
                self._use(self.by_claim.pop(key), -1)

    def _decide(self, row: int, task: Task) -> None:
        chosen = self._chosen(row, task)
        self._left = NO_POD_WITH_DEVICES
        self._take(chosen)

    def _chosen(self, row: int, task: Task) -> list[Allotted]:
        """What the pod's undecided claims get if it comes to the row: after a change of its status alone, what they had."""
        uid, left, allotted = self._left
        again = [each for each in allotted if each.claim not in self.by_claim] if uid == task.uid and left == row else []
        if not task.status & status.PLACED:
            return again  # another scheduler placed it: its claims say what they have
        objects, decided = self.cluster.of("ResourceClaim"), {*self.by_claim, *(each.claim for each in again)}
        undecided = [key for key in _keys(self.cluster, task) if key in objects and key not in decided]
        claims = {key: objects[key] for key in undecided if objects[key].status.allocation is None}
        known = special_key(task) in self.specials or special_key(task) in decided
        special = self.special_on(task, row) if not known else None
        if special is not None:
            claims[special_key(task)] = special.claim
        try:
            picks = self.try_on(row, wanted_by(claims, self.cluster.of("DeviceClass"))) if claims else None
        except (Unclear, Failed, GivenUp, Faulty):
            return again  # it was placed by a policy that does not check devices
        if picks is None:
            return again
        node = self.cluster.nodes.names[row]
        specials = {special_key(task): special}
        return again + [Allotted(key, node, tuple(pick for pick in picks if pick.claim == key), specials.get(key)) for key in claims]

    def _charges_of(self, task: Task, row: int) -> list[ClaimCharge]:
        """What the devices of a pod that comes to a row take there."""
        self.refresh()
        try:
            return self.charges_on(row, task, [pick for each in self._chosen(row, task) for pick in each.picks])
        except Failed:
            return []  # it was placed by a policy that does not check devices

    def _take(self, allotted: list[Allotted]) -> None:
        for each in allotted:
            self.by_claim[each.claim] = each
            self._use(each, 1)

    def _use(self, allotted: Allotted, sign: int) -> None:
        self.in_use.change(picked(allotted.picks), sign)
        row = self.cluster.nodes.rows.get(allotted.node)
        if row is None or self.pools.are_shared:
            self._verdicts = LastUsed(KINDS_KEPT)
        else:
            for known in self._verdicts.kept.values():
                known[row] = UNKNOWN


def _keys(cluster: Cluster, task: Task) -> list[str]:
    return list(dict.fromkeys(f"{task.namespace}/{name}" for _, name in named_claims(cluster, task) if name))
