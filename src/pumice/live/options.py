"""What a scheduler is told besides its policy."""

from __future__ import annotations

import msgspec

from pumice.api.names import DEFAULT_QUEUE
from pumice.live.ring import Ring


class Sharding(msgspec.Struct, frozen=True):
    """What is ours when several schedulers share a cluster: by NodeShards, by a ring, or neither."""

    mode: str = "none"  #: none, hard, soft
    name: str = "volcano"  #: of our NodeShard
    ring: Ring | None = None


UNSHARDED = Sharding()


class Options(msgspec.Struct, frozen=True):
    schedulers: tuple[str, ...] = ("volcano",)  #: schedulerNames whose pods are ours
    default_queue: str = DEFAULT_QUEUE
    period_s: float = 1.0  #: at most so long a waiting pod is left alone
    sync_timeout_s: float = 60.0  #: how long resources that can be done without are waited for
    node_labels: tuple[tuple[str, str], ...] = ()  #: only nodes with any of these; empty: all
    priority_classes: bool = True
    storage_capacity: bool = True  #: whether storage must have published room for volumes that are to be made
    sharding: Sharding = UNSHARDED
    volume_timeout_s: float = 600.0  #: how long a pod's volumes may take to be bound before another node is sought
    volumes: bool = True  #: False: nobody there binds volumes to claims, so that none need be waited for
    concurrency: int = 32  #: binds under way; evictions and statuses have half as many places each

    @property
    def component(self) -> str:
        """The name under which events are told."""
        return self.schedulers[0] if len(self.schedulers) == 1 else "volcano"
