"""Clusters in shorthand: `100x8gpu`, `3x4cpu,2x8gpu:64cpu:512Gi`.

Pools are separated by commas. A pool is a count, an x, and amounts separated by colons. An amount is a number with `cpu`, `gpu` or
`pods`, or a memory size such as 512Gi. Amounts that are left out follow from the others: 12 CPUs and 96 GiB per GPU, 4 GiB per CPU, 110
pods. Every node has 100 GiB of ephemeral storage.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from pumice.api import InputError, Object
from pumice.api.annotations import HOSTNAME, NODE_POOL

GPU = "nvidia.com/gpu"
CPU_PER_GPU, GIB_PER_GPU, GIB_PER_CPU, PODS, DISK = 12, 96, 4, 110, "100Gi"

MOST_NODES = 100_000  #: of all pools: Kubernetes supports 5,000 in a cluster

_POOL = re.compile(r"([0-9]{1,9})x(\S+)\Z")
_COUNT = re.compile(r"([0-9]{1,9})(cpu|gpu|pods)\Z")
_MEMORY = re.compile(r"[0-9]{1,9}[KMGT]i\Z")


class NodePool(NamedTuple):
    name: str
    size: int
    allocatable: dict[str, str]


def pools_of(text: str) -> list[NodePool]:
    """The pools of equal nodes that the text of `--nodes` describes. Raises InputError."""
    pools: list[NodePool] = []
    for part in text.split(","):
        match = _POOL.match(part.strip())
        if match is None:
            raise _wrong(part)
        allocatable = _allocatable(match[2], part)
        name = f"gpu{allocatable[GPU]}" if GPU in allocatable else f"cpu{allocatable['cpu']}"
        same = sum(pool.name.partition("-")[0] == name for pool in pools)
        pools.append(NodePool(f"{name}-{chr(ord('a') + same)}" if same else name, int(match[1]), allocatable))
    if (count := sum(pool.size for pool in pools)) > MOST_NODES:
        raise InputError(f"{count} nodes are too many; write at most {MOST_NODES}", where="--nodes")
    return pools


def _allocatable(text: str, part: str) -> dict[str, str]:
    given: dict[str, str] = {}
    for amount in text.split(":"):
        match = _COUNT.match(amount)
        if match is not None:
            given[match[2]] = match[1]
        elif _MEMORY.match(amount):
            given["memory"] = amount
        else:
            raise _wrong(part)
    gpus = int(given.get("gpu", 0))
    if not gpus and "cpu" not in given:
        raise _wrong(part)
    cpus = int(given.get("cpu", gpus * CPU_PER_GPU))
    memory = given.get("memory", f"{gpus * GIB_PER_GPU or cpus * GIB_PER_CPU}Gi")
    amounts = {"cpu": str(cpus), "memory": memory, "ephemeral-storage": DISK, "pods": given.get("pods", str(PODS))}
    return amounts | ({GPU: str(gpus)} if gpus else {})


def _wrong(part: str) -> InputError:
    return InputError(f'"{part[:40]}" is no pool of nodes; write such as 100x8gpu, 3x4cpu or 2x8gpu:64cpu:512Gi', where="--nodes")


def nodes_of(pools: list[NodePool]) -> Iterator[Object]:
    """The nodes of the pools. Their numbers have leading zeros, so that their names sort in order."""
    for pool in pools:
        width = len(str(pool.size - 1))
        for number in range(pool.size):
            name = f"{pool.name}-{number:0{width}d}"
            labels = {HOSTNAME: name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", NODE_POOL: pool.name}
            status = {"capacity": dict(pool.allocatable), "allocatable": dict(pool.allocatable)}
            yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}
