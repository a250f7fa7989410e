"""All controllers, in two lists: those of Volcano, and those few of Kubernetes that a cluster with the embedded store needs."""

from collections.abc import Iterable, Set

from pumice.api import kinds
from pumice.api.defaults import SCHEDULER_NAME
from pumice.controllers.controller import Controller
from pumice.controllers.kubernetes.daemonset import DaemonSets
from pumice.controllers.kubernetes.deployment import Deployments
from pumice.controllers.kubernetes.disruption import DisruptionBudgets
from pumice.controllers.kubernetes.endpoints import ServiceEndpoints
from pumice.controllers.kubernetes.job.controller import BatchJobs
from pumice.controllers.kubernetes.node_lifecycle import NodeLifecycle
from pumice.controllers.kubernetes.persistent_volumes import Volumes
from pumice.controllers.kubernetes.pod_group_protection import PodGroupProtection
from pumice.controllers.kubernetes.replica_set import ReplicaSets
from pumice.controllers.kubernetes.resource_claim import ResourceClaims
from pumice.controllers.kubernetes.resource_quota import ResourceQuotas
from pumice.controllers.kubernetes.role_aggregation import RoleAggregation
from pumice.controllers.kubernetes.service_account import ServiceAccounts
from pumice.controllers.kubernetes.statefulset import StatefulSets
from pumice.controllers.kubernetes.volume_protection import ClaimProtection, VolumeProtection
from pumice.controllers.pod_bursts import MOST_WAITING
from pumice.controllers.volcano.cronjob import CronJobs
from pumice.controllers.volcano.hypernode import HyperNodeCounts
from pumice.controllers.volcano.hypernode_discovery import HyperNodeDiscovery
from pumice.controllers.volcano.job.controller import MAX_FAILURES, Jobs
from pumice.controllers.volcano.job.plugins import KeyPairs
from pumice.controllers.volcano.job_ttl import JobTtl
from pumice.controllers.volcano.jobflow import JobFlows, Probe, Reachable
from pumice.controllers.volcano.jobtemplate import JobTemplates
from pumice.controllers.volcano.podgroup import PodGroups
from pumice.controllers.volcano.queue import Queues
from pumice.controllers.volcano.sharding import NodeShards


def always_reachable(probe: Probe) -> bool:
    """Answer every probe with True: for clusters without a network, such as simulated ones."""
    return True


def volcano_controllers(
    key_pairs: KeyPairs,
    scheduler_names: Iterable[str] = (SCHEDULER_NAME,),
    discovery: HyperNodeDiscovery | None = None,
    reachable: Reachable = always_reachable,
    inherit_owner_annotations: bool = True,
    gangs_of_others: bool = True,
    max_failures: int = MAX_FAILURES,
    sharding: NodeShards | None = None,
    most_waiting: int = MOST_WAITING,
) -> list[Controller]:
    """The controllers that Volcano's controller manager runs; without `sharding` nobody keeps NodeShards, as is its default."""
    return [
        Queues(),
        PodGroups(scheduler_names, inherit_owner_annotations, gangs_of_others),
        Jobs(key_pairs, max_failures, most_waiting),
        JobTtl(),
        JobTemplates(),
        JobFlows(reachable),
        CronJobs(),
        discovery or HyperNodeDiscovery(),
        HyperNodeCounts(),
        *([] if sharding is None else [sharding]),
    ]


def kubernetes_controllers(most_waiting: int = MOST_WAITING, gates: Set[str] = frozenset()) -> list[Controller]:
    """The controllers that a cluster without Kubernetes' controller manager needs besides Volcano's; its store does garbage collection. Of
    the pods of one owner, `most_waiting` may wait for a node at a time. `gates` are the feature gates of the cluster that are on."""
    return [
        NodeLifecycle(),
        ReplicaSets(kinds.REPLICA_SET, most_waiting),
        ReplicaSets(kinds.REPLICATION_CONTROLLER, most_waiting),
        Deployments(),
        StatefulSets(most_waiting),
        DaemonSets(),
        BatchJobs(most_waiting, "WorkloadWithJob" in gates),
        JobTtl(kinds.BATCH_JOB),
        CronJobs(kinds.BATCH_CRON_JOB, kinds.BATCH_JOB),
        DisruptionBudgets(),
        ResourceQuotas(),
        ResourceClaims("DRAWorkloadResourceClaims" in gates),
        ServiceAccounts(),
        ServiceEndpoints(),
        RoleAggregation(),
        Volumes(),
        VolumeProtection(),
        ClaimProtection(),
        *([PodGroupProtection()] if "GenericWorkload" in gates else []),
    ]
