"""network-topology-aware: keep a job's pods in one network domain, and domains either full or free.

A job with a limit is tried in HyperNodes tier by tier, the closest first (for evictions the widest first); among those of a tier
the fullest is taken. Pods of a job that already stands somewhere go near to it; pods without a topology go where domains are full.
"""

import numpy as np
from msgspec import Struct, field

from pumice.scheduler.engine import MAX_SCORE, Scorer
from pumice.scheduler.engine.domain_sums import DomainSums
from pumice.scheduler.framework.network_topology import Purpose
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import HyperNode, Job, SubJob, Vector, status
from pumice.scheduler.plugins.volcano.network_topology_aware.nearness import Nearness, TierFullness

DEFAULT_FADING, DEFAULT_DOMAINS = 0.8, 8


class NetworkTopologyAwareArgs(Struct):
    weight: int = 1
    cpu: int = field(name="hypernode.binpack.cpu", default=1)
    memory: int = field(name="hypernode.binpack.memory", default=1)
    resources: str = field(name="hypernode.binpack.resources", default="")
    named: dict[str, int] = field(default_factory=dict)  #: hypernode.binpack.resources.<name>
    pack_normal_pods: bool = field(name="hypernode.binpack.normal-pod.enable", default=True)
    fading: float = field(name="hypernode.binpack.normal-pod.fading", default=DEFAULT_FADING)
    eviction_domains: int = field(name="hypernode.gradient.evict.max-hypernodes", default=DEFAULT_DOMAINS)


class NetworkTopologyAware(Plugin):
    name = "network-topology-aware"
    reads_only_state = True
    Args = NetworkTopologyAwareArgs
    wildcard_args = ("hypernode.binpack.resources.",)

    def open(self, session: Session) -> None:
        super().open(session)
        self.tree = session.topology.tree
        self.sums = DomainSums(session.cluster, self.tree)
        self.scale = MAX_SCORE * (self.args.weight if self.args.weight >= 0 else 1)

    def weights(self) -> Vector:
        """The weight of each dimension; -1 where none is configured."""
        args, dimensions = self.args, self.session.cluster.dimensions
        listed = [name.strip() for name in args.resources.split(",") if name.strip()]
        chosen = {name: args.named.get(name, 1) for name in listed} | {"cpu": args.cpu, "memory": args.memory}
        vector = dimensions.zeros() - 1
        for name, weight in chosen.items():
            if name in dimensions.columns:
                vector[dimensions.columns[name]] = weight if weight >= 0 else 1
        return vector

    # -- domains

    def hyper_node_gradient_for_job(self, job: Job, within: HyperNode, purpose: Purpose) -> list[list[HyperNode]]:
        topology = self.session.topology
        return self._gradient(topology.limit(job), topology.occupied(job), job.min_resources, within, purpose)

    def hyper_node_gradient_for_sub_job(self, job: Job, subjob: SubJob, within: HyperNode, purpose: Purpose) -> list[list[HyperNode]]:
        topology = self.session.topology
        need = sum((task.template.request for task in subjob.pending), self.session.cluster.dimensions.zeros())
        return self._gradient(topology.sub_limit(job, subjob), topology.sub_occupied(job, subjob), need, within, purpose)

    def _gradient(
        self, limit: int | None, occupied: HyperNode | None, need: Vector, within: HyperNode, purpose: Purpose
    ) -> list[list[HyperNode]]:
        if limit is None:
            return [[within]]
        top = _search_root(limit, occupied, within)
        if top is None:
            return []
        sums = self.sums
        if purpose is Purpose.EVICT:
            enough = sums.have(need, sums.allocatable)
        else:
            enough = sums.have(need, sums.idle) | sums.have(need, sums.future_idle)
        by_tier: dict[int, list[HyperNode]] = {}
        for node in top.downward():
            if node.tier <= limit and (occupied is not None or enough[node.number]):
                by_tier.setdefault(node.tier, []).append(node)
        groups = [by_tier[tier] for tier in sorted(by_tier)]
        return self._widest(groups) if purpose is Purpose.EVICT else groups

    def _widest(self, groups: list[list[HyperNode]]) -> list[list[HyperNode]]:
        left = self.args.eviction_domains if self.args.eviction_domains > 0 else DEFAULT_DOMAINS
        chosen = []
        for group in reversed(groups):
            if left:
                chosen.append(group[:left])
                left -= len(chosen[-1])
        return chosen

    def hyper_node_order(self, subjob: SubJob, candidates: list[HyperNode]) -> list[float]:
        request = sum((task.template.request for task in subjob.tasks.values()), self.session.cluster.dimensions.zeros())
        numbers = [node.number for node in candidates]
        scores = self.sums.fullness(request, self.weights())[numbers]
        best = scores == scores.max()
        if best.sum() > 1:
            rows = [task.node for task in subjob.tasks.values() if task.status & status.HELD and task.node >= 0]
            for position in np.flatnonzero(best):
                scores[position] += candidates[position].rows[rows].sum() / len(subjob.tasks)
        return [float(score) for score in scores * self.scale]

    # -- nodes

    def scorers(self) -> list[Scorer]:
        topology, cluster = self.session.topology, self.session.cluster
        rules: list[Scorer] = [Nearness(topology, cluster)]
        if self.args.pack_normal_pods:
            fading = self.args.fading if self.args.fading >= 0 else DEFAULT_FADING
            rules.append(TierFullness(self.tree, self.sums, self.weights(), fading))
        for rule in rules:
            rule.weight = self.scale
        return rules if self.scale else []


def _search_root(limit: int, occupied: HyperNode | None, within: HyperNode) -> HyperNode | None:
    """The HyperNode to search in: as far up from the occupied one as the limit allows, but within the given one; None if there is none."""
    if occupied is None:
        return within
    allowed = [node for node in occupied.upward() if node.tier <= limit]
    if not allowed:
        return None
    if within.contains(allowed[-1]):
        return allowed[-1]
    return within if allowed[-1].contains(within) else None
