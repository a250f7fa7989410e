"""DynamicResources: a pod's device claims must be usable on its node: allocated for that node, or with enough free devices there.

There are three filters: for the claims themselves, for claims that were decided when another pod was placed, and for the devices that are
free on a row. Only the last one checks row by row, and only rows that changed, unless devices are shared between nodes. Where devices take
of their node's own resources (an alpha gate), one more compares that with what is free, and keeps such devices to one pod. The scorer
prefers nodes where earlier alternatives of a request can be allocated.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import field

from pumice.api.devices import AllocationResult, ResourceClaim
from pumice.api.kinds import NATIVE_POD_GROUP
from pumice.api.pod import ClaimCharge
from pumice.api.problems import Path, Problems, check_duration
from pumice.api.strict_decoding import Args
from pumice.api.structs import encode
from pumice.scheduler.engine import Filter, Reach, Reason, Refused, Rejected, Scorer, Scores, View
from pumice.scheduler.framework.cluster_events import ClusterEvent, EventKind, always, unless_gone
from pumice.scheduler.model import Cluster, Mask, Nodes, Task, Template
from pumice.scheduler.model.pod_request import is_pod_level
from pumice.scheduler.plugins.kube import ClusterRule, KubePlugin
from pumice.scheduler.plugins.kube.devices.allocation import Faulty, GivenUp, Pick
from pumice.scheduler.plugins.kube.devices.charges import ALONE, CHARGES, uncovered
from pumice.scheduler.plugins.kube.devices.claims import ClaimsOfPod, claims_of, named_claims, shareable_claims
from pumice.scheduler.plugins.kube.devices.extended_resources import special_key
from pumice.scheduler.plugins.kube.devices.pools import SKIPS, declaring
from pumice.scheduler.plugins.kube.devices.requests import ClaimedDevices, Failed, Unclear, wanted_by
from pumice.scheduler.plugins.kube.indexes.assumed_devices import ENOUGH, LACKING, UNKNOWN, AssumedDevices
from pumice.scheduler.plugins.kube.node_affinity import selector_matches
from pumice.scheduler.plugins.kube.node_resources_fit import insufficient
from pumice.scheduler.plugins.kube.resource_allocation import STORAGE

NAME = "DynamicResources"
ELSEWHERE = Reason("resourceclaim not available on the node", final=True)
NOT_ENOUGH = Reason("cannot allocate all claims", final=True)
TOO_LONG = Reason("timed out trying to allocate devices", final=True)
FAULTY = Reason("invalid resource pools were encountered", final=True)
ALTERNATIVES = 8  #: the most alternatives that a request may have


def dynamic_resources(cluster: Cluster) -> list[Filter]:
    """The filters, in the order in which their reasons take precedence."""
    charging: list[Filter] = [DeviceCharges(cluster)] if CHARGES in cluster.device_gates else []
    return [*charging, FreeDevices(cluster), AllocatedClaims(cluster), SharedClaims(cluster)]


def wants_devices(cluster: Cluster, task: Task) -> bool:
    """Whether the pod has device claims, or requests extended resources that device classes serve."""
    return bool(task.claims) or (bool(cluster.of("DeviceClass")) and bool(cluster.index(AssumedDevices).served(task)))


class _OfClaims(ClusterRule):
    name = NAME

    def key(self, task: Task) -> Hashable:
        """What tells the pod's claims apart: the spec of a claim that is made for the pod, the key of any other."""
        if not task.claims:
            return None
        claims, shareable = self.cluster.of("ResourceClaim"), shareable_claims(self.cluster, task)
        keys = (f"{task.namespace}/{name}" for _, name in named_claims(self.cluster, task))
        return tuple(key if key in shareable or _is_special(claims.get(key)) else encode(claims[key].spec) for key in keys)

    def tells_apart(self, template: Template) -> bool:
        return bool(template.spec.resource_claims)

    def usable(self, task: Task) -> ClaimsOfPod | Reason:
        """The pod's claims, or the reason why they are usable on no node."""
        claims = claims_of(self.cluster, task)
        if not isinstance(claims, Reason) and claims.waiting:
            try:
                wanted_by(claims.waiting, self.cluster.of("DeviceClass"))
            except Unclear as unclear:
                return unclear.reason
        return claims

    def waits(self, task: Task) -> ClaimsOfPod | None:
        """The pod's claims if devices are still to be allocated for it; else None."""
        claims = self.usable(task)
        if isinstance(claims, Reason):
            return None
        return claims if claims.waiting or wants_devices(self.cluster, task) else None

    def undecided(self, claims: ClaimsOfPod) -> dict[str, ResourceClaim]:
        """The waiting claims that were not decided when another pod was placed."""
        assumed = self.cluster.index(AssumedDevices)
        return {key: claim for key, claim in claims.waiting.items() if key not in claims.shareable or key not in assumed.by_claim}

    def wanted(self, claims: Mapping[str, ResourceClaim]) -> ClaimedDevices:
        return wanted_by(claims, self.cluster.of("DeviceClass"))

    def on(self, row: int, task: Task, undecided: ClaimedDevices) -> list[Pick] | None:
        """The devices of the row for the undecided requests; None if there are not enough. Raises Failed, GivenUp, Faulty."""
        assumed = self.cluster.index(AssumedDevices)
        special = assumed.special_on(task, row)
        if special is not None:
            more = wanted_by({special_key(task): special.claim}, self.cluster.of("DeviceClass"))
            undecided = ClaimedDevices(undecided.requests + more.requests, undecided.constraints)
        return assumed.try_on(row, undecided)

    def reach_of_devices(self) -> Reach:
        return Reach.CLUSTER if self.cluster.of("ResourceSlice") and self.cluster.index(AssumedDevices).pools.are_shared else Reach.NODE


def _is_special(claim: ResourceClaim | None) -> bool:
    return claim is None or claim.status.allocation is not None or bool(claim.metadata.deletion_timestamp)


class AllocatedClaims(_OfClaims, Filter):
    reach = Reach.STATIC
    reads_amounts = False

    def prepare(self, task: Task) -> Any:
        claims = self.usable(task)
        if isinstance(claims, Reason):
            return Rejected(claims)
        return [claim.status.allocation for claim in claims.allocated.values() if claim.status.allocation] or None

    def refuse(self, allocations: Any, nodes: View) -> Sequence[Refused]:
        elsewhere = np.zeros(len(nodes.table), bool)
        for allocation in allocations:
            elsewhere |= _out_of_reach(allocation, nodes.table)
        return [Refused(nodes.of(elsewhere), ELSEWHERE)]  # type: ignore[arg-type]


def _out_of_reach(allocation: AllocationResult, table: Nodes) -> Mask:
    """The nodes that cannot use the devices of a claim."""
    elsewhere = np.zeros(len(table), bool)
    if allocation.node_selector is not None:
        elsewhere |= ~selector_matches(allocation.node_selector, table)
    if any(result.skip_node_operations for result in allocation.devices.results or ()):
        elsewhere |= ~declaring(table)
    return elsewhere


class SharedClaims(_OfClaims, Filter):
    """Refuses nodes that cannot use the devices of a shared claim, which were decided when the first of its pods was placed."""

    reach = Reach.CLUSTER
    reads_amounts = False

    def prepare(self, task: Task) -> Any:
        claims = self.usable(task)
        if isinstance(claims, Reason):
            return None
        return sorted(key for key in claims.waiting if key in claims.shareable) or None

    def refuse(self, keys: Any, nodes: View) -> Sequence[Refused]:
        assumed = self.cluster.index(AssumedDevices)
        elsewhere = np.zeros(len(nodes.table), bool)
        refused = []
        for allotted in (assumed.by_claim[key] for key in keys if key in assumed.by_claim):
            elsewhere |= _out_of_reach(allotted.as_result, nodes.table)
            if SKIPS in self.cluster.device_gates and any(pick.offered.skips for pick in allotted.picks):
                reason = Reason(f"resource claim {allotted.claim} allocation requires {SKIPS} feature on the node", final=True)
                refused.append(Refused(nodes.of(~declaring(nodes.table)), reason))  # type: ignore[arg-type]
        return [*refused, Refused(nodes.of(elsewhere), ELSEWHERE)]  # type: ignore[arg-type]


class FreeDevices(_OfClaims, Filter):
    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.reach = self.reach_of_devices()

    def prepare(self, task: Task) -> Any:
        claims = self.waits(task)
        return None if claims is None else (task, claims)

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        task, claims = state
        undecided = self.undecided(claims)
        wanted, assumed, rows = self.wanted(undecided), self.cluster.index(AssumedDevices), nodes.row_numbers
        by_row = assumed.served(task)  #: which resources devices serve differs from row to row
        known = np.full(len(nodes.table), UNKNOWN) if by_row else assumed.verdicts(undecided.values())
        unclear: dict[Reason, list[int]] = {}
        for row in rows[known[rows] == UNKNOWN].tolist():
            reason = self._refusal(row, task, wanted)
            if reason is None or reason is NOT_ENOUGH:
                known[row] = ENOUGH if reason is None else LACKING
            else:
                unclear.setdefault(reason, []).append(row)
        return [Refused(known[rows] == LACKING, NOT_ENOUGH), *(Refused(np.isin(rows, where), reason) for reason, where in unclear.items())]

    def _refusal(self, row: int, task: Task, wanted: ClaimedDevices) -> Reason | None:
        try:
            return NOT_ENOUGH if self.on(row, task, wanted) is None else None
        except Failed as error:
            return Reason(str(error), final=True, fails=True)
        except GivenUp:
            return TOO_LONG
        except Faulty:
            return FAULTY


class DeviceCharges(_OfClaims, Filter):
    """Compares what the pod requests, and what its devices take of the node's own resources besides, with what is free; and refuses a claim
    that another pod has, if one of its devices is a part of such resources. It leaves nodes with too few devices to FreeDevices."""

    reach = Reach.CLUSTER
    reports_all = True

    def prepare(self, task: Task) -> Any:
        claims = self.usable(task)
        return None if isinstance(claims, Reason) or not task.claims else (task, claims)

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        (task, claims), rows = state, nodes.row_numbers
        undecided, kinds, refused = self.wanted(self.undecided(claims)), dict[Template, list[int]](), dict[Reason, list[int]]()
        taken = self._taken(task, claims, nodes.table)
        for row in rows.tolist():
            reason = next((reason for where, reason in taken if where[row]), None)
            try:
                charges = [] if reason is not None else self._charges(row, task, undecided)
            except Failed as error:
                reason, charges = Reason(str(error), final=True, fails=True), []
            if reason is None and (text := uncovered(task.template.spec, charges)):
                reason = Reason(text, final=True)
            if reason is not None:
                refused.setdefault(reason, []).append(row)
            elif charges:
                kinds.setdefault(self.cluster.with_charges(task.template, charges), []).append(row)
        found = [Refused(np.isin(rows, where), reason) for reason, where in refused.items()]
        return found + [each for template, where in kinds.items() for each in _short(template, nodes, np.isin(rows, where))]

    def _charges(self, row: int, task: Task, undecided: ClaimedDevices) -> list[ClaimCharge]:
        """What the pod's devices take of the row; nothing if there are too few. Raises Failed."""
        try:
            picks = self.on(row, task, undecided)
        except (GivenUp, Faulty):
            picks = None
        return [] if picks is None else self.cluster.index(AssumedDevices).charges_on(row, task, picks)

    def _taken(self, task: Task, claims: ClaimsOfPod, table: Nodes) -> list[tuple[Mask, Reason]]:
        """The claims that others have, as reasons, and where the pod could use them."""
        group = self.cluster.of(NATIVE_POD_GROUP).get(task.group) if self.cluster.shares_claims else None
        users = {task.uid, *([group.metadata.identity] if group is not None else [])}
        assumed, found = self.cluster.index(AssumedDevices), []
        for key, claim in (claims.allocated | claims.waiting).items():
            if assumed.is_taken(key, users):
                allocation = claim.status.allocation or assumed.by_claim[key].as_result
                found.append((~_out_of_reach(allocation, table), Reason(ALONE.format(claim.metadata.name), final=True)))
        return found


def _short(template: Template, nodes: View, where: Mask) -> Iterator[Refused]:
    """The nodes, of some, that have too little of their own resources."""
    for column, amount in template.needs:
        name = nodes.table.dimensions.names[column]
        if name == STORAGE or is_pod_level(name):
            short = where & (nodes.idle[column] < amount)
            never = short & (amount > nodes.allocatable[column])
            yield Refused(never, insufficient(name, final=True))
            yield Refused(short & ~never, insufficient(name))


class EarlierAlternatives(_OfClaims, Scorer):
    """Prefers nodes where requests get earlier alternatives."""

    normalizes = True

    def __init__(self, cluster: Cluster, weight: float = 2) -> None:
        super().__init__(cluster)
        self.weight = weight
        self.reach = self.reach_of_devices()

    def prepare(self, task: Task) -> Any:
        claims = self.waits(task)
        if claims is None or not wanted_by(claims.waiting, self.cluster.of("DeviceClass")).offers_alternatives:
            return None
        return task, claims

    def score(self, state: Any, nodes: View) -> Scores:
        task, claims = state
        wanted = self.wanted(self.undecided(claims))
        return np.array([self._score(row, task, wanted) for row in nodes.row_numbers.tolist()], float)

    def _score(self, row: int, task: Task, undecided: ClaimedDevices) -> float:
        try:
            picks = self.on(row, task, undecided) or ()
        except (Failed, GivenUp, Faulty):
            return 0.0
        chosen = {pick.asked.key: pick.asked.alternative for pick in picks}
        return float(sum(ALTERNATIVES - number for number in chosen.values() if number is not None))


class DynamicResourcesArgs(Args, frozen=True):
    filter_timeout: str | None = field(name="filterTimeout", default=None)
    binding_timeout: str | None = field(name="bindingTimeout", default=None)

    def check(self, path: Path, problems: Problems) -> None:
        check_duration(self.filter_timeout, 0.0, (*path, "filterTimeout"), "must be non-negative", problems)
        check_duration(self.binding_timeout, 1.0, (*path, "bindingTimeout"), "must be at least 1 second", problems)


def _claim_may_help(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """Whether a claim that is gone had devices; or all claims of the pod are there, and the one that changed is one of them or frees its
    devices."""
    old, new = event.old, event.new
    held = old.status.allocation if old is not None else None
    if new is None:
        return held is not None
    keys = [f"{task.namespace}/{name}" for _, name in named_claims(cluster, task)]
    if not all(key in cluster.of("ResourceClaim") for key in keys):
        return False
    frees = held is not None and new.status.allocation != held
    return frees or (event.key in keys and (old is None or (old.spec, old.status) != (new.spec, new.status)))


#: Devices that were assumed and not yet written are free again when their pod's node is gone.
PLUGIN = KubePlugin(
    "DynamicResources",
    "preEnqueue preFilter filter postFilter score reserve preBind podGroupPostFilter",
    weight=2,
    args=DynamicResourcesArgs,
    filters=lambda args, cluster: dynamic_resources(cluster),
    scorer=lambda args, cluster: EarlierAlternatives(cluster),
    hints={
        EventKind.DEVICE_CLAIM: _claim_may_help,
        EventKind.SLICE: unless_gone,
        EventKind.DEVICE_CLASS: unless_gone,
        EventKind.DEVICE_TAINTS: always,
        EventKind.POD_GONE: always,
        EventKind.NODE_ADDED: always,
        EventKind.NODE_REMOVED: always,
        EventKind.NODE_LABELS: always,
        EventKind.NODE_ALLOCATABLE: always,
        EventKind.OWN_CLAIMS: always,
    },
)
