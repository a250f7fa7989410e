"""Names of the kinds that controllers read and write: "Kind", or "Kind.group" outside the core group.

A kind is named without its version: a cluster holds each object once, whatever version it is asked in.
"""

from __future__ import annotations

from pumice.api import kinds
from pumice.controllers.objects import Object

POD = kinds.PODS.name
NODE = kinds.NODES.name
NAMESPACE = kinds.NAMESPACES.name
SERVICE = kinds.SERVICES.name
SECRET = kinds.SECRETS.name
SERVICE_ACCOUNT = kinds.SERVICE_ACCOUNTS.name
CONFIG_MAP = kinds.CONFIG_MAPS.name
CLAIM = kinds.VOLUME_CLAIMS.name
VOLUME = kinds.VOLUMES.name
STORAGE_CLASS = kinds.STORAGE_CLASSES.name
RESOURCE_QUOTA = kinds.RESOURCE_QUOTAS.name
REPLICATION_CONTROLLER = kinds.REPLICATION_CONTROLLERS.name
DEPLOYMENT = kinds.DEPLOYMENTS.name
REPLICA_SET = kinds.REPLICA_SETS.name
STATEFUL_SET = kinds.STATEFUL_SETS.name
DAEMON_SET = kinds.DAEMON_SETS.name
CONTROLLER_REVISION = kinds.CONTROLLER_REVISIONS.name
BATCH_JOB = kinds.BATCH_JOBS.name
BATCH_CRON_JOB = kinds.BATCH_CRON_JOBS.name
NETWORK_POLICY = kinds.NETWORK_POLICIES.name
DISRUPTION_BUDGET = kinds.DISRUPTION_BUDGETS.name
PRIORITY_CLASS = kinds.PRIORITY_CLASSES.name
LEASE = kinds.LEASES.name
DEVICE_CLAIM = kinds.RESOURCE_CLAIMS.name
DEVICE_CLAIM_TEMPLATE = kinds.RESOURCE_CLAIM_TEMPLATES.name

QUEUE = kinds.QUEUES.name
POD_GROUP = kinds.POD_GROUPS.name
JOB = kinds.JOBS.name
CRON_JOB = kinds.CRON_JOBS.name
COMMAND = kinds.COMMANDS.name
JOB_TEMPLATE = kinds.JOB_TEMPLATES.name
JOB_FLOW = kinds.JOB_FLOWS.name
HYPER_NODE = kinds.HYPER_NODES.name

_BY_NAME = {kind.name: kind for kind in kinds.KINDS}
CLUSTER_SCOPED = frozenset(name for name, kind in _BY_NAME.items() if not kind.namespaced)


def kind_of(subject: Object) -> str:
    """The kind of an object, or of what an owner reference points to."""
    return joined(subject["apiVersion"], subject["kind"])


def joined(api_version: str, kind: str) -> str:
    group, slash, _ = api_version.rpartition("/")
    return f"{kind}.{group}" if slash else kind


def new(kind: str, namespace: str, name: str, **fields: object) -> Object:
    """A new object."""
    metadata = {"name": name} if kind in CLUSTER_SCOPED else {"name": name, "namespace": namespace}
    return {"apiVersion": _BY_NAME[kind].api_version, "kind": _BY_NAME[kind].kind, "metadata": metadata, **fields}
