"""The volumes that waiting claims are assumed to get: decided when a pod gets its row, given back when the claim's last pod leaves.

A claim object says nothing of its volume until somebody has written it, so it is remembered here until then. Several pods may use one
claim: the first of them decides, the last of them gives it back, unless one of them was bound: what is written before a bind outlives the
pod. Pods that came with their node decide nothing. Dry runs change nothing here.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from msgspec import Struct

from pumice.api.storage import PersistentVolumeClaim
from pumice.scheduler.model import Cluster, Index, Mask, Task, status
from pumice.scheduler.plugins.kube import volume_matching


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
