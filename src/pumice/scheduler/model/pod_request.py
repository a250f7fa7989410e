"""What a pod requests: containers that run together or one after another, overhead, the pod as a whole, a resize under way.

As kube-scheduler counts it, for filters and, with something made up for containers that name nothing, for scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pumice.api.pod import Container, ContainerStatus, Pod, PodSpec, ResourceList
from pumice.api.quantity import Quantity, format_milli, quantity
from pumice.scheduler.model.resources import MOST_OF_ONE, PODS, Dimensions, Vector, bounded, in_units

UNNAMED = {"cpu": quantity("100m"), "memory": quantity("200Mi")}  #: what a container counts in scoring if it names none
POD_LEVEL = ("cpu", "memory")


def _requests(asking: Container | PodSpec) -> ResourceList:
    return (asking.resources.requests if asking.resources else None) or {}


def pod_request(pod: Pod, unnamed: Mapping[str, Quantity] = MappingProxyType({}), *, pod_level: bool = True) -> dict[str, int]:
    """What the pod takes from a node, as kube-scheduler counts it, in thousandths. `unnamed`: what containers count that name none."""
    spec, resized = pod.spec, _resized(pod)
    running = requested_by_containers(spec, lambda container: {**unnamed, **resized.get(container.name, _requests(container))})
    for name, amount in _requests(spec).items() if pod_level else ():
        if is_pod_level(name):
            running[name] = amount.milli
    _add(running, spec.overhead or {})
    return running


def is_pod_level(name: str) -> bool:
    """Whether a pod may ask for a resource as a whole."""
    return name in POD_LEVEL or name.startswith("hugepages-")


def requested_by_containers(spec: PodSpec, requests_of: Callable[[Container], ResourceList] = _requests) -> dict[str, int]:
    """In milli-units: what runs together, or what initialising needs at its peak."""
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
    """What is asked for in all dimensions, with one of `pods`."""
    columns = {name: dimensions.column(name) for name in asked}
    vector = dimensions.zeros()
    for name, column in columns.items():
        if column is not None:
            vector[column] = bounded(_in_units(name, asked[name]))
    vector[PODS] = 1
    return vector


def beyond_all(asked: Mapping[str, int], dimensions: Dimensions) -> str:
    """An amount, in words, that no node can ever have; empty for none."""
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
    """Requests of containers whose in-place resize is under way: the greatest of asked, granted and applied."""
    state = resize_state(pod)
    if state is None:
        return {}
    applied, infeasible = state
    resized: dict[str, ResourceList] = {}
    for container in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ())):
        status = applied.get(container.name)
        if status is None:
            continue
        parts = [status.allocated_resources or {}, (status.resources.requests if status.resources else None) or {}]
        parts += [] if infeasible else [_requests(container)]
        names = {name for part in parts for name in part}
        resized[container.name] = {name: max((p[name] for p in parts if name in p), key=lambda q: q.milli) for name in names}
    return resized


def resize_state(pod: Pod) -> tuple[dict[str, ContainerStatus], bool] | None:
    """What nodes have granted to containers by name, and whether what is asked beyond it cannot be had; None for nothing."""
    statuses = [*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ())]
    applied = {s.name: s for s in statuses if s.allocated_resources or (s.resources and s.resources.requests)}
    if not applied:
        return None
    infeasible = pod.status.resize == "Infeasible" or any(
        c.type == "PodResizePending" and c.reason == "Infeasible" for c in pod.status.conditions or ()
    )
    return applied, infeasible


def scoring_request(pod: Pod, *, placed: bool = True) -> tuple[float, float]:
    """CPU in milli and memory in bytes for scoring: a container that names none counts as UNNAMED says.

    If the pod asks for something as a whole, only what nothing of it names is made up; but kube-scheduler overlooks that in a pod not
    placed yet.
    """
    level = placed and any(is_pod_level(name) for name in _requests(pod.spec))
    named = pod_request(pod) if level else {}
    asked = pod_request(pod, {name: amount for name, amount in UNNAMED.items() if name not in named}, pod_level=placed)
    return bounded(asked.get("cpu", 0)), bounded(_in_units("memory", asked.get("memory", 0)))
