"""What Volcano's agent offers of a node beyond what is allocatable."""

from pumice.api.annotations import OVERSUBSCRIPTION
from pumice.api.core import Node
from pumice.scheduler.model.resources import CPU, MEMORY, Dimensions, Vector, bounded


def oversubscription(node: Node, dimensions: Dimensions) -> Vector:
    """The resources that Volcano's agent offers beyond what is allocatable (oversubscription)."""
    annotations = node.metadata.annotations or {}
    extra = dimensions.zeros()
    for column, name in ((CPU, "cpu"), (MEMORY, "memory")):
        try:
            extra[column] = bounded(int(float(annotations.get(OVERSUBSCRIPTION + name, 0))))
        except (ValueError, OverflowError):
            continue
    return extra
