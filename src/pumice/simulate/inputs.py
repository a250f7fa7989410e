"""Which file is read how: `FORMAT:FILE`, as the command line names workloads and clusters; and nodes in shorthand."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import NamedTuple

from pumice.api.core import Node
from pumice.api.errors import InputError, did_you_mean
from pumice.api.structs import convert
from pumice.simulate.work import Workload

MANY = "100000"  #: pods of a node of which nothing is said: workloads count processors, not pods
FORMATS = ("openb", "philly", "swf", "yaml", "kubernetes", "recording")


class Source(NamedTuple):
    format: str
    path: str

    def _module(self) -> ModuleType:
        return importlib.import_module(f"pumice.simulate.formats.{self.format}")

    def read(self, cluster: list[Node] | None, seed: int = 0) -> Workload:
        """The jobs of the file, on the cluster given, else on the one that the file itself tells. Raises InputError."""
        workload: Workload = self._module().workload(self.path, cluster, seed)
        return workload

    def nodes(self) -> list[Node]:
        module = self._module()
        if not hasattr(module, "nodes"):
            raise InputError(
                f"clusters are not written in the format {self.format}; write openb, swf, yaml, kubernetes or recording",
                where="--cluster",
            )
        found: list[Node] = module.nodes(self.path)
        return found


def source(text: str, option: str) -> Source:
    """The file that an option names, and its format. Raises InputError."""
    name, colon, path = text.partition(":")
    if not colon or not path:
        raise InputError(f'"{text}" names no format; write FORMAT:FILE with FORMAT one of {", ".join(FORMATS)}', where=option)
    if name not in FORMATS:
        raise InputError(f'there is no format "{name}"{did_you_mean(name, FORMATS) or "; known: " + ", ".join(FORMATS)}', where=option)
    return Source(name, path)


def nodes_from(cluster: str | None, nodes: str | None) -> list[Node] | None:
    """Those of the options --cluster and --nodes, if there are any. Raises InputError."""
    if cluster and nodes:
        raise InputError("give --cluster or --nodes, not both", where="--nodes")
    if cluster:
        return source(cluster, "--cluster").nodes()
    return nodes_of_pools(nodes) if nodes else None


def nodes_of_pools(text: str) -> list[Node]:
    """Nodes in shorthand, as `pumice up --nodes` reads it: `300x8gpu`, `4x1cpu,2x8gpu:64cpu`. Raises InputError."""
    from pumice.cluster.nodes.node_agent import nodes_of, pools_of  # comes with a whole control plane, which few simulations need

    pools = pools_of(text)
    if "pods" not in text:
        pools = [pool._replace(allocatable=pool.allocatable | {"pods": MANY}) for pool in pools]
    return [convert(node, Node) for node in nodes_of(pools)]
