"""What placed pods are assumed to get for their claims: decided when the pod gets its row, given back when the last pod of the claim
leaves.

`AssumedVolumes`: which volume each waiting claim is to get. The claim object says nothing of it until somebody has written it, so it is
remembered here until then. Several pods may use one claim: the first of them decides, the last of them gives it back, unless one of them
was bound: what is written before a bind outlives the pod. Pods that came with their node decide nothing. Dry runs change nothing here.

`AssumedDevices`: which devices each claim gets. What claim objects say themselves counts as in use; what was decided here is remembered
until the object says it. A pod whose extended resources are served by devices has a claim of the scheduler's making beside those that it
names. Dry runs change nothing here: a pod that a dry run adds gets no devices, and a pod that it removes keeps its devices.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping

import numpy as np
from msgspec import Struct

from pumice.api.core import PersistentVolumeClaim
from pumice.api.devices import AllocationResult, ResourceClaim
from pumice.api.pod import ClaimCharge
from pumice.api.structs import encode
from pumice.scheduler.engine.evaluations import LastUsed
from pumice.scheduler.model import Cluster, Index, Mask, NDArray, Task, status
from pumice.scheduler.plugins.kube import volume_matching
from pumice.scheduler.plugins.kube.devices.allocation import Faulty, GivenUp, Pick, allocate, picked
from pumice.scheduler.plugins.kube.devices.charges import CHARGES, charges_of, is_mapped
from pumice.scheduler.plugins.kube.devices.claims import (
    Served,
    claim_for,
    classes_by_resource,
    named_claims,
    reach,
    special_key,
    written_specials,
)
from pumice.scheduler.plugins.kube.devices.in_use import DeviceUse, InUse, use_of, uses_of
from pumice.scheduler.plugins.kube.devices.pools import DevicePools
from pumice.scheduler.plugins.kube.devices.requests import ClaimedDevices, Failed, Unclear, wanted_by


class Assumed(Struct, frozen=True):
    """The volume that a claim will get."""

    claim: str  #: "namespace/name"
    volume: str  #: "" for a volume that is yet to be provisioned
    node: str


NO_POD_WITH_VOLUMES: tuple[str, int, list[Assumed]] = ("", -1, [])


class AssumedVolumes(Index):
    kinds = ("PersistentVolume", "PersistentVolumeClaim", "StorageClass")

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._users: dict[str, set[str]] = {}  #: from claim to the uids of the placed pods that use it
        self.by_claim: dict[str, Assumed] = {}
        self._read()

    def recount(self) -> None:
        """Do nothing: pods that were placed before this index was made decide nothing."""

    def refresh(self) -> None:
        if self._versions != self.versions():
            self._read()

    def _read(self) -> None:
        """Forget the claims that wait no longer: they were written, or are gone."""
        self._versions = self.versions()
        self._left: tuple[str, int, list[Assumed]] = NO_POD_WITH_VOLUMES  #: the pod that left just now, its row, its freed volumes
        volumes = self.cluster.of("PersistentVolume")
        self._names = list(volumes)
        self._numbers = {name: number for number, name in enumerate(volumes)}
        self._reserved: dict[str, list[str]] = {}  #: from claim to the volumes that are reserved for it
        for name, volume in volumes.items():
            if (ref := volume.spec.claim_ref) is not None:
                self._reserved.setdefault(f"{ref.namespace or 'default'}/{ref.name}", []).append(name)
        self._matchings: dict[Hashable, volume_matching.Matching] = {}
        for key in [key for key, assumed in self.by_claim.items() if not self._still_waits(key, assumed)]:
            del self.by_claim[key]
            self._users.pop(key, None)
        self.taken: Mask = np.zeros(len(volumes), bool)  #: by number, the volumes that are assumed for a claim
        for assumed in self.by_claim.values():
            self._mark(assumed, True)

    def _still_waits(self, key: str, assumed: Assumed) -> bool:
        claim = self.cluster.of("PersistentVolumeClaim").get(key)
        return (
            claim is not None
            and volume_matching.waits_for_pod(self.cluster, claim)
            and (not assumed.volume or assumed.volume in self._numbers)
        )

    # -- answers

    def matching(self, key: str, claim: PersistentVolumeClaim) -> volume_matching.Matching:
        """The volumes that a claim could get if none were taken."""
        for name in self._reserved.get(key, ()):
            volume = self.cluster.of("PersistentVolume")[name]
            if volume_matching.is_reserved(volume, claim):
                return volume_matching.reserved(self.cluster, self._numbers[name], volume)
        kind = volume_matching.signature(claim)
        if kind not in self._matchings:
            self._matchings[kind] = volume_matching.matching(self.cluster, claim)
        return self._matchings[kind]

    def of_pod(self, task: Task) -> list[Assumed]:
        """The assumed volumes that must be written before the pod can be bound."""
        return [self.by_claim[use.key] for use in volume_matching.uses(task) if use.key in self.by_claim]

    def unassumed(self, task: Task) -> list[tuple[volume_matching.ClaimUse, PersistentVolumeClaim]]:
        """The pod's waiting claims that are not decided yet, in the order in which they choose."""
        waiting = {}
        for use in volume_matching.uses(task):
            claim = volume_matching.claim_of(self.cluster, use)
            if claim is not None and use.key not in self.by_claim and volume_matching.waits_for_pod(self.cluster, claim):
                waiting[use.key] = (use, claim)
        return sorted(waiting.values(), key=lambda pair: volume_matching.size_of(pair[1]))

    # -- upkeep

    def change(self, row: int, task: Task, sign: int) -> None:
        if self.cluster.imagined or not volume_matching.has_claims(task.template):
            return
        self.refresh()
        if sign > 0:
            self._come(row, task)
        elif task.status & status.PLACED:
            self._go(row, task)

    def _come(self, row: int, task: Task) -> None:
        (uid, left, given_back), self._left = self._left, NO_POD_WITH_VOLUMES
        if (uid, left) == (task.uid, row):  # only its status changed
            for assumed in given_back:
                self._assume(assumed)
        elif task.status & status.PLACED:
            self._decide(row, task)
        else:
            return
        for use in volume_matching.uses(task):
            if use.key in self.by_claim:
                self._users.setdefault(use.key, set()).add(task.uid)

    def _go(self, row: int, task: Task) -> None:
        self._left = task.uid, row, []
        for use in volume_matching.uses(task):
            users = self._users.get(use.key, set())
            users.discard(task.uid)
            if not users and use.key in self.by_claim:
                del self._users[use.key]
                given_back = self.by_claim.pop(use.key)
                self._mark(given_back, False)
                self._left[2].append(given_back)

    def _decide(self, row: int, task: Task) -> None:
        earlier: list[volume_matching.Ids] = []
        decided: list[Assumed] = []
        table = self.cluster.nodes
        for use, claim in self.unassumed(task):
            number = volume_matching.NONE
            if volume_matching.selected_node(claim) is None:
                choice = self.matching(use.key, claim).choice(self.taken, earlier, len(table))
                earlier.append(choice)
                number = int(choice[row])
            decided.append(Assumed(use.key, self._names[number] if number != volume_matching.NONE else "", table.names[row]))
        for assumed in decided:
            self._assume(assumed)

    def _assume(self, assumed: Assumed) -> None:
        self.by_claim[assumed.claim] = assumed
        self._mark(assumed, True)

    def _mark(self, assumed: Assumed, taken: bool) -> None:
        if assumed.volume:
            self.taken[self._numbers[assumed.volume]] = taken


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
