"""Whether the storage behind a node has room for a volume that is yet to be made, as far as its driver publishes that.

A driver that says it does (CSIDriver, `storageCapacity`) describes its storage in CSIStorageCapacity objects: of which class, for which
nodes, how much is free, how large one volume may be. No object for a node means no room there. Nothing is counted down here: what a driver
has given away shows when it publishes anew.
"""

from __future__ import annotations

import numpy as np

from pumice.api.core import CSIDriver, CSIStorageCapacity, PersistentVolumeClaim
from pumice.model.cluster import Cluster
from pumice.model.resources import Mask
from pumice.plugins.kube.claims import class_of
from pumice.plugins.kube.volume_matching import size_of


def roomy(cluster: Cluster, claim: PersistentVolumeClaim) -> Mask:
    """Rows whose storage has room for a claim's volume, or of whose storage nothing is known."""
    storage, size, table = class_of(cluster, claim), size_of(claim), cluster.nodes
    driver: CSIDriver | None = cluster.of("CSIDriver").get(storage.provisioner) if storage is not None else None
    if storage is None or driver is None or not driver.spec.storage_capacity or not size:
        return np.ones(len(table), bool)
    mask = np.zeros(len(table), bool)
    for published in cluster.of("CSIStorageCapacity").values():
        if published.node_topology is not None and published.storage_class_name == storage.metadata.name and _largest(published) >= size:
            mask |= table.matching(published.node_topology.requirements)
    return mask


def _largest(published: CSIStorageCapacity) -> int:
    """Bytes of the largest volume that can be made; -1 if nothing is said."""
    limit = published.maximum_volume_size or published.capacity
    return limit.whole if limit is not None else -1
