"""The columns that `kubectl get` shows of the built-in kinds, by resource."""

from collections.abc import Callable, Iterator
from typing import Any

from pumice.api import Object, instant
from pumice.api.json_objects import condition
from pumice.api.selectors import selector_text
from pumice.api.times import age, span
from pumice.cluster.apiserver.scheme.kinds import Column
from pumice.cluster.apiserver.tables.node_columns import NODE_COLUMNS
from pumice.cluster.apiserver.tables.pod_columns import POD_COLUMNS
from pumice.cluster.apiserver.tables.table import AGE

Cell = Callable[[Object, float], Any]


def _at(*path: str, default: Any = "") -> Cell:
    def cell(obj: Object, now: float) -> Any:
        value: Any = obj
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return default if value is None else value

    return cell


def _plain(text: str) -> Iterator[Column]:
    """Columns in the notation of kubectl's custom-columns. A field that is not set is shown as what stands behind `=`: with `=0` it is a
    number. A column with `+` is for `-o wide` alone."""
    for each in text.split(", "):
        name, _, rest = each.partition(":")
        path, _, default = rest.partition("=")
        cell = _at(*path.split("."), default=0 if default == "0" else default)
        yield Column(name.lstrip("+"), cell, "integer" if default == "0" else "string", priority=int(name.startswith("+")))


def _images(obj: Object, now: float) -> str:
    return ",".join(container.get("image", "") for container in obj["spec"]["template"]["spec"].get("containers", ()))


def _container_names(obj: Object, now: float) -> str:
    return ",".join(container.get("name", "") for container in obj["spec"]["template"]["spec"].get("containers", ()))


def _selector(obj: Object, now: float) -> str:
    return selector_text(obj["spec"].get("selector") or {}) or "<none>"


_TEMPLATE = (Column("Containers", _container_names, priority=1), Column("Images", _images, priority=1))
_WIDE = (*_TEMPLATE, Column("Selector", _selector, priority=1))


def _ready(have: str) -> Cell:
    return lambda obj, now: f"{(obj.get('status') or {}).get(have, 0)}/{obj['spec'].get('replicas', 1)}"


def _count(field: str) -> Cell:
    return lambda obj, now: len(obj.get(field) or ())


def _serves(obj: Object, now: float) -> str:
    service = obj["spec"].get("service")
    return f"{service['namespace']}/{service['name']}" if service else "Local"


def _available(obj: Object, now: float) -> str:
    found = condition(obj, "Available")
    return "Unknown" if found is None else "True" if found["status"] == "True" else f"False ({found['reason']})"


def _since(*path: str) -> Cell:
    value = _at(*path)
    return lambda obj, now: age(value(obj, now), now) if value(obj, now) else "<none>"


def _requested(request: Object, now: float) -> str:
    seconds = request["spec"].get("expirationSeconds")
    return "<none>" if seconds is None else span(seconds)


def _signing_state(request: Object, now: float) -> str:
    status = request.get("status") or {}
    found = {one["type"] for one in status.get("conditions") or ()}
    words = [next((word for word in ("Denied", "Approved") if word in found), "Pending"), *(["Failed"] if "Failed" in found else [])]
    return ",".join([*words, "Issued"] if status.get("certificate") else words)


def _job_state(job: Object, now: float) -> str:
    conditions = {one["type"] for one in (job.get("status") or {}).get("conditions") or () if one.get("status") == "True"}
    for word in ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget", "Suspended"):
        if word in conditions:
            return word
    return "Terminating" if job["metadata"].get("deletionTimestamp") else "Running"


def _completions(job: Object, now: float) -> str:
    spec, succeeded = job["spec"], (job.get("status") or {}).get("succeeded", 0)
    if "completions" in spec:
        return f"{succeeded}/{spec['completions']}"
    return f"{succeeded}/1 of {spec['parallelism']}" if spec.get("parallelism", 0) > 1 else f"{succeeded}/1"


def _job_duration(job: Object, now: float) -> str:
    status = job.get("status") or {}
    if not status.get("startTime"):
        return ""
    end = instant(status["completionTime"]) if status.get("completionTime") else now
    return span(end - instant(status["startTime"]))


def _ports(service: Object, now: float) -> str:
    ports = service["spec"].get("ports") or ()
    return (
        ",".join(
            f"{port['port']}{':' + str(port['nodePort']) if port.get('nodePort') else ''}/{port.get('protocol', 'TCP')}" for port in ports
        )
        or "<none>"
    )


def _modes(*path: str) -> Cell:
    short = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
    value = _at(*path, default=())
    return lambda obj, now: ",".join(short.get(mode, mode) for mode in value(obj, now))


def _claim(volume: Object, now: float) -> str:
    reference = volume["spec"].get("claimRef")
    return f"{reference.get('namespace', '')}/{reference.get('name', '')}" if reference else ""


def _quota(field: str) -> Cell:
    def cell(quota: Object, now: float) -> str:
        hard = (quota.get("spec") or {}).get("hard") or {}
        used = (quota.get("status") or {}).get("used") or {}
        names = [name for name in sorted(hard) if name.startswith("limits.") is (field == "limits")]
        return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in names)

    return cell


def _subject(event: Object, now: float) -> str:
    involved = event.get("involvedObject") or event.get("regarding") or {}
    return f"{involved.get('kind', '').lower()}/{involved.get('name', '')}"


def _last_seen(event: Object, now: float) -> str:
    seen = (
        (event.get("series") or {}).get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event["metadata"]["creationTimestamp"]
    )
    return age(seen, now)


def _roles(field: str) -> Cell:
    return lambda obj, now: (
        f"{obj['roleRef'].get('kind')}/{obj['roleRef'].get('name')}"
        if field == "role"
        else ", ".join(subject.get("name", "") for subject in obj.get("subjects") or () if subject.get("kind") == field)
    )


def _targets(autoscaler: Object, now: float) -> str:
    """The targets of an autoscaler's metrics. Nothing is measured here, so the current values are unknown."""
    spec = autoscaler["spec"]
    wanted = [metric.get("resource") or {} for metric in spec.get("metrics") or ()]
    shown = [f"{one.get('name')}: <unknown>/{(one.get('target') or {}).get('averageUtilization', '<auto>')}%" for one in wanted]
    percent = spec.get("targetCPUUtilizationPercentage")
    return ", ".join(shown) or (f"cpu: <unknown>/{percent}%" if percent else "<none>")


def _of_job(cell: Cell) -> Cell:
    return lambda obj, now: cell(obj["spec"]["jobTemplate"], now)


def _claim_state(claim: Object, now: float) -> str:
    status = claim.get("status") or {}
    states = [word for word, holds in (("allocated", status.get("allocation")), ("reserved", status.get("reservedFor"))) if holds]
    return ",".join([*(["deleted"] if claim["metadata"].get("deletionTimestamp") else []), *states]) or "pending"


def _policy(group: Object, now: float) -> str:
    return "Gang" if "gang" in (group["spec"].get("schedulingPolicy") or {}) else "Basic"


def _group_state(group: Object, now: float) -> str:
    conditions = {one.get("type"): one for one in (group.get("status") or {}).get("conditions") or ()}
    disrupted, scheduled = conditions.get("DisruptionTarget"), conditions.get("PodGroupInitiallyScheduled")
    if disrupted is not None:
        return str(disrupted.get("reason", ""))
    return "Pending" if scheduled is None else "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"


_OF_GROUP = (Column("Policy", _policy), *_plain("Workload:spec.workloadRef.workloadName=<none>"))
_ingress_points = _at("status", "loadBalancer", "ingress", default=())

_BINDING = (
    Column("Role", _roles("role")),
    AGE,
    Column("Users", _roles("User"), priority=1),
    Column("Groups", _roles("Group"), priority=1),
    Column("ServiceAccounts", _roles("ServiceAccount"), priority=1),
)

_CREATED = tuple(_plain("Created At:metadata.creationTimestamp"))
_COLUMNS: dict[str, tuple[Column, ...]] = {
    "pods": POD_COLUMNS,
    "nodes": NODE_COLUMNS,
    "namespaces": (*_plain("Status:status.phase"), AGE),
    "configmaps": (Column("Data", lambda obj, now: len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), "string"), AGE),
    "secrets": (*_plain("Type:type"), Column("Data", _count("data"), "string"), AGE),
    "serviceaccounts": (Column("Secrets", _count("secrets"), "string"), AGE),
    "services": (
        *_plain("Type:spec.type, Cluster-IP:spec.clusterIP=<none>"),
        Column(
            "External-IP",
            lambda obj, now: obj["spec"].get("externalName") or ("<pending>" if obj["spec"].get("type") == "LoadBalancer" else "<none>"),
        ),
        Column("Port(s)", _ports),
        AGE,
        Column("Selector", _selector, priority=1),
    ),
    "events": (
        Column("Last Seen", _last_seen),
        *_plain("Type:type, Reason:reason"),
        Column("Object", _subject),
        *_plain("+Subobject:involvedObject.fieldPath"),
        Column("Source", lambda obj, now: (obj.get("source") or {}).get("component") or obj.get("reportingComponent") or "", priority=1),
        Column("Message", lambda obj, now: (obj.get("message") or obj.get("note") or "").strip()),
        Column("First Seen", lambda obj, now: age(obj.get("firstTimestamp") or obj["metadata"]["creationTimestamp"], now), priority=1),
        Column("Count", lambda obj, now: (obj.get("series") or {}).get("count") or obj.get("count") or 1, priority=1),
        Column("Name", lambda obj, now: obj["metadata"]["name"], priority=1),
    ),
    "persistentvolumes": (
        *_plain("Capacity:spec.capacity.storage"),
        Column("Access Modes", _modes("spec", "accessModes")),
        *_plain("Reclaim Policy:spec.persistentVolumeReclaimPolicy, Status:status.phase"),
        Column("Claim", _claim),
        *_plain("StorageClass:spec.storageClassName, VolumeAttributesClass:spec.volumeAttributesClassName=<unset>, Reason:status.reason"),
        AGE,
        *_plain("+VolumeMode:spec.volumeMode"),
    ),
    "persistentvolumeclaims": (
        *_plain("Status:status.phase, Volume:spec.volumeName, Capacity:status.capacity.storage"),
        Column("Access Modes", _modes("status", "accessModes")),
        *_plain("StorageClass:spec.storageClassName, VolumeAttributesClass:spec.volumeAttributesClassName=<unset>"),
        AGE,
        *_plain("+VolumeMode:spec.volumeMode"),
    ),
    "resourcequotas": (Column("Request", _quota("requests")), Column("Limit", _quota("limits")), AGE),
    "limitranges": _CREATED,
    "endpoints": (
        Column(
            "Endpoints",
            lambda obj, now: (
                ",".join(
                    f"{one.get('ip')}:{port.get('port')}"
                    for part in obj.get("subsets") or ()
                    for one in part.get("addresses") or ()
                    for port in part.get("ports") or ()
                )
                or "<none>"
            ),
        ),
        AGE,
    ),
    "replicationcontrollers": (
        *_plain("Desired:spec.replicas=0, Current:status.replicas=0, Ready:status.readyReplicas=0"),
        AGE,
        *_WIDE,
    ),
    "deployments.apps": (
        Column("Ready", _ready("readyReplicas")),
        *_plain("Up-to-date:status.updatedReplicas=0, Available:status.availableReplicas=0"),
        AGE,
        *_WIDE,
    ),
    "replicasets.apps": (
        *_plain("Desired:spec.replicas=0, Current:status.replicas=0, Ready:status.readyReplicas=0"),
        AGE,
        *_WIDE,
    ),
    "statefulsets.apps": (Column("Ready", _ready("readyReplicas")), AGE, *_TEMPLATE),
    "daemonsets.apps": (
        *_plain(
            "Desired:status.desiredNumberScheduled=0, Current:status.currentNumberScheduled=0, Ready:status.numberReady=0, "
            "Up-to-date:status.updatedNumberScheduled=0, Available:status.numberAvailable=0"
        ),
        Column("Node Selector", lambda obj, now: selector_text(obj["spec"]["template"]["spec"].get("nodeSelector") or {}) or "<none>"),
        AGE,
        *_WIDE,
    ),
    "controllerrevisions.apps": (*_plain("Revision:revision=0"), AGE),
    "jobs.batch": (Column("Status", _job_state), Column("Completions", _completions), Column("Duration", _job_duration), AGE, *_WIDE),
    "cronjobs.batch": (
        *_plain("Schedule:spec.schedule, Timezone:spec.timeZone=<none>"),
        Column("Suspend", lambda obj, now: str(obj["spec"].get("suspend", False))),
        Column("Active", lambda obj, now: len((obj.get("status") or {}).get("active") or ()), "integer"),
        Column("Last Schedule", _since("status", "lastScheduleTime")),
        AGE,
        Column("Containers", _of_job(_container_names), priority=1),
        Column("Images", _of_job(_images), priority=1),
    ),
    "poddisruptionbudgets.policy": (
        *_plain(
            "Min Available:spec.minAvailable=N/A, Max Unavailable:spec.maxUnavailable=N/A, Allowed Disruptions:status.disruptionsAllowed=0"
        ),
        AGE,
    ),
    "priorityclasses.scheduling.k8s.io": (
        *_plain("Value:value=0"),
        Column("Global-Default", _at("globalDefault", default=False), "boolean"),
        AGE,
        *_plain("PreemptionPolicy:preemptionPolicy"),
    ),
    "podgroups.scheduling.k8s.io": (*_OF_GROUP, Column("Status", _group_state), AGE),
    "compositepodgroups.scheduling.k8s.io": (*_OF_GROUP, AGE),
    "storageclasses.storage.k8s.io": (
        *_plain("Provisioner:provisioner, ReclaimPolicy:reclaimPolicy, VolumeBindingMode:volumeBindingMode"),
        Column("AllowVolumeExpansion", _at("allowVolumeExpansion", default=False)),
        AGE,
    ),
    "csinodes.storage.k8s.io": (Column("Drivers", lambda obj, now: len((obj.get("spec") or {}).get("drivers") or ()), "integer"), AGE),
    "apiservices.apiregistration.k8s.io": (Column("Service", _serves), Column("Available", _available), AGE),
    "certificatesigningrequests.certificates.k8s.io": (
        AGE,
        *_plain("SignerName:spec.signerName, Requestor:spec.username"),
        Column("RequestedDuration", _requested),
        Column("Condition", _signing_state),
    ),
    "leases.coordination.k8s.io": (*_plain("Holder:spec.holderIdentity"), AGE),
    "roles.rbac.authorization.k8s.io": _CREATED,
    "clusterroles.rbac.authorization.k8s.io": _CREATED,
    "rolebindings.rbac.authorization.k8s.io": _BINDING,
    "clusterrolebindings.rbac.authorization.k8s.io": _BINDING,
    "horizontalpodautoscalers.autoscaling": (
        Column("Reference", lambda obj, now: f"{obj['spec']['scaleTargetRef'].get('kind')}/{obj['spec']['scaleTargetRef'].get('name')}"),
        Column("Targets", _targets),
        *_plain("MinPods:spec.minReplicas=0, MaxPods:spec.maxReplicas=0, Replicas:status.currentReplicas=0"),
        AGE,
    ),
    "ingresses.networking.k8s.io": (
        *_plain("Class:spec.ingressClassName=<none>"),
        Column("Hosts", lambda obj, now: ",".join(rule.get("host") or "*" for rule in _at("spec", "rules", default=())(obj, now)) or "*"),
        Column("Address", lambda obj, now: ",".join(one.get("ip") or one.get("hostname", "") for one in _ingress_points(obj, now))),
        Column("Ports", lambda obj, now: "80, 443" if _at("spec", "tls")(obj, now) else "80"),
        AGE,
    ),
    "networkpolicies.networking.k8s.io": (
        Column("Pod-Selector", lambda obj, now: selector_text(_at("spec", "podSelector", default={})(obj, now)) or "<none>"),
        AGE,
    ),
    "resourceclaims.resource.k8s.io": (Column("State", _claim_state), AGE),
    "resourceslices.resource.k8s.io": (
        *_plain("Node:spec.nodeName, Driver:spec.driver, Pool:spec.pool.name"),
        AGE,
    ),
    "customresourcedefinitions.apiextensions.k8s.io": _CREATED,
}


def columns_of(resource: str) -> tuple[Column, ...]:
    """The columns of a resource, without the name. The name is always the first column, except of events, where it is of no use."""
    return _COLUMNS.get("events" if resource.startswith("events.") else resource, (AGE,))
