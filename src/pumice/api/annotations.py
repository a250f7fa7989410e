"""Every annotation and label by which users, schedulers and controllers understand each other: each stands here once, with what it does.

A label says so; all others are annotations, some of which Volcano takes as labels as well.
"""

from __future__ import annotations

# A pod and its group
GROUP_NAME = "scheduling.k8s.io/group-name"  #: pod: the PodGroup it belongs to
GROUP_MIN_MEMBER = "scheduling.volcano.sh/group-min-member"  #: owner of plain pods: they are a gang of at least so many
SHADOW_MIN_MEMBER = "scheduling.k8s.io/group-min-member"  #: plain pod, kube-batch's: the same, where nobody makes a PodGroup
QUEUE_NAME = "scheduling.volcano.sh/queue-name"  #: plain pod, namespace: the queue of its PodGroup
QUEUE_GATE = "scheduling.volcano.sh/queue-allocation-gate"  #: pod: it holds a scheduling gate of this name until its queue has room
RESOURCE_GROUP = "volcano.sh/resource-group"  #: pod: the resource group that it asks admission for
TASK_PRIORITY = "volcano.sh/task-priority"  #: pod: its place among the tasks of its job
SLA_WAITING_TIME = "volcano.sh/sla-waiting-time"  #: PodGroup: how long it may wait before it is served first
OLD_SLA_WAITING_TIME = "sla-waiting-time"  #: the same

# Who may be evicted, and when
PREEMPTABLE = "volcano.sh/preemptable"  #: pod, PodGroup: whether it may be preempted
COOLDOWN_TIME = "volcano.sh/cooldown-time"  #: pod, also a label: how long after its start it is spared
REVOCABLE_ZONE = "volcano.sh/revocable-zone"  #: pod, and label of a node: may run on, or is one of, nodes lent for a time of the day
JDB_MIN_AVAILABLE = "volcano.sh/jdb-min-available"  #: PodGroup: pods that stay when lent nodes are taken back
JDB_MAX_UNAVAILABLE = "volcano.sh/jdb-max-unavailable"  #: PodGroup: pods that may go at once then

# Where pods go
TOPOLOGY_MODE = "volcano.sh/network-topology-mode"  #: owner of plain pods: their group's network topology, "hard" or "soft"
TOPOLOGY_HIGHEST_TIER = "volcano.sh/network-topology-highest-tier"  #: owner of plain pods: the highest tier that "hard" allows
ALLOCATED_HYPERNODE = "volcano.sh/job-allocated-hypernode"  #: PodGroup: the HyperNode that holds its pods; the scheduler writes it
NETWORK_PROFILE = "volcano.sh/network-topology-profile"  #: label of a HyperNode: the configured topology that it is of
NETWORK_SOURCE = "volcano.sh/network-topology-source"  #: label of a HyperNode: who discovered it
NUMA_POLICY = "volcano.sh/numa-topology-policy"  #: pod: the topology manager's policy that its nodes must have
NUMA_DECISION = "volcano.sh/topology-decision"  #: pod: its CPUs by NUMA node; the scheduler writes it
TASK_AFFINITY = "volcano.sh/task-topology-affinity"  #: PodGroup: roles that go to one node
TASK_ANTI_AFFINITY = "volcano.sh/task-topology-anti-affinity"  #: PodGroup: roles that go to different nodes
TASK_ORDER = "volcano.sh/task-topology-task-order"  #: PodGroup: the order of its roles
SCORING_TYPE = "volcano.sh/resource-strategy-scoring-type"  #: pod: most or least allocated, in place of the plugin's
SCORING_WEIGHT = "volcano.sh/resource-strategy-weight"  #: pod: weights of resources, in place of the plugin's
NODE_GROUP = "volcano.sh/nodegroup-name"  #: label of a node: its group, which queues have affinity to
NODE_GROUP_LIMITS = "volcano.sh/nodegroup-resource-limits"  #: queue: what it may have of each group of nodes
OVERSUBSCRIPTION = "volcano.sh/oversubscription-"  #: node: before a resource: how much more than allocatable there is of it

# Devices
DEVICE_LOCK = "volcano.sh/mutex.lock"  #: node: since when a device plugin hands out cards there
GPU_INDEX = "volcano.sh/gpu-index"  #: pod: the numbers of its cards; the scheduler writes it
GPU_TIME = "volcano.sh/predicate-time"  #: pod: when they were chosen
GPU_UNHEALTHY = "volcano.sh/gpu-unhealthy-ids"  #: node: cards that nobody gets
VGPU_REGISTER = "volcano.sh/node-vgpu-register"  #: node: its cards
VGPU_HANDSHAKE = "volcano.sh/node-vgpu-handshake"  #: node: whether its device plugin answers
VGPU_IDS = "volcano.sh/vgpu-ids-new"  #: pod: its parts of cards; the scheduler writes it
VGPU_TO_ALLOCATE = "volcano.sh/devices-to-allocate"  #: pod: those of them that the device plugin has to hand out
VGPU_NODE = "volcano.sh/vgpu-node"  #: pod: the node whose cards they are
VGPU_TIME = "volcano.sh/vgpu-time"  #: pod: when they were chosen
VGPU_PHASE = "volcano.sh/bind-phase"  #: pod: how far handing out is
VGPU_BIND_TIME = "volcano.sh/bind-time"  #: pod: since when it is bound
VGPU_MODE = "volcano.sh/vgpu-mode"  #: pod: how a card is shared
VGPU_MODELS = "nvidia.com/use-gputype"  #: pod: models that it wants
VGPU_OTHER_MODELS = "nvidia.com/nouse-gputype"  #: pod: models that it does not want
VGPU_CARDS = "volcano.sh/vgpu-use-gpuuuid"  #: pod: cards that it wants
VGPU_OTHER_CARDS = "volcano.sh/vgpu-nouse-gpuuuid"  #: pod: cards that it does not want
VGPU_GROUP_POLICY = "volcano.sh/vgpu-podgroup-policy"  #: pod: "spread" puts the pods of a job on different cards

# What controllers write on what they make of a Job, a JobFlow, a CronJob
TASK_SPEC = "volcano.sh/task-spec"  #: pod, also a label: its role, the task of the Job
TASK_INDEX = "volcano.sh/task-index"  #: pod, also a label: its number in the role
TEMPLATE_UID = "volcano.sh/template-uid"  #: pod: the task of the Job that it was made of
JOB_NAME = "volcano.sh/job-name"  #: pod, also a label, and label of what job plugins make: the Job
JOB_NAMESPACE = "volcano.sh/job-namespace"  #: label of a pod: the Job's namespace
JOB_VERSION = "volcano.sh/job-version"  #: pod: the Job's version, which grows with every restart
JOB_RETRY_COUNT = "volcano.sh/job-retry-count"  #: pod: how often the Job was tried again
JOB_QUEUE = "volcano.sh/queue-name"  #: pod, also a label: the Job's queue
JOB_TYPE = "volcano.sh/job-type"  #: label of a Job: what `pumice job` shows as its type
JOB_FORWARDING = "volcano.sh/job-forwarding"  #: Job and pod: made for another cluster
PARTITION_ID = "volcano.sh/partition-id"  #: label of a pod: its partition of the role
KILLED_ON_PURPOSE = "pumice.io/killed-on-purpose"  #: pod: its end is no event for its Job's policies
CREATED_BY_FLOW = "volcano.sh/createdByJobFlow"  #: Job, also a label: the JobFlow that made it
CREATED_BY_TEMPLATE = "volcano.sh/createdByJobTemplate"  #: Job, also a label: the JobTemplate that it was made of
VOLCANO_SCHEDULED_AT = "volcano.sh/cronjob-scheduled-timestamp"  #: Job of a Volcano CronJob: the time that it was made for

# Queues
CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"  #: queue: it was closed with the queue above it, and opens with it
HIERARCHY = "volcano.sh/hierarchy"  #: queue: its path, for drf's hierarchy
HIERARCHY_WEIGHTS = "volcano.sh/hierarchy-weights"  #: queue: the weights along it

# Kubernetes' own
HOSTNAME = "kubernetes.io/hostname"  #: label of a node: its name, the topology of one node
ZONE_LABEL, REGION_LABEL = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"  #: labels of nodes and volumes: where they are
OLD_ZONE_LABEL = "failure-domain.beta.kubernetes.io/zone"  #: the same
OLD_REGION_LABEL = "failure-domain.beta.kubernetes.io/region"  #: the same
NAMESPACE_NAME = "kubernetes.io/metadata.name"  #: label of a namespace: its name
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"  #: what `kubectl apply` sent last
SELECTED_NODE = "volume.kubernetes.io/selected-node"  #: claim: the node where somebody is making, or is to make, its volume
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"  #: claim: it has its volume
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"  #: claim, volume: bound by a controller, not by their author
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"  #: volume: who made it
OLD_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"  #: claim, volume: its class, before the field
DEFAULT_STORAGE_CLASS = "storageclass.kubernetes.io/is-default-class"  #: class: "true" on that of claims that name none
DEFAULT_INGRESS_CLASS = "ingressclass.kubernetes.io/is-default-class"  #: the same of ingresses
POD_CLAIM = "resource.kubernetes.io/pod-claim-name"  #: ResourceClaim: what the pod that it was made for calls it
EXTENDED_CLAIM = "resource.kubernetes.io/extended-resource-claim"  #: ResourceClaim: "true" on those of the scheduler's making
CRON_SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"  #: Job of a CronJob: the time that it was made for
JOB_TRACKING = "batch.kubernetes.io/job-tracking"  #: finalizer of a Job's pod: its end is not counted yet
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"  #: pod of a Job, also a label: its index
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"  #: pod of a Job: failures of its index before it
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"  #: pod of a Job: those that do not count
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"  #: pod: the lowest goes first when there are too many
DEPLOYMENT_REVISION = "deployment.kubernetes.io/revision"  #: Deployment, ReplicaSet: its revision
TEMPLATE_HASH = "pod-template-hash"  #: label of a ReplicaSet and its pods: which template of the Deployment
CONTROLLER_REVISION_HASH = "controller-revision-hash"  #: label of a pod of a StatefulSet or DaemonSet: which revision
POD_INDEX = "apps.kubernetes.io/pod-index"  #: label of a pod of a StatefulSet: its number
STATEFUL_POD_NAME = "statefulset.kubernetes.io/pod-name"  #: label of the same: its name

# The embedded cluster
KUBELET = "pumice.io/kubelet"  #: node: "stopped" fails it
NODE_POOL = "pumice.io/pool"  #: label of a node: the pool of `pumice up --nodes`
RUN_SECONDS = "pumice.io/run-seconds"  #: pod: how long it runs, as the built-in stages have it
CPU_USAGE, MEMORY_USAGE = "pumice.io/cpu-usage", "pumice.io/memory-usage"  #: pod: what `kubectl top` shows

# Run times: what policies that plan ahead are told, and what simulations read
ESTIMATE = "pumice.io/estimate"  #: PodGroup: how long its pods are expected to run, such as 1h30m
RUN_TIME = "pumice.io/run-time"  #: pod, PodGroup: how long it runs in a simulation
USER = "pumice.io/user"  #: PodGroup: whose job it is, where queues and namespaces do not tell
CHECKPOINT = "pumice.io/checkpoint-every"  #: PodGroup: work older than this survives an eviction
ALIBABA_GPU_INDEX = "alibabacloud.com/gpu-index"  #: pod: its cards on the node, such as 0-2-3
GPU_MODEL = "alibabacloud.com/gpu-card-model"  #: label of a node: the model of its cards
