"""The table of kinds: the names of each, the API version in which we use it, and the URL path of its objects on an API server.

Other modules add what they alone need to know of a kind: how it is read (`api.structs`), how the API server stores and shows it
(`cluster/apiserver/scheme/kinds.py`), which part watches it (`live`).

Names: "Kind", or "Kind.group" outside the core group. A cluster stores each object once, whatever API version a request uses. So
controllers name a kind without its version.
"""

import re
from functools import lru_cache
from urllib.parse import quote

import msgspec
from msgspec.structs import force_setattr

from pumice.api.json_objects import Object

_PLAIN = re.compile(r"[A-Za-z0-9._~-]*")  # characters that a URL has as they are


class Kind(msgspec.Struct, frozen=True):
    group: str  #: empty for the core group
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    api_version: str = ""  #: these three are made of the others
    name: str = ""  #: of the kind without its version: "Pod", "Job.batch.volcano.sh"
    resource: str = ""  #: the name of the collection without its version: "pods", "jobs.batch.volcano.sh"

    def __post_init__(self) -> None:
        group = self.group
        force_setattr(self, "api_version", f"{group}/{self.version}" if group else self.version)
        force_setattr(self, "name", f"{self.kind}.{group}" if group else self.kind)
        force_setattr(self, "resource", f"{self.plural}.{group}" if group else self.plural)

    @property
    def kept_as(self) -> str:
        """The name under which scheduling keeps the kind: without its group, unless that would be the name of a kind of Volcano."""
        return self.name if self.name == "PodGroup.scheduling.k8s.io" else self.kind

    def path(self, name: str = "", namespace: str = "", subresource: str = "") -> str:
        """The URL path of an object, of its subresource, or without a name of the collection. Without a namespace: of all namespaces."""
        parts = ["/apis" if self.group else "/api", self.api_version]
        if self.namespaced and namespace:
            parts += ["namespaces", _quoted(namespace)]
        parts += [part for part in (self.plural, _quoted(name), subresource) if part]
        return "/".join(parts)


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quote(name, safe="")


class ObjectRef(msgspec.Struct, frozen=True):
    """One object, by name and by identity: a new object under an old name has another `uid`."""

    name: str
    namespace: str = ""
    uid: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


PODS = Kind("", "v1", "Pod", "pods")
NODES = Kind("", "v1", "Node", "nodes", namespaced=False)
NAMESPACES = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
EVENTS = Kind("", "v1", "Event", "events")
CONFIG_MAPS = Kind("", "v1", "ConfigMap", "configmaps")
SECRETS = Kind("", "v1", "Secret", "secrets")
SERVICES = Kind("", "v1", "Service", "services")
ENDPOINTS = Kind("", "v1", "Endpoints", "endpoints")
SERVICE_ACCOUNTS = Kind("", "v1", "ServiceAccount", "serviceaccounts")
VOLUMES = Kind("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
VOLUME_CLAIMS = Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
RESOURCE_QUOTAS = Kind("", "v1", "ResourceQuota", "resourcequotas")
LIMIT_RANGES = Kind("", "v1", "LimitRange", "limitranges")
REPLICATION_CONTROLLERS = Kind("", "v1", "ReplicationController", "replicationcontrollers")
POD_TEMPLATES = Kind("", "v1", "PodTemplate", "podtemplates")
POD_BINDINGS = Kind("", "v1", "Binding", "bindings")
DEPLOYMENTS = Kind("apps", "v1", "Deployment", "deployments")
REPLICA_SETS = Kind("apps", "v1", "ReplicaSet", "replicasets")
STATEFUL_SETS = Kind("apps", "v1", "StatefulSet", "statefulsets")
DAEMON_SETS = Kind("apps", "v1", "DaemonSet", "daemonsets")
CONTROLLER_REVISIONS = Kind("apps", "v1", "ControllerRevision", "controllerrevisions")
BATCH_JOBS = Kind("batch", "v1", "Job", "jobs")
BATCH_CRON_JOBS = Kind("batch", "v1", "CronJob", "cronjobs")
DISRUPTION_BUDGETS = Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
PRIORITY_CLASSES = Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False)
ALPHA_WORKLOADS = Kind("scheduling.k8s.io", "v1alpha3", "Workload", "workloads")
ALPHA_POD_GROUPS = Kind("scheduling.k8s.io", "v1alpha3", "PodGroup", "podgroups")
WORKLOADS = Kind("scheduling.k8s.io", "v1beta1", "Workload", "workloads")
NATIVE_POD_GROUPS = Kind("scheduling.k8s.io", "v1beta1", "PodGroup", "podgroups")
COMPOSITE_POD_GROUPS = Kind("scheduling.k8s.io", "v1alpha3", "CompositePodGroup", "compositepodgroups")
STORAGE_CLASSES = Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False)
CSI_NODES = Kind("storage.k8s.io", "v1", "CSINode", "csinodes", namespaced=False)
CSI_DRIVERS = Kind("storage.k8s.io", "v1", "CSIDriver", "csidrivers", namespaced=False)
CSI_CAPACITIES = Kind("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities")
VOLUME_ATTACHMENTS = Kind("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", namespaced=False)
LEASES = Kind("coordination.k8s.io", "v1", "Lease", "leases")
NEW_EVENTS = Kind("events.k8s.io", "v1", "Event", "events")
ROLES = Kind("rbac.authorization.k8s.io", "v1", "Role", "roles")
ROLE_BINDINGS = Kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")
CLUSTER_ROLES = Kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDINGS = Kind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
AUTOSCALERS = Kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
OLD_AUTOSCALERS = Kind("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
INGRESSES = Kind("networking.k8s.io", "v1", "Ingress", "ingresses")
INGRESS_CLASSES = Kind("networking.k8s.io", "v1", "IngressClass", "ingressclasses", namespaced=False)
NETWORK_POLICIES = Kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
ENDPOINT_SLICES = Kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
RESOURCE_CLAIMS = Kind("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims")
RESOURCE_CLAIM_TEMPLATES = Kind("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates")
RESOURCE_SLICES = Kind("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", namespaced=False)
DEVICE_CLASSES = Kind("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", namespaced=False)
DEVICE_TAINT_RULES = Kind("resource.k8s.io", "v1", "DeviceTaintRule", "devicetaintrules", namespaced=False)
DEFINITIONS = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
MUTATING_WEBHOOKS = Kind(
    "admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False
)
VALIDATING_WEBHOOKS = Kind(
    "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False
)
VALIDATING_POLICIES = Kind(
    "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False
)
VALIDATING_POLICY_BINDINGS = Kind(
    "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", namespaced=False
)
MUTATING_POLICIES = Kind("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicy", "mutatingadmissionpolicies", namespaced=False)
MUTATING_POLICY_BINDINGS = Kind(
    "admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", namespaced=False
)
API_SERVICES = Kind("apiregistration.k8s.io", "v1", "APIService", "apiservices", namespaced=False)
CERTIFICATE_REQUESTS = Kind("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False)
FLOW_SCHEMAS = Kind("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas", namespaced=False)
PRIORITY_LEVELS = Kind("flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration", "prioritylevelconfigurations", namespaced=False)
RUNTIME_CLASSES = Kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False)
SERVICE_CIDRS = Kind("networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs", namespaced=False)
IP_ADDRESSES = Kind("networking.k8s.io", "v1", "IPAddress", "ipaddresses", namespaced=False)
VOLUME_ATTRIBUTES_CLASSES = Kind("storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses", namespaced=False)
STORAGE_VERSIONS = Kind("internal.apiserver.k8s.io", "v1alpha1", "StorageVersion", "storageversions", namespaced=False)
NODE_METRICS = Kind("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", namespaced=False)
POD_METRICS = Kind("metrics.k8s.io", "v1beta1", "PodMetrics", "pods")
SELF_SUBJECT_ACCESS_REVIEWS = Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False)
SUBJECT_ACCESS_REVIEWS = Kind("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)
LOCAL_SUBJECT_ACCESS_REVIEWS = Kind("authorization.k8s.io", "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews")
SELF_SUBJECT_RULES_REVIEWS = Kind("authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", namespaced=False)
SELF_SUBJECT_REVIEWS = Kind("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False)
TOKEN_REVIEWS = Kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)
JOBS = Kind("batch.volcano.sh", "v1alpha1", "Job", "jobs")
CRON_JOBS = Kind("batch.volcano.sh", "v1alpha1", "CronJob", "cronjobs")
COMMANDS = Kind("bus.volcano.sh", "v1alpha1", "Command", "commands")
JOB_FLOWS = Kind("flow.volcano.sh", "v1alpha1", "JobFlow", "jobflows")
JOB_TEMPLATES = Kind("flow.volcano.sh", "v1alpha1", "JobTemplate", "jobtemplates")
POD_GROUPS = Kind("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups")
QUEUES = Kind("scheduling.volcano.sh", "v1beta1", "Queue", "queues", namespaced=False)
NUMA_TOPOLOGIES = Kind("nodeinfo.volcano.sh", "v1alpha1", "Numatopology", "numatopologies", namespaced=False)
HYPER_NODES = Kind("topology.volcano.sh", "v1alpha1", "HyperNode", "hypernodes", namespaced=False)
NODE_SHARDS = Kind("shard.volcano.sh", "v1alpha1", "NodeShard", "nodeshards", namespaced=False)

NEVER_STORED = frozenset(
    {
        POD_BINDINGS,
        SELF_SUBJECT_ACCESS_REVIEWS,
        SUBJECT_ACCESS_REVIEWS,
        LOCAL_SUBJECT_ACCESS_REVIEWS,
        SELF_SUBJECT_RULES_REVIEWS,
        SELF_SUBJECT_REVIEWS,
        TOKEN_REVIEWS,
    }
)  #: kinds that are only posted and answered, such as reviews and bindings
KINDS = tuple(kind for kind in vars().values() if isinstance(kind, Kind))
CLUSTER_WIDE = frozenset(kind.kind for kind in KINDS if not kind.namespaced)  #: kinds without namespace
_BY_NAME = {kind.name: kind for kind in KINDS}
CLUSTER_SCOPED = frozenset(name for name, kind in _BY_NAME.items() if not kind.namespaced)  #: names of the same kinds
POD = PODS.name
NODE = NODES.name
NAMESPACE = NAMESPACES.name
SERVICE = SERVICES.name
SECRET = SECRETS.name
SERVICE_ACCOUNT = SERVICE_ACCOUNTS.name
CONFIG_MAP = CONFIG_MAPS.name
CLAIM = VOLUME_CLAIMS.name
VOLUME = VOLUMES.name
STORAGE_CLASS = STORAGE_CLASSES.name
RESOURCE_QUOTA = RESOURCE_QUOTAS.name
REPLICATION_CONTROLLER = REPLICATION_CONTROLLERS.name
DEPLOYMENT = DEPLOYMENTS.name
REPLICA_SET = REPLICA_SETS.name
STATEFUL_SET = STATEFUL_SETS.name
DAEMON_SET = DAEMON_SETS.name
CONTROLLER_REVISION = CONTROLLER_REVISIONS.name
BATCH_JOB = BATCH_JOBS.name
BATCH_CRON_JOB = BATCH_CRON_JOBS.name
NETWORK_POLICY = NETWORK_POLICIES.name
DISRUPTION_BUDGET = DISRUPTION_BUDGETS.name
PRIORITY_CLASS = PRIORITY_CLASSES.name
LEASE = LEASES.name
DEVICE_CLAIM = RESOURCE_CLAIMS.name
DEVICE_CLAIM_TEMPLATE = RESOURCE_CLAIM_TEMPLATES.name

QUEUE = QUEUES.name
POD_GROUP = POD_GROUPS.name
NATIVE_POD_GROUP = NATIVE_POD_GROUPS.kept_as
COMPOSITE_POD_GROUP = COMPOSITE_POD_GROUPS.kept_as
JOB = JOBS.name
CRON_JOB = CRON_JOBS.name
COMMAND = COMMANDS.name
JOB_TEMPLATE = JOB_TEMPLATES.name
JOB_FLOW = JOB_FLOWS.name
HYPER_NODE = HYPER_NODES.name
NODE_SHARD = NODE_SHARDS.name


def named(name: str) -> Kind:
    """The kind in the table with this name. Raises KeyError."""
    return _BY_NAME[name]


def group_of(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def kind_of(subject: Object) -> str:
    """The name of the kind of an object, or of the object that an owner reference points to."""
    return kind_name(subject["apiVersion"], subject["kind"])


@lru_cache(maxsize=1024)
def kind_name(api_version: str, kind: str) -> str:
    """The name of a kind in the form of `Kind.name`."""
    group, slash, _ = api_version.rpartition("/")
    return f"{kind}.{group}" if slash else kind


def new(kind: str, namespace: str, name: str, **fields: object) -> Object:
    """A new object with these fields, in the version of the table; without a namespace if the kind is cluster-scoped."""
    metadata = {"name": name} if kind in CLUSTER_SCOPED else {"name": name, "namespace": namespace}
    return {"apiVersion": _BY_NAME[kind].api_version, "kind": _BY_NAME[kind].kind, "metadata": metadata, **fields}
