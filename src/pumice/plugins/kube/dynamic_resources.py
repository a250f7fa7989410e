"""DynamicResources: a pod's device claims must be usable on its node: allocated for it, or with enough free devices there.

Three filters, since they look at different things: the claims themselves, claims that another pod's placing decided, and the devices
free on a row. Only the last asks row by row, and only rows on which something changed, unless devices are shared between nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from pumice.api.cel.syntax import CelError
from pumice.api.codec import encode
from pumice.engine.rules import Filter, Reach, Reason, Refused, Rejected
from pumice.engine.view import View
from pumice.model.cluster import Cluster
from pumice.model.resources import Mask
from pumice.model.task import Task
from pumice.plugins.kube.device_claims import ClaimsOfPod, claims_of, shareable_claims
from pumice.plugins.kube.device_requests import Unclear, wanted_by
from pumice.plugins.kube.node_affinity import selector_matches
from pumice.plugins.kube.standing.assumed_devices import AssumedDevices

ELSEWHERE = Reason("resourceclaim not available on the node")
NOT_ENOUGH = Reason("cannot allocate all claims")


def dynamic_resources(cluster: Cluster) -> list[Filter]:
    """All three, in their order."""
    return [AllocatedClaims(cluster), SharedClaims(cluster), FreeDevices(cluster)]


class _OfClaims(Filter):
    name = "DynamicResources"

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def key(self, task: Task) -> Hashable:
        """Claims made for a pod are alike if they ask for the same; others are themselves."""
        if not task.claims:
            return None
        claims, shareable = self.cluster.of("ResourceClaim"), shareable_claims(task)
        keys = (f"{task.namespace}/{name}" for _, name in task.claims)
        return tuple(key if key in shareable or _is_special(claims.get(key)) else encode(claims[key].spec) for key in keys)

    def _usable(self, task: Task) -> ClaimsOfPod | Reason:
        """The pod's claims, or why they can be used nowhere."""
        claims = claims_of(self.cluster, task)
        if not isinstance(claims, Reason):
            try:
                wanted_by(claims.waiting, self.cluster.of("DeviceClass"))
            except Unclear as unclear:
                return unclear.reason
        return claims


def _is_special(claim: Any) -> bool:
    return claim is None or claim.status.allocation is not None or bool(claim.metadata.deletion_timestamp)


class AllocatedClaims(_OfClaims):
    reach = Reach.STATIC

    def prepare(self, task: Task) -> Any:
        claims = self._usable(task)
        if isinstance(claims, Reason):
            return Rejected(claims)
        return [claim.status.allocation.node_selector for claim in claims.allocated.values() if claim.status.allocation] or None

    def refuse(self, selectors: Any, nodes: View) -> Sequence[Refused]:
        elsewhere = np.zeros(len(nodes.table), bool)
        for selector in selectors:
            if selector is not None:
                elsewhere |= ~selector_matches(selector, nodes.table)
        return [Refused(nodes.of(elsewhere), ELSEWHERE)]  # type: ignore[arg-type]


class SharedClaims(_OfClaims):
    """A claim that several pods use is allocated where the first of them went."""

    reach = Reach.CLUSTER

    def prepare(self, task: Task) -> Any:
        claims = self._usable(task)
        if isinstance(claims, Reason):
            return None
        return sorted(key for key in claims.waiting if key in claims.shareable) or None

    def refuse(self, keys: Any, nodes: View) -> Sequence[Refused]:
        assumed = AssumedDevices.of(self.cluster)
        elsewhere = np.zeros(len(nodes.table), bool)
        for key in keys:
            allotted = assumed.by_claim.get(key)
            if allotted is not None:
                elsewhere |= np.arange(len(elsewhere)) != nodes.table.rows.get(allotted.node, -1)
        return [Refused(nodes.of(elsewhere), ELSEWHERE)]  # type: ignore[arg-type]


class FreeDevices(_OfClaims):
    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        has_pools = bool(cluster.of("ResourceSlice")) and AssumedDevices.of(cluster).pools.are_shared
        self.reach = Reach.CLUSTER if has_pools else Reach.NODE

    def prepare(self, task: Task) -> Any:
        claims = self._usable(task)
        return None if isinstance(claims, Reason) or not claims.waiting else claims

    def refuse(self, claims: Any, nodes: View) -> Sequence[Refused]:
        assumed = AssumedDevices.of(self.cluster)
        undecided = {key: c for key, c in claims.waiting.items() if key not in claims.shareable or key not in assumed.by_claim}
        wanted = wanted_by(undecided, self.cluster.of("DeviceClass"))
        by_reason: dict[Reason, list[int]] = {}
        for position, row in enumerate(nodes.row_numbers.tolist()):
            try:
                reason = NOT_ENOUGH if assumed.try_on(row, wanted) is None else None
            except CelError as error:
                reason = Reason(str(error))
            if reason is not None:
                by_reason.setdefault(reason, []).append(position)
        return [Refused(_at(positions, nodes), reason) for reason, positions in by_reason.items()]


def _at(positions: list[int], nodes: View) -> Mask:
    where = nodes.nothing()
    where[positions] = True
    return where
