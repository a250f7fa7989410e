"""Can what somebody is about to submit ever run? The scheduler's state holds its pods for a moment, and is afterwards as it was.

A claim that is not there is no bound: it may come next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pumice.answers.answer import Because
from pumice.answers.fits import Fit, fits
from pumice.answers.sketch import Sketch
from pumice.api.meta import Metadata, Wire
from pumice.cluster.offline import complete
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model.cluster import Cluster


def newcomers(items: Iterable[tuple[str, Wire]], cluster: Cluster) -> list[tuple[str, Wire]]:
    """The objects as a cluster's server would complete them, and nothing that is there already."""
    classes = [("PriorityClass", each) for each in cluster.of("PriorityClass").values()]
    new = list(items)
    given = {(kind, _metadata(item).name) for kind, item in new}
    return [(kind, item) for kind, item in complete([*classes, *new]) if (kind, _metadata(item).name) in given]


def bounds(items: Iterable[tuple[str, Wire]], cluster: Cluster, policy: Policy, now: float) -> list[Fit]:
    """Of each PodGroup, and of each pod that is in none, among objects that the cluster already holds."""
    subjects = []
    for kind, item in items:
        key = f"{_metadata(item).namespace or 'default'}/{_metadata(item).name}"
        if kind == "PodGroup":
            subjects.append(f"podgroup/{key}")
        elif kind == "Pod" and ((job := cluster.tasks[key].job) is None or job.group is None):
            subjects.append(f"pod/{key}")
    return [fits(cluster, policy, now, subject) for subject in subjects]


def never_fits(items: Sequence[tuple[str, Wire]], cluster: Cluster, policy: Policy, now: float) -> str:
    """Why they can never run, in few words. Empty if they can, or if it cannot be told."""
    with Sketch(cluster) as sketch:
        for kind, item in newcomers(items, cluster):
            sketch.put(kind, item)
        found = bounds(items, cluster, policy, now)
    for fit in found:
        if fit.bound is not None and fit.bound.because is not Because.VOLUME:
            return fit.words
    return ""


def _metadata(item: Wire) -> Metadata:
    made: Metadata = item.metadata  # type: ignore[attr-defined]
    return made
