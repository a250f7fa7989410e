"""Node shards: several schedulers share one cluster's nodes, each with a NodeShard that says which are its own.

`hard`: nodes outside the shard are refused. `soft`: they are taken when the shard has no place. Both are a plugin that stands before all
others, so that the policies of users need not know of it. A scheduler whose NodeShard does not exist (yet) has every node.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from pumice.api import rfc3339
from pumice.api.kinds import NODE_SHARDS, ObjectRef
from pumice.api.volcano import NodeShard
from pumice.live.scheduler.options import Sharding
from pumice.live.scheduler.requests import WriteStatus
from pumice.live.scheduler.sent_status import SentStatus
from pumice.scheduler.engine import Filter, Reach, Reason, Refused, Scorer, Scores, View
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import PluginOption, Policy
from pumice.scheduler.model import Cluster, Mask, Task

PREFERENCE = 1e6  #: above any sum of scores, small enough that the scores still tell nodes of one kind apart
REFUSAL = Reason("node(s) were outside the scheduler's shard", final=True)


class Shard(Plugin):
    name = "shard"

    def filters(self) -> list[Filter]:
        nodes = self._nodes()
        return [InShard(nodes)] if self.args.mode == "hard" and nodes is not None else []

    def scorers(self) -> list[Scorer]:
        nodes = self._nodes()
        return [ShardFirst(nodes)] if self.args.mode == "soft" and nodes is not None else []

    def _nodes(self) -> Mask | None:
        """Which rows are our nodes; None if our NodeShard does not exist."""
        shard: NodeShard | None = self.session.cluster.of("NodeShard").get(self.args.name)
        return None if shard is None else rows_of(self.session.cluster, set(nodes_in_use(self.session.cluster, shard)))


def rows_of(cluster: Cluster, names: set[str]) -> Mask:
    mask = np.zeros(len(cluster.nodes), bool)
    mask[[cluster.nodes.rows[name] for name in names if name in cluster.nodes.rows]] = True
    return mask


def nodes_in_use(cluster: Cluster, shard: NodeShard) -> list[str]:
    """The nodes that a shard should have, without nodes that another scheduler still uses."""
    others = [other for name, other in cluster.of("NodeShard").items() if name != shard.metadata.name]
    taken = {node for other in others for node in other.status.nodes_in_use or ()}
    return [node for node in shard.spec.nodes_desired or () if node not in taken]


def shard_requests(cluster: Cluster, sharding: Sharding, sent_status: SentStatus, now: float) -> list[WriteStatus]:
    """The request to update our NodeShard's status, if it must change. Nodes to give up are given up at once, used ones are awaited."""
    shard: NodeShard | None = cluster.of("NodeShard").get(sharding.name) if sharding.mode != "none" else None
    if shard is None or sent_status.pauses.holds("NodeShard", sharding.name, now):
        return []
    stored = shard.status
    using = nodes_in_use(cluster, shard)
    awaited = [node for node in shard.spec.nodes_desired or () if node not in using]
    wanted: tuple[list[str], ...] = (using, awaited, [])
    known = sent_status.shards.get(sharding.name) or (stored.nodes_in_use or [], stored.nodes_to_add or [], stored.nodes_to_remove or [])
    if wanted == known:
        return []
    sent_status.shards[sharding.name] = wanted
    status = dict(zip(("nodesInUse", "nodesToAdd", "nodesToRemove"), wanted, strict=True))
    return [WriteStatus(ObjectRef(sharding.name), NODE_SHARDS, {**status, "lastUpdateTime": rfc3339(now)}, {})]


class InShard(Filter):
    name = "Shard"
    reach = Reach.STATIC
    reason = REFUSAL

    def __init__(self, nodes: Mask) -> None:
        self._nodes = nodes

    def prepare(self, task: Task) -> Any:
        return task

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        return [Refused(np.logical_not(nodes.of(self._nodes)), REFUSAL)]


class ShardFirst(Scorer):
    name = "Shard"
    reach = Reach.STATIC

    def __init__(self, nodes: Mask) -> None:
        self._nodes = nodes

    def prepare(self, task: Task) -> Any:
        return task

    def score(self, state: Any, nodes: View) -> Scores:
        scores: Scores = nodes.of(self._nodes) * PREFERENCE  # type: ignore[operator]
        return scores


def sharded(policy: Policy, sharding: Sharding) -> Policy:
    """The policy with the shard plugin in a tier before all others; unchanged without shards."""
    if sharding.mode == "none":
        return policy
    return replace(policy, tiers=((PluginOption(Shard, sharding),), *policy.tiers))
