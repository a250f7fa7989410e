"""The kubelet's topology manager: which NUMA nodes a container's CPUs come from, and whether the policy admits that.

A hint is a set of NUMA nodes, as a bit mask, and a flag whether it is as small as on an empty machine (preferred). Only the CPU manager
gives hints, so the best one is found at once: of 32 NUMA nodes there are too many sets to look at each.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from pumice.api.integers import integer
from pumice.api.volcano import CpuInfo

Cpus = frozenset[int]
NO_CPUS: Cpus = frozenset()
MOST_NUMA_NODES = 1024  #: the most that Linux supports


class NumaTopology:
    """The NUMA node, socket and core of each CPU, by the CPU's number."""

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
        """Those of the CPUs that are on NUMA nodes of the mask."""
        return frozenset(cpu for cpu in cpus if cpu in self._numa and mask >> self._numa[cpu] & 1)

    def per_node(self, cpus: Iterable[int]) -> Counter[int]:
        return Counter(self._numa[cpu] for cpu in cpus if cpu in self._numa)

    def take(self, free: Cpus, number: int) -> Cpus | None:
        """The free CPUs to take, `number` of them; None if there are not enough."""
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
        """The cores of which all CPUs are free; cores of sockets that have few such cores come first."""
        cores = self._whole(free, self._core, self._per_core)
        count = Counter(self._socket[min(core)] for core in cores)
        return sorted(cores, key=lambda core: (count[self._socket[min(core)]], self._core[min(core)]))

    @staticmethod
    def _whole(free: Cpus, part_of: Mapping[int, Any], size: int) -> list[set[int]]:
        """The parts (sockets or cores) of which all CPUs are free, in order."""
        parts: dict[Any, set[int]] = {}
        for cpu in free:
            parts.setdefault(part_of[cpu], set()).add(cpu)
        return [parts[name] for name in sorted(parts) if len(parts[name]) == size]

    def _scattered(self, free: Cpus, taken: set[int]) -> list[int]:
        """The free CPUs in the order in which single CPUs are taken: near CPUs already taken, then where the fewest CPUs are free."""
        near = Counter(self._socket[cpu] for cpu in taken)
        in_socket, in_core = Counter(self._socket[cpu] for cpu in free), Counter(self._core[cpu] for cpu in free)

        def rank(cpu: int) -> tuple[int, int, int, tuple[int, int], int]:
            socket, core = self._socket[cpu], self._core[cpu]
            return -near[socket], in_socket[socket], in_core[core], core, cpu

        return sorted(free, key=rank)


NONE, BEST_EFFORT, SINGLE_NODE = "none", "best-effort", "single-numa-node"


class Hint(NamedTuple):
    mask: int
    preferred: bool


def best_hint(topology: NumaTopology, free: Cpus, request: int) -> Hint:
    """The fewest NUMA nodes that have enough free CPUs, of as many nodes those with the lowest numbers; all of them if there are not
    enough, or if no CPUs are requested."""
    if not request:
        return Hint(topology.all_nodes, bool(topology.all_nodes))
    idle = topology.per_node(free)
    size = _fewest(idle, request)
    if not size:
        return Hint(topology.all_nodes, False)
    chosen: list[int] = []
    for position in range(len(topology.numa_nodes) - 1, -1, -1):
        lower = sorted((idle[node] for node in topology.numa_nodes[:position]), reverse=True)[: size - len(chosen)]
        if len(chosen) + len(lower) < size or sum(lower) + sum(idle[node] for node in chosen) < request:
            chosen.append(topology.numa_nodes[position])
    return Hint(sum(1 << node for node in chosen), size == _fewest(topology.per_node(topology.cpus), request))


def _fewest(counts: Mapping[int, int], request: int) -> int:
    """How many NUMA nodes are needed for so many CPUs, by how many each has; 0 if all are too few."""
    sums = accumulate(sorted(counts.values(), reverse=True))
    return next((size for size, total in enumerate(sums, 1) if total >= request), 0)


def assign(topology: NumaTopology, free: Cpus, requests: Sequence[int], policy: str) -> Cpus | None:
    """CPUs for containers with these requests, one after the other; None if the policy does not admit one of them."""
    given: Cpus = NO_CPUS
    for request in requests:
        left = free - given
        hint = best_hint(topology, left, request)
        if not hint.preferred and policy != BEST_EFFORT:
            return None
        if policy == SINGLE_NODE and request and hint.mask.bit_count() > 1:
            return None
        given |= _allocate(topology, left, request, hint)
    return given


def _allocate(topology: NumaTopology, free: Cpus, request: int, hint: Hint) -> Cpus:
    """The CPUs for one request: first from the NUMA nodes of the hint, the rest from anywhere; empty if there are not enough."""
    if request > len(free):
        return NO_CPUS
    aligned = topology.within(free, hint.mask)
    first = topology.take(aligned, min(request, len(aligned))) or NO_CPUS
    return first | (topology.take(free - first, request - len(first)) or NO_CPUS)
