"""What RuntimeClasses and LimitRanges give to pods when they are created: overhead, nodes that they are for, default amounts."""

from collections.abc import Iterable

from msgspec.structs import replace

from pumice.api.core import LimitRange, RuntimeClass
from pumice.api.meta import Wire
from pumice.api.pod import Container, Pod, ResourceRequirements
from pumice.api.pod_admission_defaults import limits_and_requests, selector_and_tolerations
from pumice.api.quantity import Quantity

Amounts = dict[str, Quantity]


class PodAdmission:
    def __init__(self, items: Iterable[tuple[str, Wire]]) -> None:
        self._runtimes: dict[str, RuntimeClass] = {}
        self._limits: dict[str, list[tuple[Amounts, Amounts]]] = {}  #: by namespace: limits and requests
        for _, item in items:
            if isinstance(item, RuntimeClass):
                self._runtimes[item.metadata.name] = item
            elif isinstance(item, LimitRange):
                own = self._limits.setdefault(item.metadata.namespace or "default", [])
                for each in item.spec.limits or ():
                    if each.type == "Container":
                        own.append(limits_and_requests(each.max, each.default, each.min, each.default_request))

    def admitted(self, pod: Pod) -> Pod:
        """The pod as it is stored. One that comes from a server has been through this."""
        if pod.metadata.resource_version:
            return pod
        spec = pod.spec
        if (runtime := self._runtimes.get(spec.runtime_class_name or "")) is not None:
            given = runtime.scheduling
            selector, all_of = selector_and_tolerations(given.node_selector, given.tolerations, spec.node_selector, spec.tolerations)
            overhead = spec.overhead or runtime.overhead.pod_fixed
            spec = replace(spec, overhead=overhead, node_selector=selector or None, tolerations=all_of or None)
        for limits, requests in self._limits.get(pod.metadata.namespace or "default", ()):
            spec = replace(
                spec,
                containers=[_limited(each, limits, requests) for each in spec.containers or ()],
                init_containers=[_limited(each, limits, requests) for each in spec.init_containers or ()] or None,
            )
        return pod if spec is pod.spec else replace(pod, spec=spec)


def _limited(container: Container, limits: Amounts, requests: Amounts) -> Container:
    own = container.resources or ResourceRequirements()
    return replace(container, resources=replace(own, limits=limits | (own.limits or {}), requests=requests | (own.requests or {})))
