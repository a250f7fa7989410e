"""Whether an event may help a pod that found no node: the queueing hints of the plugins that refused it decide.

For rules without hints, such as extenders and plugins of others, every event may help.
"""

from collections.abc import Iterable, Mapping

from pumice.scheduler.framework.cluster_events import OWN, ClusterEvent, EventKind, QueueingHint
from pumice.scheduler.model import Cluster, Task
from pumice.scheduler.plugins.kube.catalogue import PLUGINS

#: A pod that scheduling gates hold back waits only for its own update.
HINTS: dict[str, Mapping[EventKind, QueueingHint]] = {each.name: each.hints for each in PLUGINS if each.hints} | {"SchedulingGates": {}}


def may_help(cluster: Cluster, task: Task, refused_by: Iterable[str], event: ClusterEvent) -> bool:
    """Whether an event could help a pod that these rules refused. Of events about the pod itself only its own updates may."""
    if event.what is EventKind.ANYTHING:
        return True
    if (event.pod is task) != (event.what in OWN):
        return False
    if event.what is EventKind.OWN_RENEWAL:
        return True
    for name in refused_by:
        hints = HINTS.get(name)
        if hints is None:
            return True
        hint = hints.get(event.what)
        if hint is not None and hint(cluster, task, event):
            return True
    return False
