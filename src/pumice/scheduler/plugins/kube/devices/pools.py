"""The devices that drivers publish: and which of them a row can reach.

Of a pool only the newest generation counts, and only when all its slices are there. A slice belongs to a node, or says which nodes reach it
or each of its devices. Pools, and the slices of a pool, are searched in the order of their names; pools whose devices have binding
conditions come last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from pumice.api.core import Node
from pumice.api.devices import Device, DeviceCounter, DeviceTaintRule, ResourceSlice
from pumice.api.pod import NodeSelector
from pumice.api.structs import encode
from pumice.scheduler.framework.feature_gates import ALLOCATOR
from pumice.scheduler.model import Cluster, Mask, Nodes
from pumice.scheduler.plugins.kube.devices.requests import RequestedDevices
from pumice.scheduler.plugins.kube.devices.taints import taints_by_rules
from pumice.scheduler.plugins.kube.node_affinity import selector_matches

if TYPE_CHECKING:
    from pumice.api.cel.cost import CostBudget
    from pumice.scheduler.plugins.kube.devices.device_attributes import Facts

SKIPS = "DRAOptionalNodeOperations"  #: a gate, and the feature that kubelets with it declare
DeviceKey = tuple[str, str, str]  #: driver, pool, device
Counters = Mapping[tuple[str, str], int]  #: by counter set and counter, in milli-units


class Offered(Struct, frozen=True):
    """A device as its slice publishes it, with all its taints."""

    key: DeviceKey
    device: Device
    facts: Facts
    twin: bytes  #: equal for devices that differ only in their names
    piece: ResourceSlice
    rows: Mask | None  #: the rows that reach it; None for all rows of the slice

    def attribute(self, name: str) -> Any:
        """The device's attribute of this name. None if it has no such attribute."""
        domain, slash, short = name.rpartition("/")
        return self.facts["device"]["attributes"][domain if slash else self.key[0]].get(short)

    @property
    def shared(self) -> bool:
        return bool(self.device.allow_multiple_allocations)

    @property
    def skips(self) -> bool:
        """Whether kubelets leave something out for it."""
        return bool(self.piece.spec.skip_node_operations)

    @property
    def groups(self) -> Mapping[str, frozenset[str]]:
        """By counter set that the device consumes: the groups with which it can share the set."""
        return {each.counter_set: frozenset(each.compatibility_groups or ()) for each in self.device.consumes_counters or ()}

    @property
    def consumes(self) -> Counters:
        return _counted((each.counter_set, each.counters) for each in self.device.consumes_counters or ())


class DevicePool(Struct, frozen=True):
    """The part of a pool that a row can reach. A pool that is incomplete or invalid offers no devices."""

    name: str
    offered: Sequence[Offered] = ()
    others: Sequence[Offered] = ()  #: devices of the pool that the row cannot reach
    counters: Counters = {}
    incomplete: bool = False
    invalid: bool = False


class _Piece(Struct, frozen=True):
    slice: ResourceSlice
    rows: Mask | None  #: None for a slice that belongs to a node
    offered: tuple[Offered, ...]

    def is_for(self, row: int) -> bool:
        return self.rows is None or bool(self.rows[row])

    def is_on(self, row: int, name: str) -> bool:
        return self.slice.spec.node_name == name if self.rows is None else bool(self.rows[row])


class DevicePools:
    """All pools of the cluster, as they are when this object is made."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._table = cluster.nodes
        self._own: dict[str, list[_Piece]] = {}  #: by node name
        self._shared: list[_Piece] = []
        self._all: dict[tuple[str, str], list[_Piece]] = {}
        self._reached: dict[int, list[DevicePool]] = {}  #: by row
        self._offered: dict[int, list[tuple[DevicePool, Offered]]] = {}  #: by row
        self._verdicts: dict[tuple[tuple[str, ...], bytes], bool] = {}
        self._budgets: dict[tuple[str, ...], CostBudget] = {}  #: what selectors may cost over all devices, so that no claim delays others
        rules = list(cluster.of("DeviceTaintRule").values())
        self._values: dict[tuple[str, bytes], Any] = {}  #: of derived attributes
        gates = cluster.device_gates
        self.compares_groups, self.derives = "DRADeviceCompatibilityGroups" in gates, "DRADerivedAttributes" in gates
        self.lists, self.fractions = "DRAListTypeAttributes" in gates, "DRAFractionalCapacityRange" in gates
        self.newer = cluster.newer  #: by the rules of 1.37
        self._device_count = 0
        for _, published in sorted(cluster.of("ResourceSlice").items()):
            self._device_count += len(published.spec.devices or ())
            if not self.compares_groups and _has_groups(published):
                continue  # its pool is incomplete
            piece = _piece(published, self._table, rules, self)
            spec = published.spec
            self._all.setdefault((spec.driver, spec.pool.name), []).append(piece)
            (self._shared if piece.rows is not None else self._own.setdefault(spec.node_name or "", [])).append(piece)

    @cached_property
    def _by_key(self) -> dict[DeviceKey, list[tuple[_Piece, Offered]]]:
        found: dict[DeviceKey, list[tuple[_Piece, Offered]]] = {}
        for pieces in self._all.values():
            for piece in pieces:
                for offered in piece.offered:
                    found.setdefault(offered.key, []).append((piece, offered))
        return found

    @cached_property
    def charge(self) -> bool:
        """Whether any device takes of its node's own resources."""
        return any(offered.device.node_allocatable_resources for published in self._by_key.values() for _, offered in published)

    def device(self, key: DeviceKey, row: int | None = None) -> Device | None:
        """A device that is published, and is there for the row. None if there is none."""
        for piece, offered in self._by_key.get(key, ()):
            if row is None or (piece.is_on(row, self._table.names[row]) and (offered.rows is None or offered.rows[row])):
                return offered.device
        return None

    @cached_property
    def are_shared(self) -> bool:
        """Whether devices, or counters, that one node uses may be missing on another."""
        owners = ({piece.slice.spec.node_name for piece in pieces} for pieces in self._all.values())
        return any(len(names) > 1 or not all(names) for names in owners)

    def reached_from(self, row: int) -> list[DevicePool]:
        if row not in self._reached:
            self._reached[row] = self._gathered(row)
        return self._reached[row]

    def offered_to(self, row: int) -> list[tuple[DevicePool, Offered]]:
        """All devices that the row can reach, in the order of the search."""
        if row not in self._offered:
            self._offered[row] = [(pool, each) for pool in self.reached_from(row) for each in pool.offered]
        return self._offered[row]

    def suits(self, asked: RequestedDevices, offered: Offered, row: int) -> bool:
        """Whether the request's selectors admit a device and the row reaches it. Raises Failed if a selector has no value."""
        verdict = self._verdicts.get((asked.kind, offered.twin))
        if verdict is None:
            from pumice.scheduler.plugins.kube.devices.device_attributes import admits, budget_for

            budget = self._budgets.setdefault(asked.kind, budget_for(self._device_count))
            named = "/".join(offered.key) if self.newer else ""
            verdict = all(admits(selector, offered.facts, budget, named) for selector in asked.selectors)
            self._verdicts[asked.kind, offered.twin] = verdict
        return verdict and (offered.rows is None or bool(offered.rows[row]))

    def serves(self, offered: Offered, row: int) -> bool:
        """Whether the row's kubelet can leave out for a device what its slice says. Without gates of alpha nobody asks."""
        gates = self._cluster.device_gates
        return not (gates & ALLOCATOR and offered.skips) or (SKIPS in gates and _declares(self._table.wire[row]))

    def attribute(self, asked: RequestedDevices, offered: Offered, name: str) -> Any:
        """The value of a device's attribute, or what the request derives in its place. None if there is none. Raises Failed."""
        expression = asked.derived.get(name)
        if expression is None:
            return offered.attribute(name)
        key = expression, offered.twin
        if key not in self._values:
            from pumice.scheduler.plugins.kube.devices.device_attributes import budget_for, derived

            budget = self._budgets.setdefault((expression,), budget_for(self._device_count))
            self._values[key] = derived(name, expression, offered.facts, budget, "/".join(offered.key))
        return self._values[key]

    def _gathered(self, row: int) -> list[DevicePool]:
        targeting: dict[tuple[str, str], list[_Piece]] = {}
        for piece in (*self._own.get(self._table.names[row], ()), *(piece for piece in self._shared if piece.is_for(row))):
            spec = piece.slice.spec
            targeting.setdefault((spec.driver, spec.pool.name), []).append(piece)
        found = [pool for key in sorted(targeting) if (pool := self._pool(key, targeting[key])) is not None]
        return sorted(found, key=lambda pool: any(offered.device.binding_conditions for offered in pool.offered))

    def _pool(self, key: tuple[str, str], targeting: list[_Piece]) -> DevicePool | None:
        """The pool in its newest generation; None if it is being replaced by a generation that has nothing for the row."""
        newest = max(piece.slice.spec.pool.generation for piece in targeting)
        here = sorted((p for p in targeting if p.slice.spec.pool.generation == newest), key=lambda p: p.slice.metadata.name)
        everywhere, wanted = here, here[0].slice.spec.pool.resource_slice_count
        if len(here) != wanted:
            if any(piece.slice.spec.pool.generation > newest for piece in self._all[key]):
                return None
            everywhere = [piece for piece in self._all[key] if piece.slice.spec.pool.generation == newest]
        name = "/".join(key)
        if len(everywhere) != wanted:
            return DevicePool(name, incomplete=True)
        return _valid(name, here, everywhere) or DevicePool(name, invalid=True)


def _valid(name: str, here: list[_Piece], everywhere: list[_Piece]) -> DevicePool | None:
    """The pool; None if two devices or counter sets have the same name, or a device consumes counters that do not exist."""
    offered = [each for piece in here for each in piece.offered]
    sets = [one for piece in everywhere for one in piece.slice.spec.shared_counters or ()]
    counters = _counted((one.name, one.counters) for one in sets)
    others = [each for piece in everywhere if piece not in here for each in piece.offered]
    doubled = len({each.key for each in offered}) < len(offered) or len({one.name for one in sets}) < len(sets)
    if doubled or any(each.consumes.keys() - counters.keys() for each in (*offered, *others)):
        return None
    return DevicePool(name, offered, others, counters)


def declaring(table: Nodes) -> Mask:
    """The nodes whose kubelets can leave out operations for devices."""
    return np.array([_declares(node) for node in table.wire], bool)


def _declares(node: Node) -> bool:
    return SKIPS in (node.status.declared_features or ())


def _counted(sets: Iterable[tuple[str, Mapping[str, DeviceCounter] | None]]) -> Counters:
    return {(name, counter): each.value.milli for name, counters in sets for counter, each in (counters or {}).items()}


def _has_groups(published: ResourceSlice) -> bool:
    consumed = (each for device in published.spec.devices or () for each in device.consumes_counters or ())
    return any(each.compatibility_groups for each in consumed)


def _piece(published: ResourceSlice, table: Nodes, rules: Sequence[DeviceTaintRule], pools: DevicePools) -> _Piece:
    spec, lists = published.spec, pools.lists
    per_device = bool(spec.per_device_node_selection)
    offered = tuple(
        _offered(
            published, device, rules, _rows(device.node_name, device.all_nodes, device.node_selector, table) if per_device else None, lists
        )
        for device in spec.devices or ()
    )
    if spec.shared_counters and not pools.newer:
        return _Piece(published, table.alive, offered)  # for all nodes, whatever the slice says
    if spec.node_name:
        return _Piece(published, None, offered)
    if per_device:
        reached = np.zeros(len(table), bool)
        for each in offered:
            reached |= each.rows
        return _Piece(published, reached, offered)
    return _Piece(published, _rows(None, spec.all_nodes, spec.node_selector, table), offered)


def _offered(published: ResourceSlice, device: Device, rules: Sequence[DeviceTaintRule], rows: Mask | None, lists: bool) -> Offered:
    from pumice.scheduler.plugins.kube.devices.device_attributes import facts_of  # importing CEL takes 0.1 s; most clusters have no devices

    driver, pool = published.spec.driver, published.spec.pool.name
    more = taints_by_rules(rules, driver, pool, device.name)
    if more:
        device = replace(device, taints=[*(device.taints or ()), *more])
    twin = encode(((driver, pool, published.metadata.name), replace(device, name="")))
    return Offered((driver, pool, device.name), device, facts_of(device, driver, lists=lists), twin, published, rows)


def _rows(name: str | None, everywhere: bool | None, selector: NodeSelector | None, table: Nodes) -> Mask:
    if name:
        return np.array([table.names[row] == name for row in range(len(table))], bool) & table.alive
    if everywhere:
        return table.alive
    return selector_matches(selector, table) if selector is not None else np.zeros(len(table), bool)
