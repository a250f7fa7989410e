"""VolumeBinding: a pod's volumes must be usable on its node. Those it has already, and those that its waiting claims are to get there.

The two halves are filters of their own, since only the second depends on what other pods get. What a placed pod is to get is
decided by `standing.assumed_volumes`, when it is placed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from pumice.api.core import PersistentVolumeClaim
from pumice.engine.rules import Filter, Reach, Reason, Refused, Rejected
from pumice.engine.view import View
from pumice.model.cluster import Cluster
from pumice.model.lacking import absent
from pumice.model.resources import Mask
from pumice.model.task import Task
from pumice.plugins.kube.claims import Use, claim_of, has_claims, is_bound, missing, pod_key, uses, volume_of, waits_for_pod
from pumice.plugins.kube.standing.assumed_volumes import Assumed, AssumedVolumes
from pumice.plugins.kube.volume_capacity import roomy
from pumice.plugins.kube.volume_matching import NONE, Ids, provisionable, reachable

CONFLICT = Reason("node(s) didn't match PersistentVolume's node affinity", final=True)
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
NOTHING_TO_BIND = Reason("node(s) didn't find available persistent volumes to bind", final=True)
NO_SPACE = Reason("node(s) did not have enough free storage", final=True)
IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


def _unusable(cluster: Cluster, use: Use, claim: PersistentVolumeClaim | None) -> Reason | None:
    if claim is None:
        return missing(cluster, use)
    if claim.status.phase == "Lost":
        return Reason(f'persistentvolumeclaim "{use.name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"', final=True)
    if claim.metadata.deletion_timestamp:
        return Reason(f'persistentvolumeclaim "{use.name}" is being deleted', final=True)
    return None


class BoundVolumes(Filter):
    """The claims as they are: in the way of any node, or bound to a volume that not all nodes can reach."""

    name = "VolumeBinding"
    reach = Reach.STATIC

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def key(self, task: Task) -> Hashable:
        return pod_key(task)

    def prepare(self, task: Task) -> Any:
        named = [(use, claim_of(self.cluster, use)) for use in uses(task)]
        for use, claim in named:
            if (reason := _unusable(self.cluster, use, claim)) is not None:
                return Rejected(reason)
        claims = [claim for _, claim in named if claim is not None]
        if any(not is_bound(claim) and not waits_for_pod(self.cluster, claim) for claim in claims):
            return Rejected(Reason(absent(self.cluster, "StorageClass", IMMEDIATE), final=True))
        return [claim for claim in claims if is_bound(claim)] or None

    def refuse(self, claims: Any, nodes: View) -> Sequence[Refused]:
        table = nodes.table
        gone, conflict = np.zeros(len(table), bool), np.zeros(len(table), bool)
        for claim in claims:
            volume = volume_of(self.cluster, claim)
            if volume is None:
                gone |= True
            else:
                conflict |= ~reachable(volume, table)
        why_gone = Reason(absent(self.cluster, "PersistentVolume", GONE), final=True)
        return [Refused(nodes.of(conflict & ~gone), CONFLICT), Refused(nodes.of(gone), why_gone)]  # type: ignore[arg-type]


class WaitingVolumes(Filter):
    """Claims that wait for their pod's node: a free volume that suits must be reachable there, or one be made there."""

    name = "VolumeBinding"
    reach = Reach.CLUSTER

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def key(self, task: Task) -> Hashable:
        return pod_key(task)

    def prepare(self, task: Task) -> Any:
        cluster = self.cluster
        if not has_claims(task.template):
            return None
        keys = [use.key for use in uses(task) if (c := claim_of(cluster, use)) is not None and waits_for_pod(cluster, c)]
        return task if keys else None

    def refuse(self, task: Any, nodes: View) -> Sequence[Refused]:
        assumed = AssumedVolumes.of(self.cluster)
        fine = np.ones(len(nodes.table), bool)
        full = np.zeros(len(nodes.table), bool)
        for decided in assumed.of_pod(task):
            fine &= self._reaches(decided)
        earlier: list[Ids] = []
        for use, claim in assumed.unassumed(task):
            choice = assumed.matching(use.key, claim).choice(assumed.taken, earlier, len(fine))
            earlier.append(choice)
            fine &= (choice != NONE) | provisionable(self.cluster, claim)
            full |= (choice == NONE) & ~roomy(self.cluster, claim)
        return [Refused(nodes.of(~fine), NOTHING_TO_BIND), Refused(nodes.of(fine & full), NO_SPACE)]  # type: ignore[arg-type]

    def _reaches(self, decided: Assumed) -> Mask:
        """Rows that can use what another pod's placing decided."""
        table = self.cluster.nodes
        volume = self.cluster.of("PersistentVolume").get(decided.volume)
        if volume is not None:
            return reachable(volume, table)
        mask = np.zeros(len(table), bool)
        mask[[table.rows[decided.node]] if decided.node in table.rows else []] = True
        return mask
