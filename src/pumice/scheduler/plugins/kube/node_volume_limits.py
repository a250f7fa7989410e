"""NodeVolumeLimits: no more volumes of a CSI driver on a node than its CSINode allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pumice.scheduler.engine.rules import Filter, Reach, Reason, Refused
from pumice.scheduler.engine.view import Scores, View
from pumice.scheduler.framework.cluster_events import EventKind, always
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.nodes import Nodes
from pumice.scheduler.model.task import Task
from pumice.scheduler.plugins.kube import KubePlugin
from pumice.scheduler.plugins.kube.indexes.pod_counts import PodCounts
from pumice.scheduler.plugins.kube.indexes.volumes import Attached, Attachments, attached_by
from pumice.scheduler.plugins.kube.volume_matching import pod_key

REFUSAL = Reason("node(s) exceed max volume count")


class NodeVolumeLimits(Filter):
    name = "NodeVolumeLimits"
    reach = Reach.NODE
    reads_amounts = False

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    key = staticmethod(pod_key)

    def prepare(self, task: Task) -> Any:
        """For each driver with limits: the limits by row, and the volumes that the pod would add."""
        by_driver: dict[str, list[Attached]] = {}
        for attached in sorted(attached_by(self.cluster, task)):
            by_driver.setdefault(attached.driver, []).append(attached)
        limits = {driver: _limits(self.cluster, driver) for driver in by_driver}
        return [(driver, limits[driver], wanted) for driver, wanted in by_driver.items() if np.isfinite(limits[driver]).any()] or None

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        known, table = self.cluster.index(Attachments), nodes.table
        full = np.zeros(len(table), bool)
        for driver, limit, wanted in state:
            full |= _would_have(known, driver, wanted, table) > limit
        return [Refused(nodes.of(full), REFUSAL)]  # type: ignore[arg-type]


def _would_have(known: Attachments, driver: str, wanted: Sequence[Attached], table: Nodes) -> Scores:
    """Per row the volumes of the driver with the pod; without a new one the count does not matter."""
    added = np.zeros(len(table))
    for attached in wanted:
        added += ~known.mounts(attached).present(len(table))
    present = known.per_driver.get(driver, PodCounts()).array(len(table))
    return np.where(added > 0, present + added, 0.0)


def _limits(cluster: Cluster, driver: str) -> Scores:
    limits = np.full(len(cluster.nodes), np.inf)
    for name, node in cluster.of("CSINode").items():
        for published in node.spec.drivers or ():
            if (
                published.name == driver
                and published.allocatable is not None
                and published.allocatable.count is not None
                and name in cluster.nodes.rows
            ):
                limits[cluster.nodes.rows[name]] = published.allocatable.count
    return limits


PLUGIN = KubePlugin(
    "NodeVolumeLimits",
    "preFilter filter",
    filters=lambda args, cluster: [NodeVolumeLimits(cluster)],
    hints={EventKind.POD_GONE: always, EventKind.VOLUMES: always, EventKind.NODE_ADDED: always},
)
