"""The columns that `kubectl get` shows of the built-in kinds, by resource. They are declared in `columns.txt`.

A column is `name:path`, as in kubectl's custom-columns. A field that is not set is shown as what stands behind `=`; with `=0` the column is
one of numbers. `name:@cell argument` is a cell of those below. A type other than "string" may follow. A column with `+` is for `-o wide`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pumice.api import Object, instant
from pumice.api.json_objects import condition
from pumice.api.selectors import selector_text
from pumice.api.times import age, span
from pumice.cluster.apiserver.scheme.kinds import Column
from pumice.cluster.apiserver.tables.pod_columns import POD_COLUMNS
from pumice.cluster.apiserver.tables.table import AGE

Cell = Callable[[Object, float], Any]
_ROLE, _OWN_ROLE = "node-role.kubernetes.io/", "kubernetes.io/role"


def _get(obj: Object, path: str, default: Any = None) -> Any:
    value: Any = obj
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return default if value is None else value


def _at(path: str, default: Any = "") -> Cell:
    return lambda obj, now: _get(obj, path, default)


def _of_containers(field: str) -> Callable[[str], Cell]:
    return lambda path: lambda obj, now: ",".join(each.get(field, "") for each in _get(obj, f"{path}.spec.containers", ()))


def _selector(path: str) -> Cell:
    return lambda obj, now: selector_text(_get(obj, path, {})) or "<none>"


def _count(paths: str) -> Cell:
    return lambda obj, now: sum(len(_get(obj, path, ())) for path in paths.split())


def _since(path: str) -> Cell:
    return lambda obj, now: age(_get(obj, path), now) if _get(obj, path) else "<none>"


def _reference(path: str) -> Cell:
    return lambda obj, now: f"{_get(obj, f'{path}.kind')}/{_get(obj, f'{path}.name')}"


def _modes(path: str) -> Cell:
    short = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
    return lambda obj, now: ",".join(short.get(mode, mode) for mode in _get(obj, path, ()))


def _subjects(kind: str) -> Cell:
    return lambda obj, now: ", ".join(subject.get("name", "") for subject in obj.get("subjects") or () if subject.get("kind") == kind)


def _ready(obj: Object, now: float) -> str:
    return f"{_get(obj, 'status.readyReplicas', 0)}/{obj['spec'].get('replicas', 1)}"


def _node_state(node: Object, now: float) -> str:
    ready = condition(node, "Ready")
    word = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if _get(node, "spec.unschedulable") else word


def _node_roles(node: Object, now: float) -> str:
    labels = node["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)}
    if _OWN_ROLE in labels:
        roles.add(labels[_OWN_ROLE])
    return ",".join(sorted(roles)) or "<none>"


def _node_address(type: str) -> Cell:
    return lambda node, now: next(
        (each.get("address") for each in _get(node, "status.addresses", ()) if each.get("type") == type), "<none>"
    )


def _known(path: str) -> Cell:
    return lambda obj, now: _get(obj, path) or "<unknown>"


def _serves(obj: Object, now: float) -> str:
    service = obj["spec"].get("service")
    return f"{service['namespace']}/{service['name']}" if service else "Local"


def _available(obj: Object, now: float) -> str:
    found = condition(obj, "Available")
    return "Unknown" if found is None else "True" if found["status"] == "True" else f"False ({found['reason']})"


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


def _external_address(service: Object, now: float) -> str:
    return service["spec"].get("externalName") or ("<pending>" if service["spec"].get("type") == "LoadBalancer" else "<none>")


def _claim(volume: Object, now: float) -> str:
    reference = volume["spec"].get("claimRef")
    return f"{reference.get('namespace', '')}/{reference.get('name', '')}" if reference else ""


def _quota(is_of_limits: bool) -> Cell:
    def cell(quota: Object, now: float) -> str:
        hard, used = _get(quota, "spec.hard", {}), _get(quota, "status.used", {})
        names = [name for name in sorted(hard) if name.startswith("limits.") is is_of_limits]
        return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in names)

    return cell


def _endpoints(endpoints: Object, now: float) -> str:
    parts = endpoints.get("subsets") or ()
    pairs = ((one, port) for part in parts for one in part.get("addresses") or () for port in part.get("ports") or ())
    return ",".join(f"{one.get('ip')}:{port.get('port')}" for one, port in pairs) or "<none>"


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


def _first_seen(event: Object, now: float) -> str:
    return age(event.get("firstTimestamp") or event["metadata"]["creationTimestamp"], now)


def _source(event: Object, now: float) -> str:
    return _get(event, "source.component") or event.get("reportingComponent") or ""


def _targets(autoscaler: Object, now: float) -> str:
    """The targets of an autoscaler's metrics. Nothing is measured here, so the current values are unknown."""
    spec = autoscaler["spec"]
    wanted = [metric.get("resource") or {} for metric in spec.get("metrics") or ()]
    shown = [f"{one.get('name')}: <unknown>/{(one.get('target') or {}).get('averageUtilization', '<auto>')}%" for one in wanted]
    percent = spec.get("targetCPUUtilizationPercentage")
    return ", ".join(shown) or (f"cpu: <unknown>/{percent}%" if percent else "<none>")


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


def _hosts(ingress: Object, now: float) -> str:
    return ",".join(rule.get("host") or "*" for rule in _get(ingress, "spec.rules", ())) or "*"


def _addresses(ingress: Object, now: float) -> str:
    return ",".join(one.get("ip") or one.get("hostname", "") for one in _get(ingress, "status.loadBalancer.ingress", ()))


_CELLS: dict[str, Any] = {  #: a cell, or a function of an argument that returns one
    "addresses": _addresses,
    "available": _available,
    "claim": _claim,
    "claim_state": _claim_state,
    "completions": _completions,
    "containers": _of_containers("name"),
    "count": _count,
    "duration": _job_duration,
    "endpoints": _endpoints,
    "external_address": _external_address,
    "first_seen": _first_seen,
    "group_state": _group_state,
    "hosts": _hosts,
    "images": _of_containers("image"),
    "ingress_ports": lambda ingress, now: "80, 443" if ingress["spec"].get("tls") else "80",
    "job_state": _job_state,
    "known": _known,
    "last_seen": _last_seen,
    "limits": _quota(True),
    "message": lambda event, now: (event.get("message") or event.get("note") or "").strip(),
    "modes": _modes,
    "node_address": _node_address,
    "node_roles": _node_roles,
    "node_state": _node_state,
    "policy": _policy,
    "ports": _ports,
    "ready": _ready,
    "reference": _reference,
    "requested": _requested,
    "requests": _quota(False),
    "selector": _selector,
    "serves": _serves,
    "signing_state": _signing_state,
    "since": _since,
    "source": _source,
    "subject": _subject,
    "subjects": _subjects,
    "suspend": lambda cron_job, now: str(cron_job["spec"].get("suspend", False)),
    "targets": _targets,
    "times": lambda event, now: _get(event, "series.count") or event.get("count") or 1,
}


def _column(text: str) -> Column:
    if text == "Age":
        return AGE
    name, _, rest = text.partition(":")
    source, _, type = rest.partition(":")
    path, _, default = source.partition("=")
    word, _, argument = source.removeprefix("@").partition(" ")
    if source.startswith("@"):
        cell = _CELLS[word](argument) if argument else _CELLS[word]
    else:
        cell = _at(path, {"0": 0, "false": False}.get(default, default))
    return Column(name.lstrip("+"), cell, type or ("integer" if default == "0" else "string"), priority=int(name.startswith("+")))


def _declared() -> dict[str, tuple[Column, ...]]:
    found, resource = dict[str, tuple[Column, ...]](), ""
    for line in (Path(__file__).parent / "columns.txt").read_text().splitlines()[1:]:
        if line.startswith(" "):
            found[resource] = (*found.get(resource, ()), *map(_column, line.strip().split(", ")))
        else:
            resource = line
    return found


_COLUMNS = {"pods": POD_COLUMNS} | _declared()


def columns_of(resource: str) -> tuple[Column, ...]:
    """The columns of a resource, without the name. The name is always the first column, except of events, where it is of no use."""
    return _COLUMNS.get("events" if resource.startswith("events.") else resource, (AGE,))
