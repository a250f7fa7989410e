"""Kinds as data: which kinds are served under which paths, with which shape, subresources, columns and selectable fields.

A `KindTable` holds the kinds that every cluster has, one row each, and those of CustomResourceDefinitions, which are added and removed.
Objects of all versions of a kind are stored in one place, named by `storage` ("pods", "jobs.batch.volcano.sh"). A version that differs from
the stored form has a pair of conversions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import asdict, force_setattr

from pumice.api import kinds
from pumice.cluster.apiserver import status
from pumice.cluster.apiserver.columns import columns_of
from pumice.cluster.apiserver.schema import (
    ANY,
    Object,
    Shape,
    from_autoscaler_v2,
    from_core_event,
    object_shape,
    to_autoscaler_v2,
    to_core_event,
)

if TYPE_CHECKING:
    from pumice.cluster.apiserver.conversion import Converter
    from pumice.cluster.apiserver.crd_rules import RuleTree
    from pumice.cluster.apiserver.table import Column


ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True)
class Scale:
    """Where a kind keeps the fields that its scale subresource shows, as paths of keys."""

    spec_replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...] = ()


class ServedKind(kinds.Kind, frozen=True, eq=False, kw_only=True):
    """One version of one kind, and how the server keeps and shows it."""

    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()  #: the subresources except status and scale
    has_status: bool = False
    scale: Scale | None = None
    verbs: tuple[str, ...] = ALL_VERBS
    shape: Shape = ANY
    schema: Object | None = None  #: the OpenAPI v3 schema of a custom kind
    rules: RuleTree | None = None  #: expressions that objects of a custom kind must satisfy
    columns: tuple[Column, ...] = ()
    fields: tuple[str, ...] = ()  #: the fields for field selectors, besides metadata.name and metadata.namespace
    storage: str = ""  #: the name of the place where objects are stored; by default `plural.group`
    to_stored: Callable[[Object], Object] | None = None
    from_stored: Callable[[Object], Object] | None = None
    convert: Converter | None = None  #: makes one version of a custom kind from another
    stored_as: ServedKind | None = None  #: the version in which objects are stored, if it is another that must be converted to
    custom: bool = False
    gates: frozenset[str] = frozenset()  #: the feature gates that are on in the server
    deprecation: str = ""  #: the warning that every answer about the kind carries
    reviewed_only: bool = False  #: objects are answered and never stored (access reviews)
    versioned_update: bool = False  #: a PUT must state the resourceVersion that it replaces
    created_by_update: bool = False  #: a PUT creates the object if it does not exist
    shown_when_deleted: bool = False  #: a delete is answered with the object, not with a Status

    def __post_init__(self) -> None:
        if not self.storage:
            force_setattr(self, "storage", self.resource)
        if not self.singular:
            force_setattr(self, "singular", self.kind.lower())

    def not_found(self, name: str) -> status.StatusError:
        return status.not_found(self.plural, self.group, name)

    def invalid(self, name: str, causes: list[tuple[str, str]]) -> status.StatusError:
        return status.invalid(self.kind, self.group, name, causes)

    def forbidden(self, name: str, why: str) -> status.StatusError:
        return status.forbidden(self.plural, self.group, name, why)


_VERSION = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")


def priority_of(version: str) -> tuple[int, int, int]:
    """A key that orders the versions of a group, the one that clients are to prefer last: v1 comes after v1beta2, this after v1alpha3."""
    found = _VERSION.fullmatch(version)
    return (("alpha", "beta", None).index(found[2]), int(found[1]), int(found[3] or 0)) if found else (-1, 0, 0)


class KindTable:
    """All kinds that are served, by path and by name. The version of a kind that was added first is used when no version is named."""

    def __init__(self, served: Iterator[ServedKind] | list[ServedKind]) -> None:
        self._by_path: dict[tuple[str, str, str], ServedKind] = {}
        self._by_resource: dict[str, ServedKind] = {}
        self.revision = 0  #: grows with every change; caches of discovery and OpenAPI follow it
        for kind in served:
            self.add(kind)

    def add(self, kind: ServedKind) -> None:
        self._by_path[(kind.group, kind.version, kind.plural)] = kind
        first = self._by_resource.get(kind.resource)
        if first is None or first.version == kind.version:
            self._by_resource[kind.resource] = kind
        self.revision += 1

    def remove(self, group: str, plural: str) -> None:
        """Remove every version of a custom kind."""
        for path in [path for path in self._by_path if (path[0], path[2]) == (group, plural)]:
            del self._by_path[path]
        self._by_resource.pop(f"{plural}.{group}" if group else plural, None)
        self.revision += 1

    def at(self, group: str, version: str, plural: str) -> ServedKind | None:
        return self._by_path.get((group, version, plural))

    def named(self, resource: str) -> ServedKind:
        """The kind called `plural` or `plural.group`. Raises KeyError."""
        return self._by_resource[resource]

    def known(self, resource: str) -> bool:
        return resource in self._by_resource

    def of_object(self, api_version: str, kind_name: str) -> ServedKind | None:
        """The kind of an object by its apiVersion and kind."""
        group, _, version = api_version.rpartition("/")
        return next((kind for kind in self if (kind.group, kind.version, kind.kind) == (group, version, kind_name)), None)

    def __iter__(self) -> Iterator[ServedKind]:
        return iter(list(self._by_path.values()))


# The kinds that every cluster has, with the options in which each differs from the usual way to store and show objects.

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

#: kinds whose objects a PUT creates if they do not exist
_CREATED_BY_UPDATE = {"Endpoints", "Event", "Lease", "LimitRange", "Service", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}


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
            versioned_update="gate" in options,
            reviewed_only=kind in kinds.NEVER_STORED,
            created_by_update=kind.kind in _CREATED_BY_UPDATE,
            shown_when_deleted=kind.kind in _SHOWN_WHEN_DELETED,
        )
        yield made[kind]
