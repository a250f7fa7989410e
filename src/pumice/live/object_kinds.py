"""Where controllers' kinds live on an API server, and which objects of each are read.

Of the kinds that hold everybody's secrets and settings, only what job plugins made is read: it carries a label. What they made before they
labelled it is met again when its creation finds it there.
"""

from __future__ import annotations

from collections.abc import Iterable

from pumice.controllers import kinds
from pumice.controllers.annotations import JOB_NAME
from pumice.controllers.kinds import joined
from pumice.controllers.objects import Key, Object, labels_of
from pumice.kube import resource as r
from pumice.kube.resource import Resource
from pumice.kube.transport import Scope

RESOURCES: dict[str, Resource] = {
    kinds.POD: r.PODS,
    kinds.NODE: r.NODES,
    kinds.NAMESPACE: r.NAMESPACES,
    kinds.SERVICE: r.SERVICES,
    kinds.SECRET: r.SECRETS,
    kinds.CONFIG_MAP: r.CONFIG_MAPS,
    kinds.CLAIM: r.VOLUME_CLAIMS,
    kinds.NETWORK_POLICY: r.NETWORK_POLICIES,
    kinds.PRIORITY_CLASS: r.PRIORITY_CLASSES,
    kinds.REPLICA_SET: r.REPLICA_SETS,
    kinds.STATEFUL_SET: r.STATEFUL_SETS,
    kinds.DAEMON_SET: Resource("apps", "v1", "daemonsets", "DaemonSet"),
    kinds.BATCH_JOB: Resource("batch", "v1", "jobs", "Job"),
    kinds.QUEUE: r.QUEUES,
    kinds.POD_GROUP: r.POD_GROUPS,
    kinds.JOB: r.JOBS,
    kinds.CRON_JOB: r.CRON_JOBS,
    kinds.COMMAND: r.COMMANDS,
    kinds.JOB_TEMPLATE: r.JOB_TEMPLATES,
    kinds.JOB_FLOW: r.JOB_FLOWS,
    kinds.HYPER_NODE: r.HYPER_NODES,
}

LABELLED = frozenset({kinds.SERVICE, kinds.SECRET, kinds.CONFIG_MAP, kinds.NETWORK_POLICY})
REQUIRED = frozenset({kinds.POD, kinds.QUEUE, kinds.POD_GROUP, kinds.JOB, kinds.COMMAND})  #: the others a server may be without
ADMISSION = (kinds.QUEUE, kinds.NAMESPACE)  #: what admission rules look up


def kind_of_resource(resource: Resource) -> str:
    return joined(resource.api_version, resource.kind)


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
