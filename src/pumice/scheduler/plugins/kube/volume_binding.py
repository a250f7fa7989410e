"""VolumeBinding: a pod's volumes must be usable on its node, both the bound ones and those that its waiting claims would get there.

There are two filters, since only waiting claims depend on what other pods get. Which volumes a placed pod gets is decided when it is
placed, by `AssumedVolumes`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pumice.api.problems import Path, Problems
from pumice.api.storage import PersistentVolumeClaim
from pumice.api.strict_decoding import Args
from pumice.scheduler.engine import Filter, Reach, Reason, Refused, Rejected, Scorer, Scores, View
from pumice.scheduler.framework.cluster_events import ClusterEvent, EventKind, always, unless_gone
from pumice.scheduler.model import Cluster, Mask, Task
from pumice.scheduler.plugins.kube import ClusterRule, KubePlugin
from pumice.scheduler.plugins.kube.indexes.assumed_volumes import Assumed, AssumedVolumes
from pumice.scheduler.plugins.kube.requested_to_capacity_ratio import RequestedToCapacityRatio, ShapePoint, check_shape
from pumice.scheduler.plugins.kube.storage_capacity import UsedStorage, room, roomy
from pumice.scheduler.plugins.kube.volume_matching import (
    NONE,
    ClaimUse,
    Ids,
    capacity_of,
    claim_of,
    class_name,
    had_claims,
    has_claims,
    is_bound,
    missing,
    pod_key,
    provisionable,
    reachable,
    selected_node,
    size_of,
    uses,
    uses_claim_or_room,
    volume_of,
    waits_for_pod,
)

CONFLICT = Reason("node(s) didn't match PersistentVolume's node affinity", final=True)
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
NOTHING_TO_BIND = Reason("node(s) didn't find available persistent volumes to bind", final=True)
NO_SPACE = Reason("node(s) did not have enough free storage", final=True)
IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


def _unusable(cluster: Cluster, task: Task, use: ClaimUse, claim: PersistentVolumeClaim | None) -> Reason | None:
    if claim is None:
        return missing(cluster, use)
    if claim.status.phase == "Lost":
        return Reason(
            f'persistentvolumeclaim "{use.name}" bound to non-existent persistentvolume "{claim.spec.volume_name or ""}"', final=True
        )
    if claim.metadata.deletion_timestamp:
        return Reason(f'persistentvolumeclaim "{use.name}" is being deleted', final=True)
    owner = claim.metadata.controller
    if use.made_for_pod and (owner is None or owner.uid != task.uid):
        return Reason(f"PVC {use.key} was not created for pod {task.key} (pod is not owner)", final=True)
    return None


class _OfClaims(ClusterRule, Filter):
    name = "VolumeBinding"
    reads_amounts = False
    reports_all = True
    key, tells_apart = staticmethod(pod_key), staticmethod(has_claims)


class BoundVolumes(_OfClaims):
    """Claims that make the pod unschedulable on every node, and claims that are bound to volumes which not all nodes can reach."""

    reach = Reach.STATIC

    def prepare(self, task: Task) -> Any:
        named = [(use, claim_of(self.cluster, use)) for use in uses(task)]
        for use, claim in named:
            if (reason := _unusable(self.cluster, task, use, claim)) is not None:
                return Rejected(reason)
        claims = [claim for _, claim in named if claim is not None]
        if any(not is_bound(claim) and not waits_for_pod(self.cluster, claim) for claim in claims):
            return Rejected(Reason(self.cluster.absent("StorageClass", IMMEDIATE), final=True))
        return [claim for claim in claims if is_bound(claim)] or None

    def refuse(self, claims: Any, nodes: View) -> Sequence[Refused]:
        table = nodes.table
        gone, conflict = np.zeros(len(table), bool), np.zeros(len(table), bool)
        for claim in claims:  # the first claim that refuses a node gives the reason
            volume = volume_of(self.cluster, claim)
            if volume is None:
                gone |= ~conflict
            else:
                conflict |= ~reachable(volume, table) & ~gone
        why_gone = Reason(self.cluster.absent("PersistentVolume", GONE), final=True)
        return [Refused(nodes.of(conflict), CONFLICT), Refused(nodes.of(gone), why_gone)]  # type: ignore[arg-type]


def _has_waiting_claims(cluster: Cluster, task: Task) -> bool:
    claims = (claim_of(cluster, use) for use in uses(task)) if has_claims(task.template) else ()
    return any(claim is not None and waits_for_pod(cluster, claim) for claim in claims)


class WaitingVolumes(_OfClaims):
    """Claims that are bound once their pod has a node: a free volume that matches must be reachable there, or one must be provisioned
    there."""

    reach = Reach.CLUSTER

    def prepare(self, task: Task) -> Any:
        return task if _has_waiting_claims(self.cluster, task) else None

    def refuse(self, task: Any, nodes: View) -> Sequence[Refused]:
        assumed = self.cluster.index(AssumedVolumes)
        nothing, full = np.zeros(len(nodes.table), bool), np.zeros(len(nodes.table), bool)
        for decided in assumed.of_pod(task):
            nothing |= ~self._reaches(decided)
        for claim, rows in self._to_be_made(task, assumed):
            if (node := selected_node(claim)) is not None:
                nothing |= ~self._is_node(node)
            undecided, can = rows & ~nothing & ~full, provisionable(self.cluster, claim)
            nothing |= undecided & ~can
            full |= undecided & can & ~roomy(self.cluster, claim)
        return [Refused(nodes.of(nothing), NOTHING_TO_BIND), Refused(nodes.of(full), NO_SPACE)]  # type: ignore[arg-type]

    def _to_be_made(self, task: Task, assumed: AssumedVolumes) -> list[tuple[PersistentVolumeClaim, Mask]]:
        """The claims whose volume must be provisioned, and on which rows, in the order in which they are checked."""
        everywhere = np.ones(len(self.cluster.nodes), bool)
        made, unmatched = [], []
        earlier: list[Ids] = []
        for use, claim in assumed.unassumed(task):
            if selected_node(claim) is not None:
                made.append((claim, everywhere))
                continue
            choice = assumed.matching(use.key, claim).choice(assumed.taken, earlier, len(everywhere))
            earlier.append(choice)
            unmatched.append((claim, choice == NONE))
        return made + unmatched

    def _reaches(self, decided: Assumed) -> Mask:
        """The rows that can use the volume which was decided when another pod was placed."""
        table = self.cluster.nodes
        volume = self.cluster.of("PersistentVolume").get(decided.volume)
        if volume is not None:
            return reachable(volume, table)
        return self._is_node(decided.node)

    def _is_node(self, name: str) -> Mask:
        table = self.cluster.nodes
        mask = np.zeros(len(table), bool)
        mask[[table.rows[name]] if name in table.rows else []] = True
        return mask


class StorageScorer(Scorer):
    """How much of its storage the waiting claims would use on a node, the less the better: of the volumes that match them, else of what
    drivers publish as free. Each class counts as much. Profiles have it with the gate StorageCapacityScoring, on from 1.37."""

    name = "VolumeBinding"
    reach = Reach.CLUSTER
    reads_amounts = False

    def __init__(self, cluster: Cluster, shape: Sequence[ShapePoint] | None) -> None:
        self.cluster = cluster
        points = [(point.utilization, point.score * 10) for point in shape or USUAL_SHAPE]
        self._rate = RequestedToCapacityRatio(points).rate

    key, tells_apart = staticmethod(pod_key), staticmethod(has_claims)

    def prepare(self, task: Task) -> Any:
        return task if _has_waiting_claims(self.cluster, task) else None

    def score(self, task: Any, nodes: View) -> Scores:
        assumed, everywhere = self.cluster.index(AssumedVolumes), len(nodes.table)
        matched, provisioned = UsedStorage(everywhere), UsedStorage(everywhere)
        volumes, earlier = list(self.cluster.of("PersistentVolume").values()), list[Ids]()
        for use, claim in assumed.unassumed(task):
            choice = np.full(everywhere, NONE)
            if selected_node(claim) is None:
                choice = assumed.matching(use.key, claim).choice(assumed.taken, earlier, everywhere)
                earlier.append(choice)
            for number in np.unique(choice[choice != NONE]):
                matched.add(volumes[number].spec.storage_class_name, choice == number, size_of(claim), capacity_of(volumes[number]))
            if (free := room(self.cluster, claim)) is not None:
                provisioned.set(class_name(claim), (choice == NONE) & ~np.isnan(free), size_of(claim), free)
        scores = np.where(matched.rows, matched.scores(self._rate), provisioned.scores(self._rate))
        return nodes.of(scores)  # type: ignore[return-value]


def _takes_larger(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """Whether storage takes larger volumes than before."""
    return event.new is not None and (event.old is None or event.new.largest > event.old.largest)


def _publishes_no_more(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """Whether a driver published capacities, and publishes none any more."""
    before, after = (each is not None and bool(each.spec.storage_capacity) for each in (event.old, event.new))
    return before and not after


def _reaches_elsewhere(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """Whether a class came, or makes its volumes for other nodes than before."""
    return event.new is not None and (event.old is None or event.old.allowed_topologies != event.new.allowed_topologies)


def _came(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    return event.old is None


USUAL_SHAPE = (ShapePoint(0, 10), ShapePoint(100, 0))


class VolumeBindingArgs(Args, frozen=True):
    bind_timeout_seconds: int = 600
    shape: list[ShapePoint] | None = None

    def check(self, path: Path, problems: Problems) -> None:
        if self.bind_timeout_seconds < 0:
            rule = "invalid BindTimeoutSeconds, should not be a negative value"
            problems.invalid((*path, "bindTimeoutSeconds"), self.bind_timeout_seconds, rule)
        if self.shape is not None:
            check_shape(self.shape, (*path, "shape"), problems)


#: A volume that was assumed and not yet bound is free again when its node is gone.
PLUGIN = KubePlugin(
    "VolumeBinding",
    "preFilter filter preScore score reserve preBind",
    args=VolumeBindingArgs,
    filters=lambda args, cluster: [BoundVolumes(cluster), WaitingVolumes(cluster)],
    scorer=lambda args, cluster: StorageScorer(cluster, args.shape),
    hints={
        EventKind.POD_GONE: had_claims,
        EventKind.VOLUME_CLAIM: uses_claim_or_room,
        EventKind.VOLUME: unless_gone,
        EventKind.STORAGE_CLASS: _reaches_elsewhere,
        EventKind.CSI_NODE: _came,
        EventKind.CSI_DRIVER: _publishes_no_more,
        EventKind.CAPACITY: _takes_larger,
        EventKind.NODE_ADDED: always,
        EventKind.NODE_REMOVED: always,
        EventKind.NODE_LABELS: always,
    },
)
