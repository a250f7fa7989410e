"""Alibaba's GPU cluster of 2023: CSV files of nodes (`sn,cpu_milli,memory_mib,gpu,model`) and of pods
(`name,cpu_milli,memory_mib,num_gpu,gpu_milli` and more).

GPUs count in thousandths, so that a pod may request a part of a GPU. `gpu_spec` names the models on which a pod may run. A pod runs from
its creation to its deletion. In lists without times all pods come at once: such files are for `--arrivals-only`.
"""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from msgspec.structs import replace

from pumice.api import InputError
from pumice.api.annotations import GPU_MODEL
from pumice.api.core import Node
from pumice.api.meta import LabelSelectorRequirement
from pumice.api.pod import Affinity, NodeAffinity, NodeSelector, NodeSelectorTerm
from pumice.api.quantity import quantity
from pumice.simulate.formats import CsvRow, csv_rows
from pumice.simulate.workload import GPU, GPU_MILLI, Role, Work, Workload, in_order, node, role

PODS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")


def workload(path: str, cluster: list[Node] | None, seed: int = 0) -> Workload:
    if cluster is None:
        raise InputError("tells no cluster; say which, such as --cluster openb:openb_node_list_gpu_node.csv", where=path)
    left_out = Counter[str]()
    return Workload(Path(path).name, in_order(_jobs(path, left_out)), [_in_thousandths(each) for each in cluster], left_out=left_out)


def nodes(path: str) -> list[Node]:
    """The nodes of a file, sorted by name, since ties go to the first node."""
    found = []
    for row in csv_rows(path, ("sn", "cpu_milli", "memory_mib", "gpu", "model")):
        offered: dict[str, str | int] = {"cpu": f"{row.whole('cpu_milli')}m", "memory": f"{row.whole('memory_mib')}Mi"}
        if gpus := row.whole("gpu"):
            offered[GPU_MILLI] = 1000 * gpus
        found.append(node(row.text("sn"), offered, {GPU_MODEL: row.text("model")}))
    return sorted(found, key=lambda each: each.metadata.name)


def _in_thousandths(each: Node) -> Node:
    """A node whose whole GPUs may be shared."""
    offered = each.status.allocatable or {}
    if GPU not in offered or GPU_MILLI in offered:
        return each
    rest = {name: amount for name, amount in offered.items() if name != GPU}
    return replace(each, status=replace(each.status, allocatable=rest | {GPU_MILLI: quantity(1000 * offered[GPU].whole)}))


def _jobs(path: str, left_out: Counter[str]) -> Iterator[Work]:
    for row in csv_rows(path, PODS):
        submit, run = _times(row)
        if run is None:
            left_out["no time of deletion"] += 1
            continue
        yield Work(row.text("name"), submit, run, (_role(row),))


def _times(row: CsvRow) -> tuple[float, float | None]:
    """Submission and run time of a pod: both 0 without times; the run time is None if the deletion is missing."""
    if not row.text("creation_time"):
        return 0.0, 0.0
    created = row.number("creation_time")
    if not row.text("deletion_time"):
        return created, None
    return created, max(0.0, row.number("deletion_time") - row.number("scheduled_time" if row.text("scheduled_time") else "creation_time"))


def _role(row: CsvRow) -> Role:
    gpus, milli = row.whole("num_gpu"), row.whole("gpu_milli")
    if gpus > 1 and milli not in (0, 1000):
        row.wrong(f"gpu_milli: {milli} of each of {gpus} GPUs; a pod of several GPUs takes whole ones, 1000")
    if milli > 1000:
        row.wrong(f"gpu_milli: {milli} is more than a whole GPU, 1000")
    return _equal_pods(row.whole("cpu_milli"), row.whole("memory_mib"), gpus * (milli or 1000), row.text("gpu_spec"))


@lru_cache(maxsize=4096)
def _equal_pods(cpu_milli: int, memory_mib: int, gpu_milli: int, models: str) -> Role:
    asked = {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi"} | ({GPU_MILLI: str(gpu_milli)} if gpu_milli else {})
    pods = role(1, asked)
    if not models:
        return pods
    term = NodeSelectorTerm([LabelSelectorRequirement(GPU_MODEL, "In", models.split("|"))])
    return Role(1, replace(pods.spec, affinity=Affinity(NodeAffinity(NodeSelector([term])))))
