"""All controllers, by the part that they play: Volcano's own, and the few of Kubernetes' that a cluster of our own needs."""

from __future__ import annotations

from collections.abc import Iterable

from pumice.api.names import SCHEDULER_NAME
from pumice.controllers import kinds
from pumice.controllers.controller import Controller
from pumice.controllers.cron.controller import CronJobs
from pumice.controllers.disruption import DisruptionBudgets
from pumice.controllers.flow.controller import JobFlows, JobTemplates
from pumice.controllers.flow.progress import Probe, Reachable
from pumice.controllers.hypernode import HyperNodeCounts
from pumice.controllers.hypernode_discovery import HyperNodeDiscovery
from pumice.controllers.job.controller import MAX_FAILURES, Jobs
from pumice.controllers.job.plugins import KeyPairs
from pumice.controllers.job_ttl import JobTtl
from pumice.controllers.node_lifecycle import NodeLifecycle
from pumice.controllers.podgroup import PodGroups
from pumice.controllers.queue import Queues
from pumice.controllers.resource_claim import ResourceClaims
from pumice.controllers.resource_quota import ResourceQuotas
from pumice.controllers.service_account import ServiceAccounts
from pumice.controllers.volumes import Volumes
from pumice.controllers.workloads.batch_job import BatchJobs
from pumice.controllers.workloads.daemonset import DaemonSets
from pumice.controllers.workloads.deployment import Deployments
from pumice.controllers.workloads.replicaset import ReplicaSets
from pumice.controllers.workloads.statefulset import StatefulSets


def always_reachable(probe: Probe) -> bool:
    """For clusters without a network, such as simulated ones."""
    return True


def volcano_controllers(
    key_pairs: KeyPairs,
    scheduler_names: Iterable[str] = (SCHEDULER_NAME,),
    discovery: HyperNodeDiscovery | None = None,
    reachable: Reachable = always_reachable,
    inherit_owner_annotations: bool = True,
    max_failures: int = MAX_FAILURES,
) -> list[Controller]:
    """What Volcano's controller manager runs."""
    return [
        Queues(),
        PodGroups(scheduler_names, inherit_owner_annotations),
        Jobs(key_pairs, max_failures),
        JobTtl(),
        JobTemplates(),
        JobFlows(reachable),
        CronJobs(),
        discovery or HyperNodeDiscovery(),
        HyperNodeCounts(),
    ]


def kubernetes_controllers() -> list[Controller]:
    """What a cluster needs beside Volcano, where Kubernetes' controller manager does not run and the store collects what is owned."""
    return [
        NodeLifecycle(),
        ReplicaSets(),
        ReplicaSets(kinds.REPLICATION_CONTROLLER),
        Deployments(),
        StatefulSets(),
        DaemonSets(),
        BatchJobs(),
        JobTtl(kinds.BATCH_JOB),
        CronJobs(kinds.BATCH_CRON_JOB, kinds.BATCH_JOB),
        DisruptionBudgets(),
        ResourceQuotas(),
        ResourceClaims(),
        ServiceAccounts(),
        Volumes(),
    ]
