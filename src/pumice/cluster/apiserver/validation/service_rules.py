"""Rules between fields of Services: what goes with which type, and which ports may be together."""

from collections.abc import Iterable, Iterator
from ipaddress import ip_address

from pumice.api import Object
from pumice.cluster.apiserver.scheme.builtin_shapes import shape_of
from pumice.cluster.apiserver.validation.declared_rules import internal
from pumice.cluster.apiserver.validation.field_rules import Cause, compact, duplicates, forbidden, invalid, repeated, required
from pumice.cluster.apiserver.validation.ip_rules import fault_of_cidr, fault_of_ip

_OF_BALANCERS = "may only be used when `type` is 'LoadBalancer'"
_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_DAY_S = 86400


def _service(service: Object) -> Iterator[Cause]:
    spec, place = service.get("spec") or {}, f"metadata.annotations[{_RANGES}]"
    stated = (service["metadata"].get("annotations") or {}).get(_RANGES)
    if stated is None or spec.get("loadBalancerSourceRanges"):
        return
    if spec.get("type") != "LoadBalancer":
        yield forbidden(place, _OF_BALANCERS)
    for text in stated.split(",") if stated.strip() else ():
        if fault := fault_of_cidr(text.strip()):
            yield invalid(place, text.strip(), fault)


def _spec(spec: Object) -> Iterator[Cause]:
    kind, is_headless = spec.get("type", "ClusterIP"), spec.get("clusterIP") == "None"
    if is_headless and kind in ("LoadBalancer", "NodePort"):
        yield invalid("clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        stated = spec | {"clusterIPs": spec.get("clusterIPs") or spec.get("clusterIP")}
        if not spec.get("externalName"):
            yield required("externalName")
        for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if stated.get(field):
                yield forbidden(field, "may not be set for ExternalName services")
    yield from duplicates(spec.get("ipFamilies") or (), "ipFamilies")
    yield from _ports(spec, kind)
    ranges = spec.get("loadBalancerSourceRanges") or ()
    if ranges and kind != "LoadBalancer":
        yield forbidden("LoadBalancerSourceRanges", _OF_BALANCERS)
    yield from _networks(ranges, "LoadBalancerSourceRanges")
    for field in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
        if field in spec and kind != "LoadBalancer":
            yield forbidden(field, _OF_BALANCERS)
    yield from _traffic(spec, kind)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        yield from _special(address, f"externalIPs[{index}]")


def _ports(spec: Object, kind: str) -> Iterator[Cause]:
    ports = spec.get("ports") or ()
    if not ports and kind != "ExternalName" and spec.get("clusterIP") != "None":
        yield required("ports")
    for index, port in enumerate(ports if len(ports) > 1 else ()):
        if not port.get("name"):
            yield required(f"ports[{index}].name")
    names = [port.get("name") or f"#{index}" for index, port in enumerate(ports)]  # no name has a #
    yield from duplicates(names, "ports", ".name")
    for index, port in enumerate(ports if kind == "ClusterIP" else ()):
        if port.get("nodePort"):
            yield forbidden(f"ports[{index}].nodePort", "may not be used when `type` is 'ClusterIP'")
    for index in repeated((port.get("protocol"), port.get("port")) for port in ports):
        port = {"protocol": ports[index].get("protocol"), "port": ports[index].get("port"), "targetPort": 0}
        yield f"ports[{index}]", f"Duplicate value: {compact(internal(shape_of('core.v1.ServicePort'), port))}"


def _traffic(spec: Object, kind: str) -> Iterator[Cause]:
    policy, check = spec.get("externalTrafficPolicy"), spec.get("healthCheckNodePort")
    if policy and kind not in ("NodePort", "LoadBalancer") and not spec.get("externalIPs"):
        yield invalid("externalTrafficPolicy", policy, "may only be set for externally-accessible services")
    if check and (kind, policy) != ("LoadBalancer", "Local"):
        text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield invalid("healthCheckNodePort", check, text)


def _networks(ranges: Iterable[str], place: str) -> Iterator[Cause]:
    for index, text in enumerate(ranges):
        if fault := fault_of_cidr(text.strip()):
            yield invalid(f"{place}[{index}]", text.strip(), fault)


def _special(address: str, place: str) -> Iterator[Cause]:
    if fault_of_ip(address):
        return  # a rule of the field
    read = ip_address(address)
    if read.is_unspecified:
        yield invalid(place, address, f"may not be unspecified ({address})")
    if read.is_loopback:
        yield invalid(place, address, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if read.is_link_local:
        yield invalid(place, address, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")


def _client(client: Object) -> Iterator[Cause]:
    seconds = client.get("timeoutSeconds", _DAY_S)
    if not 0 < seconds <= _DAY_S:
        yield invalid("timeoutSeconds", seconds, f"must be greater than 0 and less than {_DAY_S}")


CHECKS = {"ClientIPConfig": _client, "Service": _service, "ServiceSpec": _spec}
