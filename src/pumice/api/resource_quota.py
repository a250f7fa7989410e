"""What a ResourceQuota charges for objects, and sums of such charges. Volcano states a PodGroup's minResources in the same names.

Names come in pairs (`cpu` and `requests.cpu`). Extended resources appear as `requests.<name>` and, as in Volcano, also by their plain
name. Amounts are exact, in thousandths. Pods that have ended are not charged; a quota with scopes counts only the pods that are in all
of its scopes. Objects are JSON, and a kind is named by its resource, as in quotas: "pods", "jobs.batch".
"""

from collections.abc import Callable, Iterable, Mapping

from pumice.api.json_objects import Object
from pumice.api.quantity import format_bytes, format_milli, quantity

Usage = dict[str, int]  #: amounts in thousandths, by the names that quotas use

PAIRED = ("cpu", "memory", "ephemeral-storage")
#: resources that are also counted by their plain name
COUNTED = ("services", "configmaps", "secrets", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas")
_OF_SERVICES, _OF_CLASS = ("services.loadbalancers", "services.nodeports"), ".storageclass.storage.k8s.io/"
MUST_SAY = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_ENDED = ("Succeeded", "Failed")


def pod_usage(spec: Object) -> Usage:
    requests, limits = pod_totals(spec)
    usage = {"pods": 1000, "count/pods": 1000}
    for name, amount in requests.items():
        usage[f"requests.{name}"] = usage[name] = amount
    for name in PAIRED:
        if name in limits:
            usage[f"limits.{name}"] = limits[name]
    return usage


def pod_totals(spec: Object) -> tuple[Usage, Usage]:
    return pod_requests(spec), _total(spec, "limits")


def pod_requests(spec: Object) -> Usage:
    return _total(spec, "requests")


def _total(spec: Object, side: str) -> Usage:
    """The total requests or limits of a pod: of its containers and sidecars, or of its largest init step if greater, plus overhead."""
    steady = add(_amounts(each, side) for each in spec.get("containers") or ())
    peak: Usage = {}
    sidecars: Usage = {}
    for container in spec.get("initContainers") or ():
        amounts = _amounts(container, side)
        if container.get("restartPolicy") == "Always":
            sidecars = add((sidecars, amounts))
            peak = _larger(peak, sidecars)
        else:
            peak = _larger(peak, add((sidecars, amounts)))
    total = _larger(add((steady, sidecars)), peak)
    overhead = {name: quantity(amount).milli for name, amount in (spec.get("overhead") or {}).items()}
    if side == "requests":
        return add((total, overhead))
    return {name: amount + overhead.get(name, 0) for name, amount in total.items()}


def _amounts(container: Object, side: str) -> Usage:
    resources = container.get("resources") or {}
    stated = {name: quantity(amount).milli for name, amount in (resources.get(side) or {}).items()}
    if side == "requests":  # a limit without a request is also the request
        stated = {name: quantity(amount).milli for name, amount in (resources.get("limits") or {}).items()} | stated
    return stated


def unsaid(spec: Object, names: Iterable[str]) -> dict[str, list[str]]:
    """The amounts that a quota with these names demands of each container, and that some do not state, with the names of those."""
    found: dict[str, list[str]] = {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        stated = {f"{side}.{name}" for side in ("requests", "limits") for name in _amounts(container, side)}
        for name in names:
            if name in MUST_SAY and (name if "." in name else f"requests.{name}") not in stated:
                found.setdefault(name, []).append(container.get("name", ""))
    return {name: sorted(found[name]) for name in sorted(found)}


def add(usages: Iterable[Mapping[str, int]]) -> Usage:
    total: Usage = {}
    for usage in usages:
        for name, amount in usage.items():
            total[name] = total.get(name, 0) + amount
    return total


def times(usage: Mapping[str, int], count: int) -> Usage:
    return {name: amount * count for name, amount in usage.items()}


def _larger(left: Usage, right: Usage) -> Usage:
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in (*left, *(each for each in right if each not in left))}


def written(usage: Mapping[str, int]) -> dict[str, str]:
    return {name: _quantity(name, amount) for name, amount in sorted(usage.items())}


def _quantity(name: str, amount: int) -> str:
    binary = name.endswith(("memory", "storage")) or "hugepages-" in name
    return format_bytes(amount // 1000) if binary and amount % 1000 == 0 else format_milli(amount)


def charge(resource: str, obj: Object) -> Usage:
    if resource == "pods":
        return {} if (obj.get("status") or {}).get("phase") in _ENDED else pod_usage(obj.get("spec") or {})
    usage = dict.fromkeys((f"count/{resource}", *([resource] if resource in COUNTED else ())), 1000)
    spec = obj.get("spec") or {}
    if resource == "persistentvolumeclaims":
        requests = (spec.get("resources") or {}).get("requests") or {}
        usage["requests.storage"] = quantity(requests.get("storage", "0")).milli
        if spec.get("storageClassName"):
            of_class = f"{spec['storageClassName']}{_OF_CLASS}"
            usage |= {f"{of_class}requests.storage": usage["requests.storage"], f"{of_class}persistentvolumeclaims": 1000}
    elif resource == "services":
        usage |= _service_usage(spec)
    return usage


def _service_usage(spec: Object) -> Usage:
    ports, kind = spec.get("ports") or (), spec.get("type")
    if kind == "LoadBalancer":
        opened = len(ports) if spec.get("allocateLoadBalancerNodePorts", True) else sum("nodePort" in port for port in ports)
        return {"services.loadbalancers": 1000, "services.nodeports": 1000 * opened}
    return {"services.nodeports": 1000 * len(ports)} if kind == "NodePort" else {}


def used(quota: Object, names: Iterable[str], objects: Callable[[str], Iterable[Object]]) -> Usage:
    """What the objects in the quota's namespace use under these names. `objects` gives that namespace's objects of a resource."""
    resources = sorted({counted_resource(name) for name in names})
    return add(charge(resource, obj) for resource in resources for obj in objects(resource) if resource != "pods" or in_scope(quota, obj))


def counted_resource(name: str) -> str:
    """The resource whose objects are charged under this name of a quota."""
    if name.startswith("count/"):
        return name.removeprefix("count/")
    if name == "requests.storage" or _OF_CLASS in name:
        return "persistentvolumeclaims"
    if name in _OF_SERVICES:
        return "services"
    return name if name in COUNTED else "pods"


def in_scope(quota: Object, pod: Object) -> bool:
    spec = quota.get("spec") or {}
    terms: list[Object] = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    terms += (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    return all(_scope_holds(term, pod.get("spec") or {}) for term in terms)


def _scope_holds(term: Object, spec: Object) -> bool:
    if term["scopeName"] == "PriorityClass":
        name, values = spec.get("priorityClassName"), term.get("values") or ()
        answers = {"In": name in values, "NotIn": name not in values, "Exists": bool(name), "DoesNotExist": not name}
        return answers.get(term["operator"], False)
    best_effort = pod_usage(spec).keys() <= {"pods", "count/pods"}
    bounded = spec.get("activeDeadlineSeconds") is not None
    answers = {"BestEffort": best_effort, "NotBestEffort": not best_effort, "Terminating": bounded, "NotTerminating": not bounded}
    return answers.get(term["scopeName"], False)
