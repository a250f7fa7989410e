"""The kinds every cluster has, one row each: group version, kind, plural, and what differs from the ordinary."""

from __future__ import annotations

from collections.abc import Iterator

from pumice.apiserver.columns import columns_of
from pumice.apiserver.kinds import ALL_VERBS, Kind, Scale
from pumice.apiserver.other_forms import from_autoscaler_v2, from_core_event, to_autoscaler_v2, to_core_event
from pumice.apiserver.wire_types import object_shape

_POD_FIELDS = (
    "spec.nodeName spec.schedulerName spec.restartPolicy spec.serviceAccountName spec.hostNetwork "
    "status.phase status.podIP status.nominatedNodeName"
)
_EVENT_FIELDS = (
    "involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid involvedObject.apiVersion "
    "involvedObject.resourceVersion involvedObject.fieldPath reason reportingComponent source type"
)
_REPLICAS = Scale(("spec", "replicas"), ("status", "replicas"), ("spec", "selector"))

#: group/version, kind, plural, namespaced, short names, options
_ROWS: list[tuple[str, str, str, bool, str, dict[str, str]]] = [
    (
        "v1",
        "Pod",
        "pods",
        True,
        "po",
        {"in": "all", "fields": _POD_FIELDS, "sub": "binding eviction log ephemeralcontainers resize exec attach portforward"},
    ),
    ("v1", "Node", "nodes", False, "no", {"fields": "spec.unschedulable"}),
    ("v1", "Namespace", "namespaces", False, "ns", {"fields": "status.phase", "sub": "finalize"}),
    ("v1", "Event", "events", True, "ev", {"status": "no", "fields": _EVENT_FIELDS}),
    ("v1", "ConfigMap", "configmaps", True, "cm", {"status": "no"}),
    ("v1", "Secret", "secrets", True, "", {"status": "no", "fields": "type"}),
    ("v1", "Service", "services", True, "svc", {"in": "all", "fields": "spec.clusterIP spec.type"}),
    ("v1", "Endpoints", "endpoints", True, "ep", {"status": "no", "singular": "endpoints"}),
    ("v1", "ServiceAccount", "serviceaccounts", True, "sa", {"status": "no", "sub": "token"}),
    ("v1", "PersistentVolume", "persistentvolumes", False, "pv", {}),
    ("v1", "PersistentVolumeClaim", "persistentvolumeclaims", True, "pvc", {}),
    ("v1", "ResourceQuota", "resourcequotas", True, "quota", {}),
    ("v1", "LimitRange", "limitranges", True, "limits", {"status": "no"}),
    ("v1", "ReplicationController", "replicationcontrollers", True, "rc", {"in": "all", "scale": "yes", "fields": "status.replicas"}),
    ("v1", "PodTemplate", "podtemplates", True, "", {"status": "no"}),
    ("v1", "Binding", "bindings", True, "", {"status": "no", "verbs": "create"}),
    ("apps/v1", "Deployment", "deployments", True, "deploy", {"in": "all", "scale": "yes"}),
    ("apps/v1", "ReplicaSet", "replicasets", True, "rs", {"in": "all", "scale": "yes", "fields": "status.replicas"}),
    ("apps/v1", "StatefulSet", "statefulsets", True, "sts", {"in": "all", "scale": "yes"}),
    ("apps/v1", "DaemonSet", "daemonsets", True, "ds", {"in": "all"}),
    ("apps/v1", "ControllerRevision", "controllerrevisions", True, "", {"status": "no"}),
    ("batch/v1", "Job", "jobs", True, "", {"in": "all", "fields": "status.successful"}),
    ("batch/v1", "CronJob", "cronjobs", True, "cj", {"in": "all"}),
    ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", True, "pdb", {}),
    ("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", False, "pc", {"status": "no"}),
    ("storage.k8s.io/v1", "StorageClass", "storageclasses", False, "sc", {"status": "no"}),
    ("storage.k8s.io/v1", "CSINode", "csinodes", False, "", {"status": "no"}),
    ("storage.k8s.io/v1", "CSIDriver", "csidrivers", False, "", {"status": "no"}),
    ("storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities", True, "", {"status": "no"}),
    ("storage.k8s.io/v1", "VolumeAttachment", "volumeattachments", False, "", {}),
    ("coordination.k8s.io/v1", "Lease", "leases", True, "", {"status": "no"}),
    ("events.k8s.io/v1", "Event", "events", True, "ev", {"status": "no", "storage": "events"}),
    ("rbac.authorization.k8s.io/v1", "Role", "roles", True, "", {"status": "no"}),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", True, "", {"status": "no"}),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", False, "", {"status": "no"}),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", False, "", {"status": "no"}),
    ("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", True, "hpa", {"in": "all"}),
    ("autoscaling/v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", True, "hpa", {"in": "all"}),
    ("networking.k8s.io/v1", "Ingress", "ingresses", True, "ing", {}),
    ("networking.k8s.io/v1", "IngressClass", "ingressclasses", False, "", {"status": "no"}),
    ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", True, "netpol", {"status": "no"}),
    ("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", True, "", {"status": "no"}),
    ("resource.k8s.io/v1", "ResourceClaim", "resourceclaims", True, "", {}),
    ("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates", True, "", {"status": "no"}),
    ("resource.k8s.io/v1", "ResourceSlice", "resourceslices", False, "", {"status": "no", "fields": "spec.nodeName spec.driver"}),
    ("resource.k8s.io/v1", "DeviceClass", "deviceclasses", False, "", {"status": "no"}),
    ("resource.k8s.io/v1", "DeviceTaintRule", "devicetaintrules", False, "", {}),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", False, "crd crds", {"in": "api-extensions"}),
    ("metrics.k8s.io/v1beta1", "NodeMetrics", "nodes", False, "", {"status": "no"}),
    ("metrics.k8s.io/v1beta1", "PodMetrics", "pods", True, "", {"status": "no"}),
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False, "", {"review": "yes"}),
    ("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", False, "", {"review": "yes"}),
    ("authorization.k8s.io/v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", True, "", {"review": "yes"}),
    ("authorization.k8s.io/v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", False, "", {"review": "yes"}),
    ("authentication.k8s.io/v1", "SelfSubjectReview", "selfsubjectreviews", False, "", {"review": "yes"}),
    ("authentication.k8s.io/v1", "TokenReview", "tokenreviews", False, "", {"review": "yes"}),
]

#: versions that look different from what is stored, and how
_FORMS = {
    "events.k8s.io/v1 Event": (to_core_event, from_core_event),
    "autoscaling/v1 HorizontalPodAutoscaler": (to_autoscaler_v2, from_autoscaler_v2),
}

#: kinds whose delete is answered with the object
_SHOWN_WHEN_DELETED = (
    {"Pod", "PodTemplate", "Service", "ServiceAccount", "PersistentVolume", "PersistentVolumeClaim", "ResourceQuota"}
    | {"StorageClass", "CSINode", "CSIDriver", "VolumeAttachment"}
    | {"ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass"}
)

#: kinds that a PUT creates if they are not there
_CREATED_BY_UPDATE = {"Endpoints", "Event", "Lease", "LimitRange", "Service", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}


def builtin_kinds() -> Iterator[Kind]:
    for group_version, kind, plural, namespaced, short, options in _ROWS:
        group, _, version = group_version.rpartition("/")
        review = "review" in options
        to_stored, from_stored = _FORMS.get(f"{group_version} {kind}", (None, None))
        yield Kind(
            group=group,
            version=version,
            kind=kind,
            plural=plural,
            namespaced=namespaced,
            singular=options.get("singular", ""),
            short_names=tuple(short.split()),
            categories=tuple(options.get("in", "").split()),
            subresources=tuple(options.get("sub", "").split()),
            has_status=not review and options.get("status") != "no",
            scale=_REPLICAS if "scale" in options else None,
            verbs=("create",) if review else tuple(options["verbs"].split()) if "verbs" in options else ALL_VERBS,
            shape=object_shape(f"{(group.split('.')[0] or 'core')}.{version}.{kind}"),
            columns=columns_of(f"{plural}.{group}" if group else plural),
            fields=tuple(options.get("fields", "").split()),
            storage=options.get("storage", ""),
            to_stored=to_stored,
            from_stored=from_stored,
            reviewed_only=review or kind == "Binding",
            created_by_update=kind in _CREATED_BY_UPDATE,
            shown_when_deleted=kind in _SHOWN_WHEN_DELETED,
        )
