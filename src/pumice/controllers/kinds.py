"""Names of the kinds that controllers read and write: "Kind", or "Kind.group" outside the core group.

A kind is named without its version: a world holds each object once, whatever version it is asked in.
"""

from __future__ import annotations

from pumice.controllers.objects import Object

POD = "Pod"
NODE = "Node"
NAMESPACE = "Namespace"
SERVICE = "Service"
SECRET = "Secret"
SERVICE_ACCOUNT = "ServiceAccount"
CONFIG_MAP = "ConfigMap"
CLAIM = "PersistentVolumeClaim"
VOLUME = "PersistentVolume"
STORAGE_CLASS = "StorageClass.storage.k8s.io"
RESOURCE_QUOTA = "ResourceQuota"
REPLICATION_CONTROLLER = "ReplicationController"
DEPLOYMENT = "Deployment.apps"
REPLICA_SET = "ReplicaSet.apps"
STATEFUL_SET = "StatefulSet.apps"
DAEMON_SET = "DaemonSet.apps"
CONTROLLER_REVISION = "ControllerRevision.apps"
BATCH_JOB = "Job.batch"
BATCH_CRON_JOB = "CronJob.batch"
NETWORK_POLICY = "NetworkPolicy.networking.k8s.io"
DISRUPTION_BUDGET = "PodDisruptionBudget.policy"
PRIORITY_CLASS = "PriorityClass.scheduling.k8s.io"
LEASE = "Lease.coordination.k8s.io"
DEVICE_CLAIM = "ResourceClaim.resource.k8s.io"
DEVICE_CLAIM_TEMPLATE = "ResourceClaimTemplate.resource.k8s.io"

QUEUE = "Queue.scheduling.volcano.sh"
POD_GROUP = "PodGroup.scheduling.volcano.sh"
JOB = "Job.batch.volcano.sh"
CRON_JOB = "CronJob.batch.volcano.sh"
COMMAND = "Command.bus.volcano.sh"
JOB_TEMPLATE = "JobTemplate.flow.volcano.sh"
JOB_FLOW = "JobFlow.flow.volcano.sh"
HYPER_NODE = "HyperNode.topology.volcano.sh"

API_VERSIONS = {
    POD: "v1",
    SERVICE: "v1",
    SECRET: "v1",
    SERVICE_ACCOUNT: "v1",
    CONFIG_MAP: "v1",
    CLAIM: "v1",
    VOLUME: "v1",
    REPLICA_SET: "apps/v1",
    CONTROLLER_REVISION: "apps/v1",
    BATCH_JOB: "batch/v1",
    NETWORK_POLICY: "networking.k8s.io/v1",
    DEVICE_CLAIM: "resource.k8s.io/v1",
    POD_GROUP: "scheduling.volcano.sh/v1beta1",
    JOB: "batch.volcano.sh/v1alpha1",
    HYPER_NODE: "topology.volcano.sh/v1alpha1",
}  #: of the kinds that controllers create

CLUSTER_SCOPED = frozenset({NODE, NAMESPACE, VOLUME, STORAGE_CLASS, PRIORITY_CLASS, QUEUE, HYPER_NODE})


def kind_of(subject: Object) -> str:
    """The kind of an object, or of what an owner reference points to."""
    return joined(subject["apiVersion"], subject["kind"])


def joined(api_version: str, kind: str) -> str:
    group, slash, _ = api_version.rpartition("/")
    return f"{kind}.{group}" if slash else kind


def new(kind: str, namespace: str, name: str, **fields: object) -> Object:
    """An object of one of the kinds that controllers create."""
    metadata = {"name": name} if kind in CLUSTER_SCOPED else {"name": name, "namespace": namespace}
    return {"apiVersion": API_VERSIONS[kind], "kind": kind.partition(".")[0], "metadata": metadata, **fields}
