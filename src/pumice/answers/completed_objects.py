"""Objects that do not exist yet, as an API server would complete them, in the light of the objects of a cluster."""

from collections.abc import Iterable

from pumice.api.core import LimitRange, RuntimeClass
from pumice.api.kinds import LIMIT_RANGES, RUNTIME_CLASSES
from pumice.api.meta import Metadata, Wire
from pumice.api.structs import convert
from pumice.inputs.cluster_from_files import complete
from pumice.inputs.known_objects import known_objects
from pumice.scheduler.model import Cluster


def newcomers(items: Iterable[tuple[str, Wire]], cluster: Cluster) -> list[tuple[str, Wire]]:
    """These objects as an API server would complete them, and no other objects."""
    new = list(items)
    given = {(kind, metadata_of(item).name) for kind, item in new}
    return [(kind, item) for kind, item in complete([*_of_admission(cluster), *new]) if (kind, metadata_of(item).name) in given]


def _of_admission(cluster: Cluster) -> Iterable[tuple[str, Wire]]:
    """The objects that say what becomes of others when they are created."""
    yield from (("RuntimeClass", each) for each in runtime_classes(cluster))
    for kind in ("PriorityClass", "LimitRange"):
        yield from ((kind, each) for each in cluster.of(kind).values())
    if (known := known_objects(cluster)) is not None:
        yield from (("LimitRange", convert(each, LimitRange)) for each in known.all(LIMIT_RANGES.resource))


def runtime_classes(cluster: Cluster) -> list[RuntimeClass]:
    known = known_objects(cluster)
    found = known.all(RUNTIME_CLASSES.resource) if known is not None else ()
    return [*cluster.of("RuntimeClass").values(), *(convert(each, RuntimeClass) for each in found)]


def metadata_of(item: Wire) -> Metadata:
    made: Metadata = item.metadata  # type: ignore[attr-defined]
    return made
