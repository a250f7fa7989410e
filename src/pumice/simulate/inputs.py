"""The inputs of simulations: workloads and clusters as `FORMAT:FILE`, as on the command line; nodes in shorthand; and policies, by name or
from a file. The named policies are configurations too, in one of the two forms that a file may have.
"""

import importlib
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from pumice.api import InputError, did_you_mean
from pumice.api.core import Node
from pumice.api.files import refuse_endless
from pumice.api.structs import convert
from pumice.extensions import Given, actions, plugins
from pumice.scheduler.config import KUBE_DEFAULT, config_text, read_configurations
from pumice.scheduler.config.volcano_conf import DEFAULT
from pumice.scheduler.framework.policy import Policy
from pumice.simulate.workload import Workload

MANY = "100000"  #: pods that a node may hold if its shorthand does not say it: workloads count processors, not pods
FORMATS = ("openb", "philly", "swf", "yaml", "kubernetes", "recording")


class Source(NamedTuple):
    format: str
    path: str

    def _module(self) -> ModuleType:
        return importlib.import_module(f"pumice.simulate.formats.{self.format}")

    def read(self, cluster: list[Node] | None, seed: int = 0) -> Workload:
        """The workload of the file, on the given cluster, else on the one that the file itself describes. Raises InputError."""
        workload: Workload = self._module().workload(self.path, cluster, seed)
        return workload

    def nodes(self) -> list[Node]:
        module = self._module()
        if not hasattr(module, "nodes"):
            raise InputError(
                f"clusters are not written in the format {self.format}; write openb, swf, yaml, kubernetes or recording", where="--cluster"
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
    """The nodes that the option --cluster or --nodes describes; None if neither is given. Raises InputError."""
    if cluster and nodes:
        raise InputError("give --cluster or --nodes, not both", where="--nodes")
    if cluster:
        return source(cluster, "--cluster").nodes()
    return nodes_of_pools(nodes) if nodes else None


def nodes_of_pools(text: str) -> list[Node]:
    """Nodes in shorthand, as `pumice up --nodes` reads it: `300x8gpu`, `4x1cpu,2x8gpu:64cpu`. Raises InputError."""
    from pumice.cluster.nodes.node_pools import nodes_of, pools_of

    pools = pools_of(text)
    if "pods" not in text:
        pools = [pool._replace(allocatable=pool.allocatable | {"pods": MANY}) for pool in pools]
    return [convert(node, Node) for node in nodes_of(pools)]


def _conf(named: str, *chosen: str) -> str:
    listed = "\n".join(f"  - {plugin}" for plugin in chosen)
    return f'actions: "{named}"\ntiers:\n- plugins:\n{listed}\n'


def _in_order(backfill: str, *chosen: str) -> str:
    settings = f"configurations:\n- name: in-order\n  arguments: {{backfill: {backfill}}}\n"
    return settings + _conf("in-order", "name: gang", *chosen)


def _packing(name: str) -> str:
    return _conf("allocate", "name: gang", "name: predicates", f"name: {name}")


NAMED = {
    "volcano": DEFAULT,
    "kube-scheduler": KUBE_DEFAULT,
    "FIFO": _in_order("none"),
    "SJF": _in_order("none", "name: shortest-first"),
    "greedy": _in_order("greedy"),
    "EASY": _in_order("easy"),
    "conservative": _in_order("conservative"),
    "FGD": _packing("fgd"),
    "DotProd": _packing("dot-product"),
    "GpuPacking": _packing("gpu-packing"),
    "GpuClustering": _packing("gpu-clustering"),
    "BestFit": _packing("best-fit"),
    "Random": _packing("random-node"),
}


def read_policy(name: str, plugins_dir: str | None = None, given: Given = ()) -> tuple[Policy, list[str]]:
    """The policy of this name, in upper or lower case, else the one in this file; and warnings. Raises InputError."""
    return policy_of(policy_text(name), name, plugins_dir, given)


def policy_of(text: str, where: str, plugins_dir: str | None = None, given: Given = ()) -> tuple[Policy, list[str]]:
    """The policy that a configuration describes, and warnings. Raises InputError."""
    return read_configurations([config_text(text, where)], plugins(plugins_dir, given), actions=actions(plugins_dir, given))


def policy_text(name: str) -> str:
    """The configuration of this name, else the content of this file. Raises InputError."""
    known = {each.lower(): text for each, text in NAMED.items()}
    text = known.get(name.lower())
    if text is None:
        try:
            refuse_endless(name)
            text = Path(name).read_text(encoding="utf-8")
        except OSError as error:
            near = did_you_mean(name, NAMED) or f"; known: {', '.join(NAMED)}"
            raise InputError(f"is neither a policy nor a file that can be read ({error.strerror}){near}", where=name) from None
        except UnicodeDecodeError:
            raise InputError("not UTF-8; save the file as UTF-8", where=name) from None
    return text
