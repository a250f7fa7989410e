"""Whether something that happened may help a pod that found no node: it asks the hints of the plugins that refused it.

Rules without hints, such as extenders and rules of others, may be helped by anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pumice.scheduler.framework.cluster_events import ClusterEvent, EventKind, QueueingHint
from pumice.scheduler.kube.nominator import PipelinedRoom
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.task import Task
from pumice.scheduler.plugins.kube.catalogue import PLUGINS

#: What gates hold back waits for nothing but its own update.
HINTS: dict[str, Mapping[EventKind, QueueingHint]] = {each.name: each.hints for each in PLUGINS if each.hints} | {"SchedulingGates": {}}

FLEETING = frozenset([PipelinedRoom.name])  #: rules that refuse for the length of a session: no event tells when they no longer do


def may_help(cluster: Cluster, task: Task, refused_by: Iterable[str], event: ClusterEvent) -> bool:
    """Whether an event could help a pod that these rules refused. Its own update may always; what else is told of itself never."""
    if event.what is EventKind.ANYTHING or event.pod is task:
        return event.what in (EventKind.ANYTHING, EventKind.OWN_UPDATE)
    for name in refused_by:
        hints = HINTS.get(name)
        if hints is None:
            return True
        hint = hints.get(event.what)
        if hint is not None and hint(cluster, task, event):
            return True
    return False
