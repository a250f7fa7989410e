"""The kubelet's topology manager: hints of providers are merged, and the policy says whether the best one will do.

A hint is a set of NUMA nodes as a bit mask (None: any) and whether it is the best that its provider could hope for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple

from pumice.plugins.numa.topology import NO_CPUS, Cpus, Topology

NONE, BEST_EFFORT, RESTRICTED, SINGLE_NODE = "none", "best-effort", "restricted", "single-numa-node"


class Hint(NamedTuple):
    mask: int | None
    preferred: bool

    @property
    def width(self) -> int:
        return (self.mask or 0).bit_count()


DONT_CARE, IMPOSSIBLE = Hint(None, True), Hint(None, False)
Hints = Mapping[str, Sequence[Hint] | None]  #: of one provider, by resource


class Verdict(NamedTuple):
    hint: Hint
    admitted: bool


def decide(policy: str, all_nodes: int, providers: Sequence[Hints]) -> Verdict:
    """What a topology policy makes of the hints, on a node with these NUMA nodes."""
    if policy == NONE:
        return Verdict(DONT_CARE, True)
    lists = [hints for provider in providers for hints in _complete(provider)]
    if policy == SINGLE_NODE:
        lists = [[hint for hint in hints if hint.preferred and (hint.mask is None or hint.width == 1)] for hints in lists]
    best = merge(all_nodes, lists)
    if policy == SINGLE_NODE and best.mask == all_nodes:
        best = Hint(None, best.preferred)
    return Verdict(best, best.preferred or policy == BEST_EFFORT)


def _complete(provider: Hints) -> list[Sequence[Hint]]:
    """A provider that says nothing does not care; one that has no way out cannot be helped."""
    if not provider:
        return [[DONT_CARE]]
    return [[DONT_CARE] if hints is None else hints or [IMPOSSIBLE] for hints in provider.values()]


def merge(all_nodes: int, lists: Sequence[Sequence[Hint]]) -> Hint:
    """The best combination of one hint of each: preferred, then narrow. Without any, all nodes and not preferred."""
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


def cpu_hints(topology: Topology, free: Cpus, request: int) -> Hints:
    """Where so many CPUs are free. Preferred are as few NUMA nodes as would do on an empty machine."""
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


def assign(topology: Topology, free: Cpus, requests: Sequence[int], policy: str) -> Cpus | None:
    """CPUs for containers with these requests, one after the other; None if the policy does not admit one of them."""
    given: Cpus = NO_CPUS
    for request in requests:
        left = free - given
        hint, admitted = decide(policy, topology.all_nodes, [cpu_hints(topology, left, request)])
        if not admitted:
            return None
        given |= _allocate(topology, left, request, hint)
    return given


def _allocate(topology: Topology, free: Cpus, request: int, hint: Hint) -> Cpus:
    """First from the NUMA nodes of the hint, the rest from anywhere; nothing if there are not enough."""
    if request > len(free):
        return NO_CPUS
    aligned = topology.within(free, topology.all_nodes if hint.mask is None else hint.mask)
    first = topology.take(aligned, min(request, len(aligned))) or NO_CPUS
    return first | (topology.take(free - first, request - len(first)) or NO_CPUS)
