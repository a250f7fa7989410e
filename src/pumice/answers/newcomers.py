"""Objects that do not exist yet, as an API server would complete them, in the light of the objects of a cluster."""

from __future__ import annotations

from collections.abc import Iterable

from pumice.api.meta import Metadata, Wire
from pumice.inputs.offline import complete
from pumice.scheduler.model import Cluster


def newcomers(items: Iterable[tuple[str, Wire]], cluster: Cluster) -> list[tuple[str, Wire]]:
    """These objects as an API server would complete them, and no other objects."""
    classes = [("PriorityClass", each) for each in cluster.of("PriorityClass").values()]
    new = list(items)
    given = {(kind, metadata_of(item).name) for kind, item in new}
    return [(kind, item) for kind, item in complete([*classes, *new]) if (kind, metadata_of(item).name) in given]


def metadata_of(item: Wire) -> Metadata:
    made: Metadata = item.metadata  # type: ignore[attr-defined]
    return made
