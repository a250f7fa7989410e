"""What is wrong with the addresses from which a Service lets its clients come, where an annotation states them."""

from collections.abc import Iterator

from pumice.api import Object
from pumice.cluster.apiserver.validation.field_rules import Cause, forbidden, invalid
from pumice.cluster.apiserver.validation.ip_rules import fault_of_cidr

_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"


def source_range_causes(service: Object) -> Iterator[Cause]:
    spec, place = service.get("spec") or {}, f"metadata.annotations[{_RANGES}]"
    stated = (service["metadata"].get("annotations") or {}).get(_RANGES)
    if stated is None or spec.get("loadBalancerSourceRanges"):
        return
    if spec.get("type") != "LoadBalancer":
        yield forbidden(place, "may only be used when `type` is 'LoadBalancer'")
    for text in stated.split(",") if stated.strip() else ():
        if fault := fault_of_cidr(text.strip()):
            yield invalid(place, text.strip(), fault)
