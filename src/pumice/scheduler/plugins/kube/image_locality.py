"""ImageLocality: prefer nodes that have the pod's images already, the larger and the more widespread the better.

An image counts its size times the share of nodes that have it, so that rare images do not draw all pods to one node. The score is in
relation to the number of containers, from 1.37 also to that of the images that the pod mounts.
"""

from typing import Any

import numpy as np
from msgspec import Struct

from pumice.api.pod import PodSpec
from pumice.scheduler.engine import MAX_SCORE, Reach, Scorer, Scores, View
from pumice.scheduler.model import Cluster, Rows, Task
from pumice.scheduler.plugins.kube import ClusterRule, KubePlugin

MEBIBYTE = 1024.0 * 1024
LEAST, MOST_PER_IMAGE = 23 * MEBIBYTE, 1000 * MEBIBYTE


class Stored(Struct, frozen=True):
    size_bytes: int
    rows: Rows


def full_name(image: str) -> str:
    """The name of an image with its tag, which is `latest` if it names none."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def images_of(spec: PodSpec) -> list[str]:
    """The images of the pod's containers."""
    return [container.image or "" for container in (*(spec.init_containers or ()), *(spec.containers or ()))]


def mounted_images(spec: PodSpec) -> list[str]:
    return [volume.image.reference for volume in spec.volumes or () if volume.image is not None]


def stored_images(cluster: Cluster) -> dict[str, Stored]:
    """The images that are on nodes, by name. The result is kept until a node changes."""
    version, kept = cluster.memory.get("images", (-1, {}))
    if version != cluster.nodes.static_version:
        sizes: dict[str, int] = {}
        rows: dict[str, list[int]] = {}
        for row in cluster.nodes:
            for image in cluster.nodes.wire[row].status.images or ():
                for name in dict.fromkeys(image.names or ()):
                    sizes.setdefault(name, image.size_bytes or 0)
                    rows.setdefault(name, []).append(row)
        kept = {name: Stored(sizes[name], np.array(where)) for name, where in rows.items()}
        cluster.memory["images"] = cluster.nodes.static_version, kept
    found: dict[str, Stored] = kept
    return found


class ImageLocality(ClusterRule, Scorer):
    name = "ImageLocality"
    reach = Reach.STATIC
    reads_amounts = False

    def prepare(self, task: Task) -> Any:
        stored = stored_images(self.cluster)
        images = images_of(task.template.spec) if stored else []
        mounted = mounted_images(task.template.spec) if stored else []
        found = [stored[name] for image in (*images, *mounted) if (name := full_name(image)) in stored]
        return (found, len(images) + (len(mounted) if self.cluster.newer else 0)) if found else None

    def score(self, state: Any, nodes: View) -> Scores:
        found, number = state
        table = nodes.table
        total = np.zeros(len(table))
        for image in found:
            total[image.rows] += np.trunc(image.size_bytes * (len(image.rows) / table.count))
        most = MOST_PER_IMAGE * number
        scores = np.floor(MAX_SCORE * (np.clip(total, LEAST, most) - LEAST) / (most - LEAST))
        return nodes.of(scores)  # type: ignore[return-value]


PLUGIN = KubePlugin("ImageLocality", "score", weight=1, scorer=lambda args, cluster: ImageLocality(cluster))
