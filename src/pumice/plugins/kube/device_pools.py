"""The devices that drivers publish, and which of them a row can reach.

Of a pool only the newest generation counts, and only when all its slices are there. A pool is a node's own, or shared by several.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pumice.api.cel.syntax import CelError
from pumice.api.devices import Device, ResourceSlice
from pumice.model.cluster import Cluster
from pumice.plugins.kube.device_facts import Facts, facts_of, satisfies
from pumice.plugins.kube.device_requests import Asked
from pumice.plugins.kube.node_affinity import selector_matches

DeviceKey = tuple[str, str, str]  #: driver, pool, device


class Offered(NamedTuple):
    key: DeviceKey
    device: Device
    facts: Facts

    def attribute(self, name: str) -> Any:
        """None if it has no such attribute."""
        domain, slash, short = name.rpartition("/")
        return self.facts["device"]["attributes"][domain if slash else self.key[0]].get(short)


class Pools:
    """All usable devices of the cluster as it is when this is made."""

    def __init__(self, cluster: Cluster) -> None:
        self._own: dict[str, list[Offered]] = {}  #: by node name
        self._shared: list[tuple[ResourceSlice, list[Offered]]] = []
        self._suitable: dict[tuple[tuple[str, ...], int], list[Offered] | CelError] = {}
        self._verdicts: dict[tuple[tuple[str, ...], DeviceKey], bool] = {}
        self._table = cluster.nodes
        for piece in _current(cluster.of("ResourceSlice").values()):
            offered = [_offered(piece, device) for device in piece.spec.devices or ()]
            if piece.spec.node_name is not None:
                self._own.setdefault(piece.spec.node_name, []).extend(offered)
            else:
                self._shared.append((piece, offered))

    @property
    def are_shared(self) -> bool:
        """Whether what is used on one node may be missing on another."""
        return bool(self._shared)

    def suitable(self, asked: Asked, row: int) -> list[Offered]:
        """Devices that the row can reach and that suit. Raises CelError if a selector has no value for one of them."""
        found = self._suitable.get((asked.kind, row))
        if found is None:
            try:
                found = [offered for offered in self._on(row) if self._suits(asked, offered)]
            except CelError as error:
                found = error
            self._suitable[asked.kind, row] = found
        if isinstance(found, CelError):
            raise found
        return found

    def _on(self, row: int) -> Iterator[Offered]:
        yield from self._own.get(self._table.names[row], ())
        for piece, offered in self._shared:
            selector = piece.spec.node_selector
            if piece.spec.all_nodes or (selector is not None and selector_matches(selector, self._table)[row]):
                yield from offered

    def _suits(self, asked: Asked, offered: Offered) -> bool:
        verdict = self._verdicts.get((asked.kind, offered.key))
        if verdict is None:
            try:
                verdict = _large_enough(asked, offered) and all(satisfies(tree, offered.facts) for tree in asked.selectors)
            except CelError as error:
                raise CelError(f"request {asked.name}: selector on device {offered.key[2]}: {error}") from None
            self._verdicts[asked.kind, offered.key] = verdict
        return verdict


def _current(slices: Any) -> list[ResourceSlice]:
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for piece in slices:
        pools.setdefault((piece.spec.driver, piece.spec.pool.name), []).append(piece)
    found = []
    for pieces in pools.values():
        newest = max(piece.spec.pool.generation for piece in pieces)
        current = [piece for piece in pieces if piece.spec.pool.generation == newest]
        if len(current) >= current[0].spec.pool.resource_slice_count:
            found += current
    return found


def _offered(piece: ResourceSlice, device: Device) -> Offered:
    return Offered((piece.spec.driver, piece.spec.pool.name, device.name), device, facts_of(device, piece.spec.driver))


def _large_enough(asked: Asked, offered: Offered) -> bool:
    has = offered.device.capacity or {}
    return all(name in has and has[name].value.milli >= amount.milli for name, amount in asked.capacity.items())
