"""What a pod requests, as kube-scheduler counts it: containers that run together or one after another, overhead, pod-level resources, a
resize under way, what its devices take of the node. It is used for filters and, with defaults for containers that request nothing, for
scores.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from pumice.api.pod import ClaimCharge, Container, ContainerStatus, Pod, PodSpec, ResourceList
from pumice.api.quantity import Quantity, format_milli, quantity
from pumice.scheduler.model.resources import MOST_OF_ONE, PODS, Dimensions, Vector, bounded, in_units

UNNAMED = {"cpu": quantity("100m"), "memory": quantity("200Mi")}  #: the request of a container in scoring if it has none
POD_LEVEL = ("cpu", "memory")
WHOLE = ""  #: the name under which the pod as a whole stands beside its containers


def _requests(asking: Container | PodSpec) -> ResourceList:
    return (asking.resources.requests if asking.resources else None) or {}


def pod_request(pod: Pod, unnamed: Mapping[str, Quantity] = MappingProxyType({}), *, pod_level: bool = True) -> dict[str, int]:
    """What the pod takes from a node, as kube-scheduler counts it, in thousandths. `unnamed`: amounts that
    count for resources that a container does not name. `pod_level`: whether pod-level requests and the pod's devices count."""
    spec, resized = pod.spec, _resized(pod)
    running = requested_by_containers(spec, lambda container: {**unnamed, **resized.get(container.name, _requests(container))})
    if pod_level:
        _add(running, charged(pod.status.charges or ()))
    whole = resized.get(WHOLE, _requests(spec))
    for name in _requests(spec) if pod_level else ():
        if is_pod_level(name):
            running[name] = whole[name].milli if name in whole else 0
    _add(running, spec.overhead or {})
    return running


def charged(charges: Iterable[ClaimCharge]) -> dict[str, int]:
    """What the devices of a pod take of its node's own resources, in thousandths."""
    total: dict[str, int] = {}
    for charge in charges:
        _add(total, {each.name: each.quantity for each in charge.mapping or () if each.quantity is not None})
        for each in charge.overhead or ():
            _add(total, {each.name: each.per_pod} if each.per_pod is not None else {})
            _add(total, {each.name: each.per_container.milli * len(charge.containers or ())} if each.per_container is not None else {})
    return total


def is_pod_level(name: str) -> bool:
    """Whether a pod may request the resource as a whole (pod-level resources)."""
    return name in POD_LEVEL or name.startswith("hugepages-")


def requested_by_containers(spec: PodSpec, requests_of: Callable[[Container], ResourceList] = _requests) -> dict[str, int]:
    """The requests of a pod's containers, in thousandths: for each resource the greater of what runs together and the peak of the init
    containers."""
    running: dict[str, int] = {}
    for container in spec.containers or ():
        _add(running, requests_of(container))
    before: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.init_containers or ():
        requests = requests_of(container)
        if container.restart_policy == "Always":
            _add(running, requests)
            _add(before, requests)
            _raise(peak, {name: before[name] for name in requests})
        else:
            _raise(peak, {name: before.get(name, 0) + amount.milli for name, amount in requests.items()})
    _raise(running, peak)
    return running


def _in_units(name: str, milli: int) -> int:
    return -(-milli // 1000) if in_units(name) else milli


def request_vector(asked: Mapping[str, int], dimensions: Dimensions) -> Vector:
    """The vector of what a pod requests, with 1 in the dimension `pods`."""
    columns = {name: dimensions.column(name) for name in asked}
    vector = dimensions.zeros()
    for name, column in columns.items():
        if column is not None:
            vector[column] = bounded(_in_units(name, asked[name]))
    vector[PODS] = 1
    return vector


def beyond_all(asked: Mapping[str, int], dimensions: Dimensions) -> str:
    """The first requested amount, in words, that no node can ever have; empty if there is none."""
    for name, milli in asked.items():
        if dimensions.leaves_out(name, milli) or (name in dimensions.columns and _in_units(name, milli) >= MOST_OF_ONE):
            return f"{name} {format_milli(milli)}"
    return ""


def _add(total: dict[str, int], more: Mapping[str, Quantity | int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + (amount if isinstance(amount, int) else amount.milli)


def _raise(total: dict[str, int], floor: Mapping[str, int]) -> None:
    for name, amount in floor.items():
        total[name] = max(total.get(name, 0), amount)


def _resized(pod: Pod) -> dict[str, ResourceList]:
    """By name, the requests of containers with an in-place resize under way: the greatest of the amounts requested, granted and applied."""
    state = resize_state(pod)
    if state is None:
        return {}
    applied, infeasible = state
    resized: dict[str, ResourceList] = {}
    for name, own in _asked(pod).items():
        status = applied.get(name)
        if status is None:
            continue
        parts = [status.allocated_resources or {}, (status.resources.requests if status.resources else None) or {}]
        parts += [] if infeasible else [own]
        names = {each for part in parts for each in part}
        resized[name] = {each: max((p[each] for p in parts if each in p), key=lambda q: q.milli) for each in names}
    return resized


def _asked(pod: Pod) -> dict[str, ResourceList]:
    """The requests of each container, and those of the pod as a whole if it has any."""
    whole = {WHOLE: own} if (own := _requests(pod.spec)) else {}
    return {each.name: _requests(each) for each in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))} | whole


def resize_state(pod: Pod) -> tuple[dict[str, ContainerStatus], bool] | None:
    """The container statuses, by name, that grant other resources than are requested, and whether the requested resize is infeasible; None
    if there are no such statuses. A kubelet states for every running container what it grants, and for a pod with requests as a whole what
    it grants that."""
    statuses = [*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ())]
    if pod.status.resources is not None and pod.spec.resources is not None:
        statuses.append(ContainerStatus(WHOLE, pod.status.allocated_resources, pod.status.resources))
    if not statuses or not any(s.allocated_resources or s.resources for s in statuses):
        return None
    asked = _asked(pod)
    applied = {s.name: s for s in statuses if s.name in asked and _grants_other(s, asked[s.name])}
    if not applied:
        return None
    infeasible = pod.status.resize == "Infeasible" or any(
        c.type == "PodResizePending" and c.reason == "Infeasible" for c in pod.status.conditions or ()
    )
    return applied, infeasible


def _grants_other(status: ContainerStatus, asked: ResourceList) -> bool:
    granted = (status.allocated_resources or asked, (status.resources.requests if status.resources else None) or asked)
    wanted = {name: amount.milli for name, amount in asked.items()}
    return any({name: amount.milli for name, amount in amounts.items()} != wanted for amounts in granted if amounts is not asked)


def scoring_request(pod: Pod, *, placed: bool = True) -> tuple[float, float]:
    """CPU in thousandths and memory in bytes for scoring. Resources that a container does not name count as in UNNAMED.

    If the pod has pod-level requests, defaults count only for resources that neither the pod nor a container requests. For a pod that
    has no node yet (not `placed`) kube-scheduler ignores pod-level requests.
    """
    level = placed and any(is_pod_level(name) for name in _requests(pod.spec))
    named = pod_request(pod) if level else {}
    asked = pod_request(pod, {name: amount for name, amount in UNNAMED.items() if name not in named}, pod_level=placed)
    return bounded(asked.get("cpu", 0)), bounded(_in_units("memory", asked.get("memory", 0)))
