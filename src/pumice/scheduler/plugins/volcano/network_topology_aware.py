"""network-topology-aware: keep a job's pods in one network domain, and domains either full or free.

A job with a limit is tried in HyperNodes tier by tier, the closest first (for evictions the widest first); among those of a tier
the fullest is taken. Pods of a job that already stands somewhere go near to it; pods without a topology go where domains are full.

Scores of nodes by the network: how near they are to the rest of the job, or for pods without a topology, how full their domains are.
A job's place is the lowest HyperNode of all its pods, also those of the present dry run unless a gang eviction makes it: the lower the
HyperNode is that holds both this place and a node, the higher the node scores. Of several nodes with the best score, those whose
HyperNode has more pods of the same part win. A hard topology without a tier has no effect.
"""

from collections.abc import Hashable
from typing import Any

import numpy as np
from msgspec import Struct, field

from pumice.scheduler.engine import MAX_SCORE, Reach, Scorer, Scores, View
from pumice.scheduler.engine.domain_sums import DomainSums
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.topology import Purpose, Topology
from pumice.scheduler.model import Cluster, HyperNode, HyperNodes, Job, Mask, SubJob, Task, Template, Vector, status


def _part_with_topology(task: Task) -> SubJob | None:
    job = task.job
    if job is None or not job.asks_for_topology:
        return None
    part = job.subjobs.of(task)
    return None if part.topology is None else part


class PodsByHyperNode:
    """The number of pods of a part of a job in each HyperNode."""

    def __init__(self, job: Job, part: SubJob, cluster: Cluster, tree: HyperNodes) -> None:
        self.job, self.part = job, part
        self._cluster, self._tree = cluster, tree
        self._position = len(cluster.log)
        self._counts = np.zeros(len(tree.all))
        for task in part.tasks.values():
            if task.node >= 0 and task.status & status.HELD:
                self._counts[tree.homes[task.node]] += 1

    @property
    def counts(self) -> Scores:
        """The pods per HyperNode, up to date. Each pod is counted in the lowest HyperNode of its node."""
        log = self._cluster.log
        for row, task, sign in log[self._position :]:
            if sign and task.uid in self.part.tasks:
                self._counts[self._tree.homes[row]] += sign
        self._position = len(log)
        return self._counts

    def around(self, recorded: HyperNode | None) -> HyperNode | None:
        """The lowest HyperNode that holds all these pods and the recorded HyperNode; None if there is neither."""
        found = recorded
        for number in np.flatnonzero(self.counts):
            place = self._tree.all[number]
            found = place if found is None else self._tree.lowest_common(found, place)
        return found


class Nearness(Scorer):
    """The score for pods with a topology: how near nodes are to the job's pods."""

    name = "network-topology-aware"
    reach = Reach.CLUSTER
    relative = True

    def __init__(self, topology: Topology, cluster: Cluster) -> None:
        self._topology, self._cluster = topology, cluster
        self._by_place: dict[str, Scores] = {}

    def prepare(self, task: Task) -> Any:
        part, job = _part_with_topology(task), task.job
        if part is None or job is None or self._topology.sub_limit(job, part) is None:
            return None
        return PodsByHyperNode(job, part, self._cluster, self._topology.tree)

    def key(self, task: Task) -> Hashable:
        part = _part_with_topology(task)
        return None if part is None else part.uid

    def is_constant(self, state: Any, candidates: Mask) -> bool:
        homes = self._topology.tree.homes[candidates]
        return len(homes) > 0 and bool((homes == homes[0]).all())

    def score(self, state: Any, nodes: View) -> Scores:
        occupied = self._topology.occupied(state.job)
        here = state.around(occupied) if self._topology.trials_count else occupied
        if here is None:
            return np.zeros(len(nodes))
        homes = self._topology.tree.homes[nodes.row_numbers]
        values = self._closeness(here)[homes]
        best = values == values.max(initial=0.0)
        if best.sum() > 1 or len(values) == 1:
            values[best] += state.counts[homes[best]] / len(state.part.tasks)
        return values

    def _closeness(self, here: HyperNode) -> Scores:
        """How near each HyperNode is: 1 for this very one, 0 if only the whole cluster holds both."""
        if here.name not in self._by_place:
            tree = self._topology.tree
            lowest, highest = tree.all[0].tier, tree.root.tier
            values = np.ones(len(tree.all))
            for node in tree.all:
                if node is not here and lowest < highest:
                    values[node.number] = (highest - tree.lowest_common(node, here).tier) / (highest - lowest)
            self._by_place[here.name] = values
        return self._by_place[here.name]


class TierFullness(Scorer):
    """The score for pods without a topology: how full a node's HyperNodes are, as a mean over the tiers; lower tiers count more."""

    name = "network-topology-aware"
    reach = Reach.CLUSTER

    def __init__(self, tree: HyperNodes, sums: DomainSums, weights: Vector, fading: float) -> None:
        self._tree, self._sums, self._weights = tree, sums, weights
        tiers = range(max(tree.all[0].tier, 0 if fading else 1), tree.root.tier + 1)
        self._tiers = [(fading ** (tier - 1), tree.of_tier(tier)) for tier in tiers]
        self._total = sum(weight for weight, _ in self._tiers)

    def prepare(self, task: Task) -> Template | None:
        return task.template if self._total and _part_with_topology(task) is None else None

    def key(self, task: Task) -> Hashable:
        return _part_with_topology(task) is None

    def score(self, state: Any, nodes: View) -> Scores:
        full = np.append(self._sums.fullness(state.request, self._weights), 1.0)  # the last: for nodes in no HyperNode of the tier
        values = np.zeros(len(self._tree.root.rows))
        for weight, numbers in self._tiers:
            values += weight * full[numbers]
        values /= self._total
        return values if nodes.rows is None else values[nodes.rows]


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
