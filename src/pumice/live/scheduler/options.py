"""The options of a scheduler, besides its policy."""

import msgspec

from pumice.api.defaults import DEFAULT_QUEUE
from pumice.live.scheduler.canary_share import CanaryShare
from pumice.live.scheduler.hash_ring import Ring


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
