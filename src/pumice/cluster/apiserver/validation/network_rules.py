"""Rules between fields of ingresses and network policies."""

from collections.abc import Iterator
from ipaddress import ip_network

from pumice.api import Object
from pumice.cluster.apiserver.validation.field_rules import Cause, forbidden, invalid, required
from pumice.cluster.apiserver.validation.ip_rules import fault_of_cidr, fault_of_ip

_NOT_IN_PATHS = ("//", "/./", "/../", "%2f", "%2F")
_NOT_AT_ENDS = ("/..", "/.")


def _spec(spec: Object) -> Iterator[Cause]:
    if not spec.get("rules") and "defaultBackend" not in spec:
        yield invalid("", None, "either `defaultBackend` or `rules` must be specified")


def _host(rule: Object) -> Iterator[Cause]:
    host = rule.get("host") or ""
    if not fault_of_ip(host):
        yield invalid("host", host, "must be a DNS name, not an IP address")


def _path(path: Object) -> Iterator[Cause]:
    stated = path.get("path") or ""
    if path.get("pathType") in ("Exact", "Prefix"):
        yield from (invalid("path", stated, f"must not contain '{part}'") for part in _NOT_IN_PATHS if part in stated)
        yield from (invalid("path", stated, f"cannot end with '{end}'") for end in _NOT_AT_ENDS if stated.endswith(end))


def _backend(backend: Object) -> Iterator[Cause]:
    service, resource = backend.get("service"), backend.get("resource")
    port = (service or {}).get("port") or {}
    if (service is None) is (resource is None):
        wrong = "resource or service backend is required" if service is None else "cannot set both resource and service backends"
        yield invalid("", "", wrong)
    elif service is not None and port.get("name") and port.get("number"):
        yield invalid("", "", "cannot set both port name & port number")
    elif service is not None and not port.get("name") and not port.get("number"):
        yield required("", "port name or number is required")


def _parameters(of_class: Object) -> Iterator[Cause]:
    scope, namespace = of_class.get("scope", "Cluster"), of_class.get("namespace")
    if scope == "Namespace" and not namespace:
        yield required("namespace", "`parameters.scope` is set to 'Namespace'")
    elif scope == "Cluster" and namespace is not None:
        yield forbidden("namespace", "`parameters.scope` is set to 'Cluster'")


def _policy(spec: Object) -> Iterator[Cause]:
    types = spec.get("policyTypes") or ()
    if len(types) > 2:
        yield invalid("policyTypes", types, "may not specify more than two policyTypes")


def _port(stated: Object) -> Iterator[Cause]:
    port, end = stated.get("port"), stated.get("endPort")
    if end is None:
        return
    if isinstance(port, int):
        if end < port:
            yield invalid("endPort", port, "must be greater than or equal to `port`")
    else:
        yield invalid("endPort", end, f"may not be specified when `port` is {'not specified' if port is None else 'non-numeric'}")


def _peer(peer: Object) -> Iterator[Cause]:
    if not peer:
        yield required("", "must specify a peer")
    elif "ipBlock" in peer and len(peer) > 1:
        yield forbidden("", "may not specify both ipBlock and another peer")


def _block(block: Object) -> Iterator[Cause]:
    cidr, stated = block.get("cidr") or "", block.get("except") or ()
    for index, excepted in enumerate(() if fault_of_cidr(cidr) else stated):
        if not fault_of_cidr(excepted) and not _is_within(excepted, cidr):
            yield invalid(f"except[{index}]", excepted, "must be a strict subset of `cidr`")


def _is_within(inner: str, outer: str) -> bool:
    small, large = ip_network(inner), ip_network(outer)
    return small.version == large.version and small != large and small.subnet_of(large)  # type: ignore[arg-type]


CHECKS = {
    "HTTPIngressPath": _path,
    "IPBlock": _block,
    "IngressBackend": _backend,
    "IngressClassParametersReference": _parameters,
    "IngressRule": _host,
    "IngressSpec": _spec,
    "NetworkPolicyPeer": _peer,
    "NetworkPolicyPort": _port,
    "NetworkPolicySpec": _policy,
}
