"""kube-scheduler's filters and scorers, vectorised over nodes; Volcano's predicates and nodeorder use them too.

One file a plugin, which ends with its `KubePlugin`. Arithmetic follows upstream to the bit: integer-valued float64 and truncation where
upstream divides integers.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from pumice.api.strict_decoding import Args
from pumice.scheduler.engine import Filter, Rule, Scorer
from pumice.scheduler.framework.cluster_events import EventKind, QueueingHint
from pumice.scheduler.model import Cluster


class ClusterRule(Rule):
    """A rule that reads more of the cluster than its nodes."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster


class KubePlugin(Struct, frozen=True):
    """A plugin as a value: its extension points, default weight, arguments, the rules made from them, and the events that may help a
    refused pod."""

    name: str
    points: str  #: extension points, as a configuration writes them
    weight: int = 0
    args: type[Args] | None = None
    filters: Callable[[Any, Cluster], list[Filter]] | None = None
    scorer: Callable[[Any, Cluster], Scorer] | None = None
    hints: Mapping[EventKind, QueueingHint] = {}
