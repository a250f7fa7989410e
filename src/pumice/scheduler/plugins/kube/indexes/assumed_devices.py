"""Which devices each claim of a placed pod gets: decided when the pod gets its row, given back when the last pod of the claim leaves.

What claim objects say themselves counts as in use; what was decided here is remembered until the object says it. A pod whose extended
resources are served by devices has a claim of the scheduler's making beside those that it names. Trials change nothing here: who is only
thought to be on a node has no devices there, and who is only thought away keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from msgspec import Struct

from pumice.api.devices import ResourceClaim
from pumice.api.structs import encode
from pumice.scheduler.engine.evaluation import LastUsed
from pumice.scheduler.model import status
from pumice.scheduler.model.arrays import NDArray
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.index import Index
from pumice.scheduler.model.task import Task
from pumice.scheduler.plugins.kube.devices.allocation import Faulty, GivenUp, Pick, allocate, uses
from pumice.scheduler.plugins.kube.devices.claims import Served, claim_for, classes_by_resource, special_key, written_specials
from pumice.scheduler.plugins.kube.devices.pools import DevicePools, InUse, uses_of
from pumice.scheduler.plugins.kube.devices.requests import ClaimedDevices, Failed, Unclear, wanted_by

OFFERS = ("ResourceSlice", "DeviceTaintRule")
NEW = status.ALLOCATED | status.PIPELINED | status.BINDING  #: placed here; nobody has written yet what their claims get


KINDS_KEPT = 64  #: of what claims ask for, those asked about last
UNKNOWN, ENOUGH, LACKING = np.arange(3, dtype=np.int8)
Verdicts = NDArray[np.int8]

NOBODY: tuple[str, int, list[Allotted]] = ("", -1, [])


class Allotted(Struct, frozen=True):
    """What a claim will get. `special`: the claim itself, if it is of the scheduler's making."""

    claim: str  #: "namespace/name"
    node: str
    picks: tuple[Pick, ...]
    special: Served | None = None


class AssumedDevices(Index):
    kinds = ("ResourceClaim", "DeviceClass", *OFFERS)

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._users: dict[str, set[str]] = {}  #: claim to uids of placed pods
        self._offered: tuple[int, ...] = ()
        self.by_claim: dict[str, Allotted] = {}
        self._read()

    def refresh(self) -> None:
        if self._versions != self.versions():
            self._read()

    def _read(self) -> None:
        """Take in what objects say, and forget what they say by now."""
        self._versions = self.versions()
        if self._offered != self.versions(*OFFERS):
            self._offered = self.versions(*OFFERS)
            self.pools = DevicePools(self.cluster)
        self._verdicts: LastUsed[Verdicts] = LastUsed(KINDS_KEPT)
        self._left: tuple[str, int, list[Allotted]] = NOBODY  #: the pod that left just now, from where, and what it had
        self.classes: Mapping[str, str] = classes_by_resource(self.cluster)  #: by the extended resource that they serve
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
            self.in_use.change(uses(allotted.picks), 1)

    def _still_waits(self, key: str, claims: Mapping[str, ResourceClaim]) -> bool:
        if self.by_claim[key].special is not None:
            return key not in self.specials
        return key in claims and claims[key].status.allocation is None

    def _is_stale(self, key: str, claim: ResourceClaim) -> bool:
        """Whether it is left from an attempt that came to nothing: its pod has no node. It goes when another is written for the pod."""
        owner = claim.metadata.controller
        task = self.cluster.tasks.get(f"{key.partition('/')[0]}/{owner.name}") if owner is not None else None
        return task is not None and task.node < 0 and self.specials.get(special_key(task)) == key

    # -- answers

    def of_pod(self, task: Task) -> list[Allotted]:
        """What is to be written before the pod can be bound."""
        return [self.by_claim[key] for key in (*_keys(task), special_key(task)) if key in self.by_claim]

    def try_on(self, row: int, wanted: ClaimedDevices) -> list[Pick] | None:
        """Devices of the row for all that is wanted; None if there are not enough. Raises Failed, GivenUp, Faulty."""
        return allocate(wanted, row, self.in_use, self.pools)

    def verdicts(self, claims: Iterable[ResourceClaim]) -> Verdicts:
        """Per row whether it has enough for claims that ask for this, as far as it is known. For who asks to write into."""
        key = tuple(encode(claim.spec) for claim in claims)
        known = self._verdicts.find(key)
        return known if known is not None else self._verdicts.keep(key, np.full(len(self.cluster.nodes), UNKNOWN))

    def served(self, task: Task) -> dict[str, tuple[int, str]]:
        """The pod's resources that classes serve: the column of each, and the class."""
        columns, template = self.cluster.dimensions.columns, task.template
        asked = {name: columns[name] for name in self.classes if name in columns}
        return {name: (column, self.classes[name]) for name, column in asked.items() if template.request[column] > 0}

    def special_on(self, task: Task, row: int) -> Served | None:
        """The claim on what the row does not have itself."""
        lacking = {n: kind for n, (column, kind) in self.served(task).items() if not self.cluster.nodes.allocatable[column, row]}
        return claim_for(task.namespace, task.template.spec, lacking) if lacking else None

    # -- upkeep

    def change(self, row: int, task: Task, sign: int) -> None:
        if self.cluster.imagined or not (task.claims or self.classes):
            return
        self.refresh()
        if sign > 0:
            self._decide(row, task)
        keys = [key for key in (*_keys(task), special_key(task)) if key in self.by_claim]
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
        (uid, left, allotted), self._left = self._left, NOBODY
        if uid == task.uid and left == row:  # it only changed its status
            self._take([each for each in allotted if each.claim not in self.by_claim])
        if not task.status & NEW:
            return  # somebody else put it there: what its claims have, they say themselves
        objects = self.cluster.of("ResourceClaim")
        undecided = [key for key in _keys(task) if key in objects and key not in self.by_claim]
        claims = {key: objects[key] for key in undecided if objects[key].status.allocation is None}
        known = special_key(task) in self.specials or special_key(task) in self.by_claim
        special = self.special_on(task, row) if not known else None
        if special is not None:
            claims[special_key(task)] = special.claim
        try:
            picks = self.try_on(row, wanted_by(claims, self.cluster.of("DeviceClass"))) if claims else None
        except (Unclear, Failed, GivenUp, Faulty):
            return  # it was placed by rules that do not ask for devices
        if picks is None:
            return
        node = self.cluster.nodes.names[row]
        specials = {special_key(task): special}
        self._take([Allotted(key, node, tuple(pick for pick in picks if pick.claim == key), specials.get(key)) for key in claims])

    def _take(self, allotted: list[Allotted]) -> None:
        for each in allotted:
            self.by_claim[each.claim] = each
            self._use(each, 1)

    def _use(self, allotted: Allotted, sign: int) -> None:
        self.in_use.change(uses(allotted.picks), sign)
        row = self.cluster.nodes.rows.get(allotted.node)
        if row is None or self.pools.are_shared:
            self._verdicts = LastUsed(KINDS_KEPT)
        else:
            for known in self._verdicts.kept.values():
                known[row] = UNKNOWN


def _keys(task: Task) -> list[str]:
    return list(dict.fromkeys(f"{task.namespace}/{name}" for _, name in task.claims if name))
