"""The annotations, labels and finalizers by which controllers, scheduler and users understand each other."""

from __future__ import annotations

GROUP_NAME = "scheduling.k8s.io/group-name"
QUEUE_NAME = "scheduling.volcano.sh/queue-name"
GROUP_MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
QUEUE_GATE = "scheduling.volcano.sh/queue-allocation-gate"

PREEMPTABLE = "volcano.sh/preemptable"
COOLDOWN_TIME = "volcano.sh/cooldown-time"
REVOCABLE_ZONE = "volcano.sh/revocable-zone"
JDB_MIN_AVAILABLE = "volcano.sh/jdb-min-available"
JDB_MAX_UNAVAILABLE = "volcano.sh/jdb-max-unavailable"
TOPOLOGY_MODE = "volcano.sh/network-topology-mode"
TOPOLOGY_HIGHEST_TIER = "volcano.sh/network-topology-highest-tier"
NUMA_POLICY = "volcano.sh/numa-topology-policy"

TASK_SPEC = "volcano.sh/task-spec"
TASK_INDEX = "volcano.sh/task-index"
TEMPLATE_UID = "volcano.sh/template-uid"
JOB_NAME = "volcano.sh/job-name"
JOB_NAMESPACE = "volcano.sh/job-namespace"
JOB_VERSION = "volcano.sh/job-version"
JOB_RETRY_COUNT = "volcano.sh/job-retry-count"
JOB_QUEUE = "volcano.sh/queue-name"
JOB_FORWARDING = "volcano.sh/job-forwarding"
PARTITION_ID = "volcano.sh/partition-id"
KILLED_ON_PURPOSE = "pumice.io/killed-on-purpose"  #: marks a pod whose end is no event for its job's policies

CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"
HIERARCHY = "volcano.sh/hierarchy"
HIERARCHY_WEIGHTS = "volcano.sh/hierarchy-weights"

CREATED_BY_FLOW = "volcano.sh/createdByJobFlow"
CREATED_BY_TEMPLATE = "volcano.sh/createdByJobTemplate"

SCHEDULER_NAME = "volcano"
