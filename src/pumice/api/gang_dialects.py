"""Gangs as other projects write them: a table with one row for each kind of object that means a gang.

A row says how a pod tells its gang, how many of its pods must start together, which roles it has and which of them leads. The rules that
read the table are in `controllers/volcano/foreign_gangs.py`. All these objects are only read, but for the status of Kubernetes' own
PodGroups.

A pod tells its gang in one of three ways: by a field or a label that names a PodGroup, by the owners above it, or by a label of its
operator that names the owner.
"""

from typing import NamedTuple

from pumice.api.kinds import COMPOSITE_POD_GROUPS, NATIVE_POD_GROUPS, Kind

COSCHEDULING_POD_GROUPS = Kind("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups")
JOB_SETS = Kind("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets")
TRAIN_JOBS = Kind("trainer.kubeflow.org", "v1alpha1", "TrainJob", "trainjobs")
RAY_CLUSTERS = Kind("ray.io", "v1", "RayCluster", "rayclusters")
RAY_JOBS = Kind("ray.io", "v1", "RayJob", "rayjobs")
LEADER_WORKER_SETS = Kind("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets")
SPARK_APPLICATIONS = Kind("sparkoperator.k8s.io", "v1beta2", "SparkApplication", "sparkapplications")
WORKFLOWS = Kind("argoproj.io", "v1alpha1", "Workflow", "workflows")


class Roles(NamedTuple):
    """Where an owner states its roles: one at `path` (then `name` is given), a list of them (`named_by`), or a map by name."""

    path: str
    name: str = ""
    named_by: str = ""  #: in a list: the field with the name of a role
    counts: tuple[str, ...] = ("replicas",)  #: the fields whose product is the number of pods; a field that is absent counts as 1
    least: tuple[str, ...] = ()  #: the same for the minimum of an owner that is elastic
    at_most: str = ""  #: a field with an upper bound of the last count
    fewer: int = 0  #: by how many pods the product is too great
    suspended: str = ""  #: a flag: the role has no pods
    led: str = ""  #: an annotation of the owner or of the role's own template: other pods come once the leaders, `least`, have nodes
    not_led: str = ""  #: an annotation under which they come at once all the same
    template: str = "template"  #: its pod template; the first of several, by |, that is there


class SubGroups(NamedTuple):
    """Parts of a gang, each of which is to be in one domain of a node label."""

    topology: str  #: the annotation of the owner that names the label
    label: str  #: the label of a pod that tells its part
    size: str  #: the field with the number of pods of a part
    whole: str  #: the field with the number of pods of the gang


class Dialect(NamedTuple):
    """How one kind of object means a gang."""

    kind: Kind
    field: str = ""  #: the field of a pod that names its gang's object. Its pods wait until that exists
    group_label: str = ""  #: the label of a pod that does the same
    owner_label: str = ""  #: the label by which an operator names the owner: it counts where the chain of owners is not known
    roles: tuple[Roles, ...] = ()
    role_label: str = ""  #: the label of a pod with the name of its role, in small letters; the first of several, by |, that it has
    by_rank: bool = False  #: that label is a number: 0 is the first role, all others are the last
    leader: tuple[str, ...] = ()  #: roles without which no other pod is of use
    minimum: tuple[str, ...] = ()  #: fields of the owner with the minimum, the first that is set; else all pods, or 1 if there are no roles
    elastic: str = ""  #: a flag of the owner: the minimum is that of `Roles.least`
    split: tuple[str, ...] = ()  #: labels of a pod, the first that it has: each value is a gang of its own
    copies: str = ""  #: the field with the number of these gangs
    in_turn: tuple[tuple[str, str], ...] = ()  #: if a field has the value ("": any), roles start one after another: each is a gang
    in_turn_by: str = ""  #: an annotation that says the same
    sub_groups: SubGroups | None = None
    queue: str = ""  #: the field with its queue
    priority_class: str = ""  #: the field with its priority class
    priority_label: str = ""  #: the label with its priority class
    above: bool = False  #: it stands above the gang's owner: only its queue counts
    alone: bool = False  #: each of its pods is for itself


def _kubeflow(kind: str, roles: str, *, minimum: tuple[str, ...] = (), in_turn: tuple[tuple[str, str], ...] = ()) -> Dialect:
    policy = "spec.runPolicy.schedulingPolicy"
    return Dialect(
        Kind("kubeflow.org", "v1", kind, f"{kind.lower()}s"),
        owner_label="training.kubeflow.org/job-name",
        roles=(Roles(f"spec.{roles}"),),
        role_label="training.kubeflow.org/replica-type|training.kubeflow.org/job-role",  # the latter is mpi-operator's
        leader=("master", "chief", "launcher"),
        minimum=(f"{policy}.minAvailable", *minimum),
        in_turn=in_turn,
        queue=f"{policy}.queue",
        priority_class=f"{policy}.priorityClass",
    )


DIALECTS = (
    Dialect(
        NATIVE_POD_GROUPS,
        field="spec.schedulingGroup.podGroupName",
        minimum=("spec.schedulingPolicy.gang.minCount",),
        priority_class="spec.priorityClassName",
    ),
    Dialect(COSCHEDULING_POD_GROUPS, group_label="scheduling.x-k8s.io/pod-group", minimum=("spec.minMember",)),
    Dialect(
        JOB_SETS,
        owner_label="jobset.sigs.k8s.io/jobset-name",
        roles=(
            Roles(
                "spec.replicatedJobs",
                named_by="name",
                counts=("replicas", "template.spec.parallelism"),
                least=("replicas",),
                at_most="template.spec.completions",
                led="alpha.jobset.sigs.k8s.io/exclusive-topology",  # its webhook lets the other pods of a Job in once the first has a node
                not_led="alpha.jobset.sigs.k8s.io/node-selector",
                template="template.spec.template",
            ),
        ),
        role_label="jobset.sigs.k8s.io/replicatedjob-name",
        in_turn=(("spec.startupPolicy.startupPolicyOrder", "InOrder"), ("spec.replicatedJobs.dependsOn", "")),
    ),
    Dialect(TRAIN_JOBS, above=True),  # its JobSet is the gang
    _kubeflow("PyTorchJob", "pytorchReplicaSpecs", minimum=("spec.elasticPolicy.minReplicas",)),
    _kubeflow("TFJob", "tfReplicaSpecs"),
    _kubeflow("MPIJob", "mpiReplicaSpecs", in_turn=(("spec.launcherCreationPolicy", "WaitForWorkersReady"),)),
    _kubeflow("XGBoostJob", "xgbReplicaSpecs"),
    _kubeflow("JAXJob", "jaxReplicaSpecs"),
    _kubeflow("PaddleJob", "paddleReplicaSpecs", minimum=("spec.elasticPolicy.minReplicas",)),
    Dialect(
        RAY_CLUSTERS,
        owner_label="ray.io/cluster",
        roles=(
            Roles("spec.headGroupSpec", name="headgroup", counts=()),
            Roles(
                "spec.workerGroupSpecs",
                named_by="groupName",
                counts=("replicas", "numOfHosts"),
                least=("minReplicas", "numOfHosts"),
                suspended="suspend",
            ),
        ),
        role_label="ray.io/group",
        leader=("headgroup",),
        elastic="spec.enableInTreeAutoscaling",
        priority_label="ray.io/priority-class-name",
    ),
    Dialect(RAY_JOBS, above=True),  # its RayCluster is the gang; the pod that submits the job comes later
    Dialect(
        LEADER_WORKER_SETS,
        owner_label="leaderworkerset.sigs.k8s.io/name",
        roles=(
            Roles("spec.leaderWorkerTemplate", name="leader", counts=(), template="leaderTemplate|workerTemplate"),
            Roles("spec.leaderWorkerTemplate", name="worker", counts=("size",), fewer=1, template="workerTemplate"),
        ),
        role_label="leaderworkerset.sigs.k8s.io/worker-index",
        by_rank=True,
        leader=("leader",),
        split=("leaderworkerset.sigs.k8s.io/group-index", "apps.kubernetes.io/pod-index"),
        copies="spec.replicas",
        in_turn=(("spec.startupPolicy", "LeaderReady"),),
        in_turn_by="leaderworkerset.sigs.k8s.io/exclusive-topology",
        sub_groups=SubGroups(
            "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology",
            label="leaderworkerset.sigs.k8s.io/subgroup-index",
            size="spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize",
            whole="spec.leaderWorkerTemplate.size",
        ),
    ),
    Dialect(SPARK_APPLICATIONS, owner_label="sparkoperator.k8s.io/app-name"),  # the driver makes its executors once it runs
    Dialect(WORKFLOWS, alone=True),  # steps run one after another
)

BY_NAME = {dialect.kind.name: dialect for dialect in DIALECTS}
NAMED = tuple(dialect for dialect in DIALECTS if dialect.field or dialect.group_label)
BY_LABEL = tuple(dialect for dialect in DIALECTS if dialect.owner_label)
READ = (*(dialect.kind for dialect in DIALECTS if not dialect.alone), COMPOSITE_POD_GROUPS)  #: the kinds of which objects are read
ALSO_READ = (Kind("kubeflow.org", "v2beta1", "MPIJob", "mpijobs"),)  #: the same kinds as others serve them: mpi-operator
OWNERS = tuple(dialect.kind for dialect in DIALECTS if not dialect.alone and dialect not in NAMED)
