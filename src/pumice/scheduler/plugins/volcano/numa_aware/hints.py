"""The kubelet's topology manager: hints of providers are merged, and the policy says whether the best merged hint is good enough.

A hint is a set of NUMA nodes, as a bit mask (None: any), and a flag whether it is the best that its provider could offer (preferred).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product
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


NONE, BEST_EFFORT, RESTRICTED, SINGLE_NODE = "none", "best-effort", "restricted", "single-numa-node"


class Hint(NamedTuple):
    mask: int | None
    preferred: bool

    @property
    def width(self) -> int:
        return (self.mask or 0).bit_count()


DONT_CARE, IMPOSSIBLE = Hint(None, True), Hint(None, False)
Hints = Mapping[str, Sequence[Hint] | None]  #: the hints of one provider, by resource


class NumaVerdict(NamedTuple):
    hint: Hint
    admitted: bool


def decide(policy: str, all_nodes: int, providers: Sequence[Hints]) -> NumaVerdict:
    """The verdict of a topology policy on the hints of providers. `all_nodes`: the node's NUMA nodes as a bit mask."""
    if policy == NONE:
        return NumaVerdict(DONT_CARE, True)
    lists = [hints for provider in providers for hints in _complete(provider)]
    if policy == SINGLE_NODE:
        lists = [[hint for hint in hints if hint.preferred and (hint.mask is None or hint.width == 1)] for hints in lists]
    best = merge(all_nodes, lists)
    if policy == SINGLE_NODE and best.mask == all_nodes:
        best = Hint(None, best.preferred)
    return NumaVerdict(best, best.preferred or policy == BEST_EFFORT)


def _complete(provider: Hints) -> list[Sequence[Hint]]:
    """The hints of a provider, a list for each resource. None, or no resource at all: any NUMA node (DONT_CARE); empty list: IMPOSSIBLE."""
    if not provider:
        return [[DONT_CARE]]
    return [[DONT_CARE] if hints is None else hints or [IMPOSSIBLE] for hints in provider.values()]


def merge(all_nodes: int, lists: Sequence[Sequence[Hint]]) -> Hint:
    """The best merge of one hint of each list: preferred ones first, then few NUMA nodes. If there is none: all nodes, not preferred."""
    best = Hint(all_nodes, False)
    for combination in product(*lists):
        mask = all_nodes
        for hint in combination:
            mask &= all_nodes if hint.mask is None else hint.mask
        merged = Hint(mask, all(hint.preferred for hint in combination))
        if mask and _rank(merged) < _rank(best):
            best = merged
    return best


def _rank(hint: Hint) -> tuple[bool, int, int]:
    return not hint.preferred, hint.width, hint.mask or 0


def cpu_hints(topology: NumaTopology, free: Cpus, request: int) -> Hints:
    """The sets of NUMA nodes with enough free CPUs, as hints. Preferred are sets as small as would be enough on an empty machine."""
    if not request:
        return {}
    whole, idle = topology.per_node(topology.cpus), topology.per_node(free)
    least = len(topology.numa_nodes)
    found: list[int] = []
    for size in range(1, len(topology.numa_nodes) + 1):
        for nodes in combinations(topology.numa_nodes, size):
            if sum(whole[node] for node in nodes) < request:
                continue
            least = min(least, size)
            if sum(idle[node] for node in nodes) >= request:
                found.append(sum(1 << node for node in nodes))
    return {"cpu": [Hint(mask, mask.bit_count() == least) for mask in found]}


def assign(topology: NumaTopology, free: Cpus, requests: Sequence[int], policy: str) -> Cpus | None:
    """CPUs for containers with these requests, one after the other; None if the policy does not admit one of them."""
    given: Cpus = NO_CPUS
    for request in requests:
        left = free - given
        hint, admitted = decide(policy, topology.all_nodes, [cpu_hints(topology, left, request)])
        if not admitted:
            return None
        given |= _allocate(topology, left, request, hint)
    return given


def _allocate(topology: NumaTopology, free: Cpus, request: int, hint: Hint) -> Cpus:
    """The CPUs for one request: first from the NUMA nodes of the hint, the rest from anywhere; empty if there are not enough."""
    if request > len(free):
        return NO_CPUS
    aligned = topology.within(free, topology.all_nodes if hint.mask is None else hint.mask)
    first = topology.take(aligned, min(request, len(aligned))) or NO_CPUS
    return first | (topology.take(free - first, request - len(first)) or NO_CPUS)
