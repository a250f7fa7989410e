"""The annotations and labels by which users, schedulers and controllers exchange facts: each is defined here once, with its meaning.

Each comment begins with the kind of object that carries the key. A label is marked as one; all others are annotations, some of which
Volcano reads as labels, too.
"""

# A pod and its group
GROUP_NAME = "scheduling.k8s.io/group-name"  #: pod: the PodGroup it belongs to
GROUP_MIN_MEMBER = "scheduling.volcano.sh/group-min-member"  #: owner of plain pods: the minMember of their PodGroup
SHADOW_MIN_MEMBER = "scheduling.k8s.io/group-min-member"  #: plain pod: the minMember of its shadow PodGroup, as in kube-batch
QUEUE_NAME = "scheduling.volcano.sh/queue-name"  #: plain pod, namespace: the queue of its PodGroup
QUEUE_GATE = "scheduling.volcano.sh/queue-allocation-gate"  #: pod: a scheduling gate of this name holds it until its queue has room
RESOURCE_GROUP = "volcano.sh/resource-group"  #: pod: the resource group that admission applies to it
TASK_PRIORITY = "volcano.sh/task-priority"  #: pod: its priority among the tasks of its job
SLA_WAITING_TIME = "volcano.sh/sla-waiting-time"  #: PodGroup: how long it may wait before it is served first
OLD_SLA_WAITING_TIME = "sla-waiting-time"  #: PodGroup: the older name of the annotation above

# Which pods may be evicted, and when
PREEMPTABLE = "volcano.sh/preemptable"  #: pod, PodGroup: whether it may be preempted
COOLDOWN_TIME = "volcano.sh/cooldown-time"  #: pod, also a label: for how long after its start it is not evicted
HELD_PLACES = "pumice.io/held-places"  #: PodGroup: places that are held for pods that come; the scheduler writes it
STAYS = "pumice.io/stays"  #: pod, PodGroup: "true" keeps the action consolidate from moving it
REVOCABLE_ZONE = "volcano.sh/revocable-zone"  #: pod: may run on nodes that are lent for a time of day; label of a node: it is such a node
JDB_MIN_AVAILABLE = "volcano.sh/jdb-min-available"  #: PodGroup: how many pods keep running when lent nodes are taken back
JDB_MAX_UNAVAILABLE = "volcano.sh/jdb-max-unavailable"  #: PodGroup: how many pods may be unavailable then

# Where pods go
TOPOLOGY_MODE = "volcano.sh/network-topology-mode"  #: owner of plain pods: the network topology mode of their PodGroup, "hard" or "soft"
TOPOLOGY_HIGHEST_TIER = "volcano.sh/network-topology-highest-tier"  #: owner of plain pods: the highest tier that "hard" allows
ALLOCATED_HYPERNODE = "volcano.sh/job-allocated-hypernode"  #: PodGroup: the HyperNode that holds its pods; the scheduler writes it
NETWORK_PROFILE = "volcano.sh/network-topology-profile"  #: label of a HyperNode: the configured topology that it belongs to
NETWORK_SOURCE = "volcano.sh/network-topology-source"  #: label of a HyperNode: the source from which it was discovered
NUMA_POLICY = "volcano.sh/numa-topology-policy"  #: pod: the topology manager's policy that its nodes must have
NUMA_DECISION = "volcano.sh/topology-decision"  #: pod: its CPUs by NUMA node; the scheduler writes it
TASK_AFFINITY = "volcano.sh/task-topology-affinity"  #: PodGroup: roles that go to one node
TASK_ANTI_AFFINITY = "volcano.sh/task-topology-anti-affinity"  #: PodGroup: roles that go to different nodes
TASK_ORDER = "volcano.sh/task-topology-task-order"  #: PodGroup: the order of its roles
SCORING_TYPE = "volcano.sh/resource-strategy-scoring-type"  #: pod: its scoring (most or least allocated), in place of the plugin's
SCORING_WEIGHT = "volcano.sh/resource-strategy-weight"  #: pod: its weights of resources, in place of the plugin's
NODE_GROUP = "volcano.sh/nodegroup-name"  #: label of a node: its group, which queues have affinity to
NODE_GROUP_LIMITS = "volcano.sh/nodegroup-resource-limits"  #: queue: how much of each group of nodes it may use
OVERSUBSCRIPTION = "volcano.sh/oversubscription-"  #: node, with a resource name after it: the amount beyond allocatable

# Programs
PROGRAM_ADDRESS = "pumice.io/program-address"  #: service: HOST:PORT where its program listens, as the containers of its pods are simulated

# Devices
DEVICE_LOCK = "volcano.sh/mutex.lock"  #: node: since when its device plugin has been handing out cards
GPU_INDEX = "volcano.sh/gpu-index"  #: pod: the numbers of its cards; the scheduler writes it
GPU_TIME = "volcano.sh/predicate-time"  #: pod: when its cards were chosen
GPU_UNHEALTHY = "volcano.sh/gpu-unhealthy-ids"  #: node: cards that no pod gets
VGPU_REGISTER = "volcano.sh/node-vgpu-register"  #: node: its cards
VGPU_HANDSHAKE = "volcano.sh/node-vgpu-handshake"  #: node: whether its device plugin answers
VGPU_IDS = "volcano.sh/vgpu-ids-new"  #: pod: its shares of cards; the scheduler writes it
VGPU_TO_ALLOCATE = "volcano.sh/devices-to-allocate"  #: pod: the shares that the device plugin has to hand out
VGPU_NODE = "volcano.sh/vgpu-node"  #: pod: the node that has these cards
VGPU_TIME = "volcano.sh/vgpu-time"  #: pod: when its shares were chosen
VGPU_PHASE = "volcano.sh/bind-phase"  #: pod: the phase of the hand-out, such as "allocating"
VGPU_BIND_TIME = "volcano.sh/bind-time"  #: pod: when it was bound
VGPU_MODE = "volcano.sh/vgpu-mode"  #: pod: how a card is shared
VGPU_MODELS = "nvidia.com/use-gputype"  #: pod: the card models that it wants
VGPU_OTHER_MODELS = "nvidia.com/nouse-gputype"  #: pod: the card models that it does not want
VGPU_CARDS = "volcano.sh/vgpu-use-gpuuuid"  #: pod: the UUIDs of the cards that it wants
VGPU_OTHER_CARDS = "volcano.sh/vgpu-nouse-gpuuuid"  #: pod: the UUIDs of the cards that it does not want
VGPU_GROUP_POLICY = "volcano.sh/vgpu-podgroup-policy"  #: pod: "spread" puts the pods of a job on different cards

# What controllers write on the objects that they create for a Job, a JobFlow or a CronJob
TASK_SPEC = "volcano.sh/task-spec"  #: pod, also a label: its role, which is a task of the Job
TASK_INDEX = "volcano.sh/task-index"  #: pod, also a label: its index within the role
TEMPLATE_UID = "volcano.sh/template-uid"  #: pod: the Job and the task from whose template it was created
JOB_NAME = "volcano.sh/job-name"  #: pod, also a label; label of objects that job plugins create: the Job's name
JOB_NAMESPACE = "volcano.sh/job-namespace"  #: label of a pod: the Job's namespace
JOB_VERSION = "volcano.sh/job-version"  #: pod: the Job's version, which grows with every restart
JOB_RETRY_COUNT = "volcano.sh/job-retry-count"  #: pod: how often the Job was tried again
JOB_QUEUE = "volcano.sh/queue-name"  #: pod, also a label: the Job's queue
JOB_TYPE = "volcano.sh/job-type"  #: label of a Job: what `pumice job` shows as its type
JOB_FORWARDING = "volcano.sh/job-forwarding"  #: Job and pod: it is meant for another cluster
PARTITION_ID = "volcano.sh/partition-id"  #: label of a pod: its partition of the role
KILLED_ON_PURPOSE = "pumice.io/killed-on-purpose"  #: pod: a controller ends it, which is no event for its Job's policies
CREATED_BY_FLOW = "volcano.sh/createdByJobFlow"  #: Job, also a label: the JobFlow that made it
CREATED_BY_TEMPLATE = "volcano.sh/createdByJobTemplate"  #: Job, also a label: the JobTemplate that it was created from
VOLCANO_SCHEDULED_AT = "volcano.sh/cronjob-scheduled-timestamp"  #: Job of a Volcano CronJob: the scheduled time that it was created for

# Queues
CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"  #: queue: it was closed with its parent queue, and opens with it
HIERARCHY = "volcano.sh/hierarchy"  #: queue: its path from the root, for the hierarchy of drf
HIERARCHY_WEIGHTS = "volcano.sh/hierarchy-weights"  #: queue: the weights along that path

# Kubernetes' own
HOSTNAME = "kubernetes.io/hostname"  #: label of a node: its name; as a topology key, each node is a domain
ZONE_LABEL, REGION_LABEL = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"  #: labels of nodes and volumes: their place
OLD_ZONE_LABEL = "failure-domain.beta.kubernetes.io/zone"  #: the older name of ZONE_LABEL
OLD_REGION_LABEL = "failure-domain.beta.kubernetes.io/region"  #: the older name of REGION_LABEL
NAMESPACE_NAME = "kubernetes.io/metadata.name"  #: label of a namespace: its name
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"  #: any object: what `kubectl apply` sent last
SELECTED_NODE = "volume.kubernetes.io/selected-node"  #: claim: the node for which its volume is to be provisioned
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"  #: claim: it is bound to its volume
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"  #: claim, volume: a controller bound it, not its author
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"  #: volume: the provisioner that created it
OLD_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"  #: claim, volume: its class, from before there was a field for it
DEFAULT_STORAGE_CLASS = "storageclass.kubernetes.io/is-default-class"  #: StorageClass: "true" makes it the class of claims that name none
DEFAULT_INGRESS_CLASS = "ingressclass.kubernetes.io/is-default-class"  #: IngressClass: "true" makes it that of ingresses without one
POD_CLAIM = "resource.kubernetes.io/pod-claim-name"  #: ResourceClaim: its name in the spec of the pod that it was created for
EXTENDED_CLAIM = "resource.kubernetes.io/extended-resource-claim"  #: ResourceClaim: "true" if the scheduler created it
CRON_SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"  #: Job of a CronJob: the scheduled time that it was created for
GROUP_PROTECTION = "scheduling.k8s.io/podgroup-protection"  #: finalizer of Kubernetes' own PodGroup: pods that run may name it
VOLUME_PROTECTION = "kubernetes.io/pv-protection"  #: finalizer of a volume: a claim may be bound to it
CLAIM_PROTECTION = "kubernetes.io/pvc-protection"  #: finalizer of a claim: pods on nodes may use it
GROUP_TEMPLATE = "scheduling.k8s.io/group-template-name"  #: Job: the template of its owner's Workload from which it makes its PodGroup
JOB_TRACKING = "batch.kubernetes.io/job-tracking"  #: finalizer of a Job's pod: its end is not counted yet
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"  #: pod of a Job, also a label: its index
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"  #: pod of a Job: earlier failures of its index that count
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"  #: pod of a Job: earlier failures of its index that do not count
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"  #: pod: of too many pods, the one with the lowest cost is deleted first
DEPLOYMENT_REVISION = "deployment.kubernetes.io/revision"  #: Deployment, ReplicaSet: its revision
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"  #: ReplicaSet: the revisions that it was before it was used again
TEMPLATE_HASH = "pod-template-hash"  #: label of a ReplicaSet and its pods: the hash of the Deployment's template
CONTROLLER_REVISION_HASH = "controller-revision-hash"  #: label of a pod of a StatefulSet or DaemonSet: its revision
POD_INDEX = "apps.kubernetes.io/pod-index"  #: label of a pod of a StatefulSet: its index
STATEFUL_POD_NAME = "statefulset.kubernetes.io/pod-name"  #: label of a pod of a StatefulSet: its name

# The embedded cluster
KUBELET = "pumice.io/kubelet"  #: node: "stopped" stops its simulated kubelet, so that the node fails
NODE_POOL = "pumice.io/pool"  #: label of a node: the pool of `pumice up --nodes`
RUN_SECONDS = "pumice.io/run-seconds"  #: pod: how long it runs under the built-in stages
CPU_USAGE, MEMORY_USAGE = "pumice.io/cpu-usage", "pumice.io/memory-usage"  #: pod: what `kubectl top` shows

# Run times, for policies that plan ahead and for simulations
ESTIMATE = "pumice.io/estimate"  #: PodGroup: how long its pods are expected to run, such as 1h30m
RUN_TIME = "pumice.io/run-time"  #: pod, PodGroup: how long it runs in a simulation
USER = "pumice.io/user"  #: PodGroup: the user that the job belongs to, if queue and namespace do not show it
CHECKPOINT = "pumice.io/checkpoint-every"  #: PodGroup: how often its pods save their work, which then survives an eviction
ALIBABA_GPU_INDEX = "alibabacloud.com/gpu-index"  #: pod: its cards on the node, such as 0-2-3
GPU_MODEL = "alibabacloud.com/gpu-card-model"  #: label of a node: the model of its cards

#: what a scheduler writes on pods and PodGroups about the places that they got
OF_PLACES = frozenset(
    {
        *(ALIBABA_GPU_INDEX, ALLOCATED_HYPERNODE, GPU_INDEX, GPU_TIME, HELD_PLACES, NUMA_DECISION),
        *(VGPU_BIND_TIME, VGPU_IDS, VGPU_NODE, VGPU_PHASE, VGPU_TIME, VGPU_TO_ALLOCATE),
    }
)
