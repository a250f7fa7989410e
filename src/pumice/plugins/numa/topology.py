"""Where a node's CPUs are, and which of the free ones to take: whole sockets, then whole cores, then what breaks up least."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pumice.api.integers import integer
from pumice.api.volcano import CpuInfo

Cpus = frozenset[int]
NO_CPUS: Cpus = frozenset()
MOST_NUMA_NODES = 1024  #: as many as Linux knows


class Topology:
    """CPU number to its NUMA node, socket and core."""

    def __init__(self, cpus: Mapping[str, CpuInfo]) -> None:
        places = {number: place for cpu, place in cpus.items() if (number := integer(cpu, -1)) >= 0 and 0 <= place.numa < MOST_NUMA_NODES}
        self.cpus: Cpus = frozenset(places)
        self._socket = {cpu: place.socket for cpu, place in places.items()}
        self._core = {cpu: (place.socket, place.core) for cpu, place in places.items()}
        self._numa = {cpu: place.numa for cpu, place in places.items()}
        self._per_socket = len(places) // max(1, len(set(self._socket.values())))
        self._per_core = len(places) // max(1, len(set(self._core.values())))
        self.numa_nodes = sorted(set(self._numa.values()))
        self.all_nodes = sum(1 << node for node in self.numa_nodes)  #: as a bit mask

    def within(self, cpus: Cpus, mask: int) -> Cpus:
        """Those on NUMA nodes of the mask."""
        return frozenset(cpu for cpu in cpus if cpu in self._numa and mask >> self._numa[cpu] & 1)

    def per_node(self, cpus: Iterable[int]) -> Counter[int]:
        """How many are on each NUMA node."""
        return Counter(self._numa[cpu] for cpu in cpus if cpu in self._numa)

    def take(self, free: Cpus, number: int) -> Cpus | None:
        """So many of the free ones; None if there are not enough."""
        left = free & self.cpus
        if number > len(left):
            return None
        taken: set[int] = set()
        for socket in self._whole(left, self._socket, self._per_socket):
            if number - len(taken) >= self._per_socket:
                taken |= socket
        for core in self._cores(left - taken):
            if number - len(taken) >= self._per_core:
                taken |= core
        rest = self._scattered(left - taken, taken)
        return frozenset(taken | set(rest[: number - len(taken)]))

    def _cores(self, free: Cpus) -> list[set[int]]:
        """Free ones; first those of sockets that have few."""
        cores = self._whole(free, self._core, self._per_core)
        count = Counter(self._socket[min(core)] for core in cores)
        return sorted(cores, key=lambda core: (count[self._socket[min(core)]], self._core[min(core)]))

    @staticmethod
    def _whole(free: Cpus, part_of: Mapping[int, Any], size: int) -> list[set[int]]:
        """Parts of which all CPUs are free, in order."""
        parts: dict[Any, set[int]] = {}
        for cpu in free:
            parts.setdefault(part_of[cpu], set()).add(cpu)
        return [parts[name] for name in sorted(parts) if len(parts[name]) == size]

    def _scattered(self, free: Cpus, taken: set[int]) -> list[int]:
        """Single ones: near those taken, then where least is free."""
        near = Counter(self._socket[cpu] for cpu in taken)
        in_socket, in_core = Counter(self._socket[cpu] for cpu in free), Counter(self._core[cpu] for cpu in free)

        def rank(cpu: int) -> tuple[int, int, int, tuple[int, int], int]:
            socket, core = self._socket[cpu], self._core[cpu]
            return -near[socket], in_socket[socket], in_core[core], core, cpu

        return sorted(free, key=rank)
