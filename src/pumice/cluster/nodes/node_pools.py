"""Clusters in shorthand: `100x8gpu`, `3x4cpu,2x8gpu:64cpu:512Gi`.

Pools are parted by commas: a count, an x, and amounts parted by colons. An amount is a number with `cpu`, `gpu` or `pods`, or a memory size
such as 512Gi; what is not said follows from what is: 12 CPU and 96 GiB for a GPU, 4 GiB for a CPU, 110 pods;
every node has 100 GiB of ephemeral storage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pumice.api.annotations import HOSTNAME, NODE_POOL
from pumice.api.errors import InputError
from pumice.controllers.objects import Object

GPU = "nvidia.com/gpu"
CPU_PER_GPU, GIB_PER_GPU, GIB_PER_CPU, PODS, DISK = 12, 96, 4, 110, "100Gi"

_POOL = re.compile(r"(\d+)x(\S+)\Z")
_COUNT = re.compile(r"(\d+)(cpu|gpu|pods)\Z")
_MEMORY = re.compile(r"\d+[KMGT]i\Z")


class Pool(NamedTuple):
    """Equal nodes."""

    name: str
    size: int
    allocatable: dict[str, str]


def pools_of(text: str) -> list[Pool]:
    """Raises InputError."""
    pools: list[Pool] = []
    for part in text.split(","):
        match = _POOL.match(part.strip())
        if match is None:
            raise _wrong(part)
        allocatable = _allocatable(match[2], part)
        name = f"gpu{allocatable[GPU]}" if GPU in allocatable else f"cpu{allocatable['cpu']}"
        same = sum(pool.name.partition("-")[0] == name for pool in pools)
        pools.append(Pool(f"{name}-{chr(ord('a') + same)}" if same else name, int(match[1]), allocatable))
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
    return InputError(f'"{part}" is no pool of nodes; write such as 100x8gpu, 3x4cpu or 2x8gpu:64cpu:512Gi', where="--nodes")


def nodes_of(pools: list[Pool]) -> Iterator[Object]:
    """The nodes, numbered so that their names are in order."""
    for pool in pools:
        width = len(str(pool.size - 1))
        for number in range(pool.size):
            name = f"{pool.name}-{number:0{width}d}"
            labels = {HOSTNAME: name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", NODE_POOL: pool.name}
            status = {"capacity": dict(pool.allocatable), "allocatable": dict(pool.allocatable)}
            yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}
