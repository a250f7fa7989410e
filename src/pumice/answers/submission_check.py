"""Can objects that a user is about to submit ever run? The scheduler's state holds their pods for a moment, and is afterwards as it was.

A claim that does not exist is no bound: it may be created next.
"""

from collections.abc import Iterable, Sequence

from pumice.answers import closed_nodes
from pumice.answers.can_ever_run import Fit, fits
from pumice.answers.completed_objects import metadata_of, newcomers
from pumice.answers.trial_cluster import TrialCluster
from pumice.api.meta import Wire
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import Cluster


def bounds(items: Iterable[tuple[str, Wire]], cluster: Cluster, policy: Policy, now: float) -> list[Fit]:
    """The `Fit` of each PodGroup, and of each pod without one, among these objects, which the cluster already holds."""
    subjects = []
    for kind, item in items:
        key = f"{metadata_of(item).namespace or 'default'}/{metadata_of(item).name}"
        if kind == "PodGroup":
            subjects.append(f"podgroup/{key}")
        elif kind == "Pod" and ((job := cluster.tasks[key].job) is None or job.group is None):
            subjects.append(f"pod/{key}")
    return [fits(cluster, policy, now, subject) for subject in subjects]


def never_fits(items: Sequence[tuple[str, Wire]], cluster: Cluster, policy: Policy, now: float) -> str:
    """Why these objects can never run, in a few words. Empty if they can, or if it is not known."""
    with TrialCluster(cluster) as trial:
        for kind, item in newcomers(items, cluster):
            trial.put(kind, item)
        found = bounds(items, cluster, policy, now)
    for fit in found:
        if fit.bound is not None and fit.bound.because not in closed_nodes.PASSING:
            return fit.text
    return ""
