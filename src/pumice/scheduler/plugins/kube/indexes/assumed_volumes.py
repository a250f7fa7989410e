"""Which volume each waiting claim of a placed pod is to get: decided when the pod gets its row, given back when it leaves it.

The claim object says nothing of it until somebody has written it, so it is remembered here until then. Several pods may use one
claim: the first of them decides, the last of them gives it back, unless one of them was bound: what is written before a bind outlives
the pod. Pods that came with their node decide nothing. Trials change nothing here.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from msgspec import Struct

from pumice.api.core import PersistentVolumeClaim
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.index import Index
from pumice.scheduler.model.resources import Mask
from pumice.scheduler.model.task import Task
from pumice.scheduler.plugins.kube.volume_matching import (
    NONE,
    ClaimUse,
    Ids,
    Matching,
    claim_of,
    has_claims,
    is_reserved,
    matching,
    reserved,
    selected_node,
    signature,
    size_of,
    uses,
    waits_for_pod,
)

UNDECIDED = status.ALLOCATED | status.PIPELINED | status.BINDING  #: pods that were placed here, and may yet be placed elsewhere


class Assumed(Struct, frozen=True):
    """What a claim will get."""

    claim: str  #: "namespace/name"
    volume: str  #: "" for one that is yet to be made
    node: str


NOBODY: tuple[str, int, list[Assumed]] = ("", -1, [])


class AssumedVolumes(Index):
    kinds = ("PersistentVolume", "PersistentVolumeClaim", "StorageClass")

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._users: dict[str, set[str]] = {}  #: claim to the uids of the pods that were placed to have it
        self.by_claim: dict[str, Assumed] = {}
        self._read()

    def recount(self) -> None:
        """Pods that were there before it decide nothing."""

    def refresh(self) -> None:
        if self._versions != self.versions():
            self._read()

    def _read(self) -> None:
        """Forget what is no longer waiting: it was written, or is gone."""
        self._versions = self.versions()
        self._left: tuple[str, int, list[Assumed]] = NOBODY  #: the pod that left just now, from where, and what it gave back
        volumes = self.cluster.of("PersistentVolume")
        self._names = list(volumes)
        self._numbers = {name: number for number, name in enumerate(volumes)}
        self._reserved: dict[str, list[str]] = {}  #: claim to the volumes that name it
        for name, volume in volumes.items():
            if (ref := volume.spec.claim_ref) is not None:
                self._reserved.setdefault(f"{ref.namespace or 'default'}/{ref.name}", []).append(name)
        self._matchings: dict[Hashable, Matching] = {}
        for key in [key for key, assumed in self.by_claim.items() if not self._still_waits(key, assumed)]:
            del self.by_claim[key]
            self._users.pop(key, None)
        self.taken: Mask = np.zeros(len(volumes), bool)  #: by number, volumes that somebody will get
        for assumed in self.by_claim.values():
            self._mark(assumed, True)

    def _still_waits(self, key: str, assumed: Assumed) -> bool:
        claim = self.cluster.of("PersistentVolumeClaim").get(key)
        return claim is not None and waits_for_pod(self.cluster, claim) and (not assumed.volume or assumed.volume in self._numbers)

    # -- answers

    def matching(self, key: str, claim: PersistentVolumeClaim) -> Matching:
        """The volumes that a claim could get, if nobody had taken any."""
        for name in self._reserved.get(key, ()):
            volume = self.cluster.of("PersistentVolume")[name]
            if is_reserved(volume, claim):
                return reserved(self.cluster, self._numbers[name], volume)
        kind = signature(claim)
        if kind not in self._matchings:
            self._matchings[kind] = matching(self.cluster, claim)
        return self._matchings[kind]

    def of_pod(self, task: Task) -> list[Assumed]:
        """What is to be written before the pod can be bound."""
        return [self.by_claim[use.key] for use in uses(task) if use.key in self.by_claim]

    def unassumed(self, task: Task) -> list[tuple[ClaimUse, PersistentVolumeClaim]]:
        """The pod's waiting claims that no placed pod has decided on, in the order in which they choose."""
        waiting = {}
        for use in uses(task):
            claim = claim_of(self.cluster, use)
            if claim is not None and use.key not in self.by_claim and waits_for_pod(self.cluster, claim):
                waiting[use.key] = (use, claim)
        return sorted(waiting.values(), key=lambda pair: size_of(pair[1]))

    # -- upkeep

    def change(self, row: int, task: Task, sign: int) -> None:
        if self.cluster.imagined or not has_claims(task.template):
            return
        self.refresh()
        if sign > 0:
            self._come(row, task)
        elif task.status & UNDECIDED:
            self._go(row, task)

    def _come(self, row: int, task: Task) -> None:
        (uid, left, given_back), self._left = self._left, NOBODY
        if (uid, left) == (task.uid, row):  # it only changed its status
            for assumed in given_back:
                self._assume(assumed)
        elif task.status & UNDECIDED:
            self._decide(row, task)
        else:
            return
        for use in uses(task):
            if use.key in self.by_claim:
                self._users.setdefault(use.key, set()).add(task.uid)

    def _go(self, row: int, task: Task) -> None:
        self._left = task.uid, row, []
        for use in uses(task):
            users = self._users.get(use.key, set())
            users.discard(task.uid)
            if not users and use.key in self.by_claim:
                del self._users[use.key]
                given_back = self.by_claim.pop(use.key)
                self._mark(given_back, False)
                self._left[2].append(given_back)

    def _decide(self, row: int, task: Task) -> None:
        earlier: list[Ids] = []
        decided: list[Assumed] = []
        table = self.cluster.nodes
        for use, claim in self.unassumed(task):
            number = NONE
            if selected_node(claim) is None:
                choice = self.matching(use.key, claim).choice(self.taken, earlier, len(table))
                earlier.append(choice)
                number = int(choice[row])
            decided.append(Assumed(use.key, self._names[number] if number != NONE else "", table.names[row]))
        for assumed in decided:
            self._assume(assumed)

    def _assume(self, assumed: Assumed) -> None:
        self.by_claim[assumed.claim] = assumed
        self._mark(assumed, True)

    def _mark(self, assumed: Assumed, taken: bool) -> None:
        if assumed.volume:
            self.taken[self._numbers[assumed.volume]] = taken
