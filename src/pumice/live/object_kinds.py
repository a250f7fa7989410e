"""Where controllers' kinds live on an API server, and which objects of each are read.

Of the kinds that hold everybody's secrets and settings, only what job plugins made is read: it carries a label. What they made before they
labelled it is met again when its creation finds it there.
"""

from __future__ import annotations

from collections.abc import Iterable

from pumice.api import kinds as r
from pumice.api.annotations import JOB_NAME
from pumice.api.kinds import Kind
from pumice.controllers import kinds
from pumice.controllers.objects import Key, Object, labels_of
from pumice.kube.transport import Scope

RESOURCES: dict[str, Kind] = {
    each.name: each
    for each in (
        r.PODS,
        r.NODES,
        r.NAMESPACES,
        r.SERVICES,
        r.SECRETS,
        r.CONFIG_MAPS,
        r.VOLUME_CLAIMS,
        r.NETWORK_POLICIES,
        r.PRIORITY_CLASSES,
        r.REPLICA_SETS,
        r.STATEFUL_SETS,
        r.DAEMON_SETS,
        r.BATCH_JOBS,
        r.QUEUES,
        r.POD_GROUPS,
        r.JOBS,
        r.CRON_JOBS,
        r.COMMANDS,
        r.JOB_TEMPLATES,
        r.JOB_FLOWS,
        r.HYPER_NODES,
    )
}

LABELLED = frozenset({kinds.SERVICE, kinds.SECRET, kinds.CONFIG_MAP, kinds.NETWORK_POLICY})
REQUIRED = frozenset({kinds.POD, kinds.QUEUE, kinds.POD_GROUP, kinds.JOB, kinds.COMMAND})  #: the others a server may be without
ADMISSION = (kinds.QUEUE, kinds.NAMESPACE)  #: what admission rules look up


def single_scopes(wanted: Iterable[tuple[str, Key]]) -> dict[str, Scope]:
    """By kind and name: one object each."""
    return {
        f"{kind} {key.namespace}/{key.name}": Scope(RESOURCES[kind], key.namespace, field_selector=f"metadata.name={key.name}")
        for kind, key in wanted
    }


def is_shown(subject: Object, scope: Scope) -> bool:
    """Whether a scope of these has the object."""
    return not scope.label_selector or scope.label_selector in labels_of(subject)


def scopes(wanted: Iterable[str]) -> dict[str, Scope]:
    return {kind: Scope(RESOURCES[kind], label_selector=JOB_NAME if kind in LABELLED else "") for kind in wanted}
