"""Names that Volcano uses by default."""

SCHEDULER_NAME = "volcano"
KUBE_BATCH_GROUP, KUBE_BATCH_NAME = "scheduling.incubator.k8s.io", "kube-batch"  #: kube-batch's API group and schedulerName
DEFAULT_QUEUE = "default"  #: the queue of PodGroups that name none
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}  #: PriorityClasses of every cluster
ROOT_QUEUE = "root"  #: the queue above all others


def required_queues(default: str = DEFAULT_QUEUE) -> dict[str, bool]:
    """The queues that must exist, and whether others may reclaim what they hold."""
    return {ROOT_QUEUE: False, default: True}
