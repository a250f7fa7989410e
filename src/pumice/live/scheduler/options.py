"""The options of a scheduler, besides its policy.

A `CanaryShare` is some queues and namespaces: what is in them is decided and written, the rest is left to another scheduler. Pods outside
of the share belong to that scheduler: they hold their room, and are neither placed nor evicted. PodGroups outside of it are ignored, and
the other scheduler writes the status of queues.

Which of several replicas is responsible for what, when all of them work and none leads: each has a fixed share of the jobs and the nodes.

Replicas have numbers (`volcano-scheduler-0`, `-1`, ...), and each has many places on a hash ring, by checksums of its name. A name
belongs to the replica whose place comes next after the name's own checksum. So all replicas that know how many there are come to the same
answer, and one more replica takes something from each of the others and moves nothing between them.

Pods and PodGroups are assigned by the name of their first owner, so that a job's pods and its PodGroup belong to one replica; without an
owner, by the PodGroup. Nodes are assigned by their name. Pods on our nodes take room there, whichever replica they belong to.
"""

from bisect import bisect
from collections.abc import Iterable

import msgspec

from pumice.api import InputError
from pumice.api.annotations import GROUP_NAME
from pumice.api.defaults import DEFAULT_QUEUE
from pumice.api.meta import Metadata
from pumice.api.pod import Pod
from pumice.api.volcano import PodGroup


class CanaryShare(msgspec.Struct, frozen=True):
    queues: frozenset[str]
    namespaces: frozenset[str]

    def has(self, namespace: str, queue: str) -> bool:
        return namespace in self.namespaces or queue in self.queues

    def __str__(self) -> str:
        return ", ".join([*(f"queue/{each}" for each in sorted(self.queues)), *(f"namespace/{each}" for each in sorted(self.namespaces))])


def share_of(texts: Iterable[str]) -> CanaryShare | None:
    """The share that texts like queue/NAME and namespace/NAME name. None if there are none. Raises InputError."""
    named: dict[str, set[str]] = {"queue": set(), "namespace": set()}
    for text in texts:
        kind, _, name = text.partition("/")
        if kind not in named or not name:
            raise InputError(f'"{text}" is no share; write queue/NAME or namespace/NAME', where="--canary")
        named[kind].add(name)
    return CanaryShare(*map(frozenset, named.values())) if any(named.values()) else None


class ShareFilter:
    """Decides which pods are in the share. That depends on the queue of their PodGroup, which may come after them."""

    def __init__(self, share: CanaryShare, default_queue: str) -> None:
        self._share = share
        self._default_queue = default_queue
        self._queues: dict[str, str] = {}  #: the queue of each PodGroup
        self._early: dict[str, dict[str, Pod]] = {}  #: pods whose PodGroup has not come yet, by its key and their name

    def has_pod(self, pod: Pod) -> bool:
        namespace, named = pod.metadata.namespace or "default", (pod.metadata.annotations or {}).get(GROUP_NAME)
        group = f"{namespace}/{named}"
        if named and group not in self._queues:
            self._early.setdefault(group, {})[pod.metadata.name] = pod
        return self._share.has(namespace, self._queues.get(group, ""))

    def has_group(self, group: PodGroup) -> bool:
        queue = group.spec.queue or self._default_queue
        self._queues[f"{group.metadata.namespace}/{group.metadata.name}"] = queue
        return self._share.has(group.metadata.namespace or "default", queue)

    def early(self, key: str) -> Iterable[Pod]:
        """The pods of a PodGroup that came before it."""
        return self._early.pop(key, {}).values()

    def gone(self, kind: str, key: str) -> None:
        if kind == "PodGroup":
            self._queues.pop(key, None)
        elif kind == "Pod":
            namespace, _, name = key.partition("/")
            for group in [group for group, pods in self._early.items() if name in pods and group.startswith(f"{namespace}/")]:
                self._early[group].pop(name)


PLACES = 100  #: of each replica on the ring


class Ring:
    """A hash ring of replicas. `mine` is the name of this replica, `replicas` are the names of all."""

    def __init__(self, mine: str, replicas: list[str]) -> None:
        self.mine = mine
        self._owners = {_checksum(f"{name}/{place}"): name for name in replicas for place in range(PLACES)}
        self._places = sorted(self._owners)

    def owner(self, name: str) -> str:
        """The replica that is responsible for a name."""
        return self._owners[self._places[bisect(self._places, _checksum(name)) % len(self._places)]]

    def has(self, name: str) -> bool:
        """Whether a node or queue is ours."""
        return self.owner(name) == self.mine

    def has_job_of(self, metadata: Metadata) -> bool:
        """Whether a pod or PodGroup is ours to schedule."""
        return self.owner(_name_of_job(metadata)) == self.mine


def numbered(mine: str, count: int) -> Ring:
    """The ring of `count` replicas whose names differ from this one's only in the number. Raises ValueError."""
    stem, _, number = mine.rpartition("-")
    if not stem or not number.isdecimal():
        raise ValueError(f'"{mine}" does not end in "-" and a number, as the names of a StatefulSet\'s pods do')
    if int(number) >= count:
        raise ValueError(f'"{mine}" is none of {count} replicas, which are numbered from 0')
    return Ring(mine, [f"{stem}-{replica}" for replica in range(count)])


def _name_of_job(metadata: Metadata) -> str:
    if metadata.owner_references:
        return metadata.owner_references[0].name
    group = (metadata.annotations or {}).get(GROUP_NAME, "")
    made_for_it = group == f"podgroup-{metadata.uid}"  # a PodGroup that the pod owns
    return metadata.name if made_for_it or not group else group


def _checksum(name: str) -> bytes:
    import hashlib  # loads OpenSSL, which is not needed where nothing is shared

    return hashlib.sha256(name.encode()).digest()[:8]


class Sharding(msgspec.Struct, frozen=True):
    """How several schedulers share a cluster, and what is ours: by NodeShards, by a ring, by queue or namespace, or none of these."""

    mode: str = "none"  #: none, hard, soft
    name: str = "volcano"  #: of our NodeShard
    ring: Ring | None = None
    share: CanaryShare | None = None  #: the only part that is decided here; None: everything


UNSHARDED = Sharding()


class Options(msgspec.Struct, frozen=True):
    schedulers: tuple[str, ...] = ("volcano",)  #: schedulerNames whose pods are ours
    default_queue: str = DEFAULT_QUEUE
    period_s: float = 1.0  #: after so long waiting pods are tried again though nothing has changed; later if cycles are slow
    sync_timeout_s: float = 60.0  #: how long the start waits for resources that are not required
    node_labels: tuple[tuple[str, str], ...] = ()  #: only nodes with any of these labels; empty: all
    priority_classes: bool = True
    storage_capacity: bool = True  #: whether storage must have published capacity for volumes that are to be provisioned
    sharding: Sharding = UNSHARDED
    volume_timeout_s: float = 600.0  #: how long a pod's volumes may take to be bound before another node is sought
    volumes: bool = True  #: False: no controller binds volumes to claims, so that binds do not wait for it
    check_every: int = 0  #: after so many cycles the kept state is held against a recount; 0: never
    concurrency: int = 32  #: binds under way at a time; of evictions and of statuses half as many

    @property
    def component(self) -> str:
        """The component name in our events."""
        return self.schedulers[0] if len(self.schedulers) == 1 else "volcano"
