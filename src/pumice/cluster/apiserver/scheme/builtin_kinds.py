"""The kinds that every cluster has, with the options in which each differs from the usual way to store and show objects."""

from collections.abc import Iterator

from msgspec.structs import asdict

from pumice.api import Object, kinds
from pumice.cluster.apiserver.scheme.builtin_shapes import object_shape
from pumice.cluster.apiserver.scheme.kinds import ALL_VERBS, Scale, ServedKind
from pumice.cluster.apiserver.scheme.second_versions import from_autoscaler_v2, from_core_event, to_autoscaler_v2, to_core_event
from pumice.cluster.apiserver.tables.columns import columns_of

_POD_FIELDS = (
    "spec.nodeName spec.schedulerName spec.restartPolicy spec.serviceAccountName spec.hostNetwork "
    "status.phase status.podIP status.nominatedNodeName"
)
_EVENT_FIELDS = (
    "involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid involvedObject.apiVersion "
    "involvedObject.resourceVersion involvedObject.fieldPath reason reportingComponent source type"
)
_NEW_EVENT_FIELDS = (
    "regarding.kind regarding.namespace regarding.name regarding.uid regarding.apiVersion regarding.resourceVersion regarding.fieldPath "
    "reason reportingController type"
)
_REPLICAS = Scale(("spec", "replicas"), ("status", "replicas"), ("spec", "selector"))

#: kind, short names, options
_ROWS: list[tuple[kinds.Kind, str, dict[str, str]]] = [
    (
        kinds.PODS,
        "po",
        {"in": "all", "fields": _POD_FIELDS, "sub": "binding eviction log ephemeralcontainers resize exec attach portforward"},
    ),
    (kinds.NODES, "no", {"fields": "spec.unschedulable"}),
    (kinds.NAMESPACES, "ns", {"fields": "status.phase", "sub": "finalize"}),
    (kinds.EVENTS, "ev", {"status": "no", "fields": _EVENT_FIELDS}),
    (kinds.CONFIG_MAPS, "cm", {"status": "no"}),
    (kinds.SECRETS, "", {"status": "no", "fields": "type"}),
    (kinds.SERVICES, "svc", {"in": "all", "fields": "spec.clusterIP spec.type"}),
    (kinds.ENDPOINTS, "ep", {"status": "no", "singular": "endpoints"}),
    (kinds.SERVICE_ACCOUNTS, "sa", {"status": "no", "sub": "token"}),
    (kinds.VOLUMES, "pv", {}),
    (kinds.VOLUME_CLAIMS, "pvc", {}),
    (kinds.RESOURCE_QUOTAS, "quota", {}),
    (kinds.LIMIT_RANGES, "limits", {"status": "no"}),
    (kinds.REPLICATION_CONTROLLERS, "rc", {"in": "all", "scale": "yes", "fields": "status.replicas"}),
    (kinds.POD_TEMPLATES, "", {"status": "no"}),
    (kinds.POD_BINDINGS, "", {"status": "no", "verbs": "create"}),
    (kinds.DEPLOYMENTS, "deploy", {"in": "all", "scale": "yes"}),
    (kinds.REPLICA_SETS, "rs", {"in": "all", "scale": "yes", "fields": "status.replicas"}),
    (kinds.STATEFUL_SETS, "sts", {"in": "all", "scale": "yes"}),
    (kinds.DAEMON_SETS, "ds", {"in": "all"}),
    (kinds.CONTROLLER_REVISIONS, "", {"status": "no"}),
    (kinds.BATCH_JOBS, "", {"in": "all", "fields": "status.successful"}),
    (kinds.BATCH_CRON_JOBS, "cj", {"in": "all"}),
    (kinds.DISRUPTION_BUDGETS, "pdb", {}),
    (kinds.PRIORITY_CLASSES, "pc", {"status": "no"}),
    (kinds.WORKLOADS, "", {"status": "no", "gate": "GenericWorkload"}),
    (kinds.NATIVE_POD_GROUPS, "", {"gate": "GenericWorkload"}),
    (kinds.ALPHA_WORKLOADS, "", {"status": "no", "gate": "GenericWorkload"}),
    (kinds.ALPHA_POD_GROUPS, "", {"gate": "GenericWorkload"}),
    (kinds.COMPOSITE_POD_GROUPS, "", {"gate": "CompositePodGroup"}),
    (kinds.STORAGE_CLASSES, "sc", {"status": "no"}),
    (kinds.CSI_NODES, "", {"status": "no"}),
    (kinds.CSI_DRIVERS, "", {"status": "no"}),
    (kinds.CSI_CAPACITIES, "", {"status": "no"}),
    (kinds.VOLUME_ATTACHMENTS, "", {}),
    (kinds.LEASES, "", {"status": "no"}),
    (kinds.NEW_EVENTS, "ev", {"status": "no", "storage": "events", "fields": _NEW_EVENT_FIELDS}),
    (kinds.ROLES, "", {"status": "no"}),
    (kinds.ROLE_BINDINGS, "", {"status": "no"}),
    (kinds.CLUSTER_ROLES, "", {"status": "no"}),
    (kinds.CLUSTER_ROLE_BINDINGS, "", {"status": "no"}),
    (kinds.AUTOSCALERS, "hpa", {"in": "all"}),
    (kinds.OLD_AUTOSCALERS, "hpa", {"in": "all"}),
    (kinds.INGRESSES, "ing", {}),
    (kinds.INGRESS_CLASSES, "", {"status": "no"}),
    (kinds.NETWORK_POLICIES, "netpol", {"status": "no"}),
    (kinds.ENDPOINT_SLICES, "", {"status": "no"}),
    (kinds.RESOURCE_CLAIMS, "", {}),
    (kinds.RESOURCE_CLAIM_TEMPLATES, "", {"status": "no"}),
    (kinds.RESOURCE_SLICES, "", {"status": "no", "fields": "spec.nodeName spec.driver"}),
    (kinds.DEVICE_CLASSES, "", {"status": "no"}),
    (kinds.DEVICE_TAINT_RULES, "", {}),
    (kinds.DEFINITIONS, "crd crds", {"in": "api-extensions"}),
    (kinds.MUTATING_WEBHOOKS, "", {"status": "no", "in": "api-extensions"}),
    (kinds.VALIDATING_WEBHOOKS, "", {"status": "no", "in": "api-extensions"}),
    (kinds.VALIDATING_POLICIES, "", {"in": "api-extensions"}),
    (kinds.VALIDATING_POLICY_BINDINGS, "", {"status": "no"}),
    (kinds.MUTATING_POLICIES, "", {"status": "no", "in": "api-extensions"}),
    (kinds.MUTATING_POLICY_BINDINGS, "", {"status": "no"}),
    (kinds.API_SERVICES, "", {"in": "api-extensions"}),
    (kinds.CERTIFICATE_REQUESTS, "csr", {"fields": "spec.signerName", "sub": "approval"}),
    (kinds.FLOW_SCHEMAS, "", {}),
    (kinds.PRIORITY_LEVELS, "", {}),
    (kinds.RUNTIME_CLASSES, "", {"status": "no"}),
    (kinds.SERVICE_CIDRS, "", {}),
    (kinds.IP_ADDRESSES, "ip", {"status": "no"}),
    (kinds.VOLUME_ATTRIBUTES_CLASSES, "vac", {"status": "no"}),
    (kinds.STORAGE_VERSIONS, "", {}),
    (kinds.NODE_METRICS, "", {"status": "no"}),
    (kinds.POD_METRICS, "", {"status": "no"}),
    (kinds.SELF_SUBJECT_ACCESS_REVIEWS, "", {"status": "no", "verbs": "create"}),
    (kinds.SUBJECT_ACCESS_REVIEWS, "", {"status": "no", "verbs": "create"}),
    (kinds.LOCAL_SUBJECT_ACCESS_REVIEWS, "", {"status": "no", "verbs": "create"}),
    (kinds.SELF_SUBJECT_RULES_REVIEWS, "", {"status": "no", "verbs": "create"}),
    (kinds.SELF_SUBJECT_REVIEWS, "", {"status": "no", "verbs": "create"}),
    (kinds.TOKEN_REVIEWS, "", {"status": "no", "verbs": "create"}),
]


def _to_beta(obj: Object) -> Object:
    return obj | {"apiVersion": kinds.WORKLOADS.api_version}


#: versions that differ from the stored form, with their conversions to it and from it
_FORMS = {
    kinds.NEW_EVENTS: (to_core_event, from_core_event),
    kinds.OLD_AUTOSCALERS: (to_autoscaler_v2, from_autoscaler_v2),
    kinds.ALPHA_WORKLOADS: (_to_beta, None),
    kinds.ALPHA_POD_GROUPS: (_to_beta, None),
}
#: kinds that differ from their stored version in nothing else, so that their writes are those of it
_STORED_AS = {kinds.ALPHA_WORKLOADS: kinds.WORKLOADS, kinds.ALPHA_POD_GROUPS: kinds.NATIVE_POD_GROUPS}

#: kinds whose delete is answered with the object
_SHOWN_WHEN_DELETED = (
    {"Pod", "PodTemplate", "Service", "ServiceAccount", "PersistentVolume", "PersistentVolumeClaim", "ResourceQuota"}
    | {"StorageClass", "CSINode", "CSIDriver", "VolumeAttachment", "VolumeAttributesClass"}
    | {"ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass"}
)

_DEPRECATED = {kinds.ENDPOINTS: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"}

#: kinds of which a PUT must state the version that it replaces, besides those with a feature gate
_VERSIONED_UPDATE = (
    {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}
    | {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "CustomResourceDefinition", "APIService", "StorageVersion"}
    | {"Lease", "RuntimeClass", "PodDisruptionBudget", "CSIDriver", "CSINode", "CSIStorageCapacity", "VolumeAttachment"}
)

#: kinds whose objects a PUT creates if they do not exist
_CREATED_BY_UPDATE = {
    "Endpoints",
    "Event",
    "Lease",
    "LimitRange",
    "RuntimeClass",
    "Service",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
}


def builtin_kinds(gates: frozenset[str] = frozenset()) -> Iterator[ServedKind]:
    """The kinds that a server with these feature gates has."""
    made: dict[kinds.Kind, ServedKind] = {}
    for kind, short, options in _ROWS:
        if options.get("gate", "") not in {"", *gates}:
            continue
        to_stored, from_stored = _FORMS.get(kind, (None, None))
        made[kind] = ServedKind(
            **asdict(kind),
            singular=options.get("singular", ""),
            short_names=tuple(short.split()),
            categories=tuple(options.get("in", "").split()),
            subresources=tuple(options.get("sub", "").split()),
            has_status=options.get("status") != "no",
            scale=_REPLICAS if "scale" in options else None,
            verbs=tuple(options["verbs"].split()) if "verbs" in options else ALL_VERBS,
            shape=object_shape(f"{(kind.group.split('.')[0] or 'core')}.{kind.version}.{kind.kind}"),
            columns=columns_of(kind.resource),
            fields=tuple(options.get("fields", "").split()),
            storage=options.get("storage", ""),
            to_stored=to_stored,
            from_stored=from_stored,
            stored_as=made[_STORED_AS[kind]] if kind in _STORED_AS else None,
            gates=gates,
            deprecation=_DEPRECATED.get(kind, ""),
            versioned_update="gate" in options or kind.kind in _VERSIONED_UPDATE,
            reviewed_only=kind in kinds.NEVER_STORED,
            created_by_update=kind.kind in _CREATED_BY_UPDATE,
            shown_when_deleted=kind.kind in _SHOWN_WHEN_DELETED,
        )
        yield made[kind]
