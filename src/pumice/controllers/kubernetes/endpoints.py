"""Endpoints and EndpointSlices: the addresses of the pods that a service selects, and of Endpoints that somebody else keeps.

A service with a selector has one Endpoints object and slices of at most a hundred pods. The Endpoints of a service without a selector are
the business of whoever made them: they are mirrored into a slice.
"""

from collections.abc import Hashable, Iterable
from typing import Any

from pumice.api import Key, Object, key_of, kinds, name_of, namespace_of, spec_of, status_of, uid_of
from pumice.api.json_objects import labels_of, terminating
from pumice.controllers.controller import Among, KeysOf, Lister, ObjectChange, Result, itself, result
from pumice.controllers.kubernetes.owned_pods import ENDED, phase, ready
from pumice.controllers.writes import Create, Write, change, delete

SLICE, ENDPOINTS = kinds.ENDPOINT_SLICES.name, kinds.ENDPOINTS.name
SERVICE_NAME, MANAGED_BY = "kubernetes.io/service-name", "endpointslice.kubernetes.io/managed-by"
SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"
OURS, MIRROR = "endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"
ENDPOINTS_BY, ENDPOINTS_OURS = "endpoints.kubernetes.io/managed-by", "endpoint-controller"
MOST = 100  #: endpoints of a slice


class ServiceEndpoints:
    name = "endpoint"

    def __init__(self) -> None:
        self.watches: dict[str, KeysOf] = {
            kinds.SERVICE: itself,
            kinds.POD: Among(kinds.SERVICE, _services_over, counts=_selects_any),
            ENDPOINTS: itself,
            SLICE: _service_of,
        }

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, Key)
        service, endpoints = lister.get(kinds.SERVICE, *key), lister.get(ENDPOINTS, *key)
        there = [one for one in lister.all(SLICE, key.namespace) if labels_of(one).get(SERVICE_NAME) == key.name]
        there = [one for one in there if labels_of(one).get(MANAGED_BY) in (OURS, MIRROR)]
        if service is None or terminating(service):
            kept = endpoints is not None and labels_of(endpoints).get(ENDPOINTS_BY) == ENDPOINTS_OURS
            return result([delete(one) for one in ([*there, endpoints] if endpoints is not None and kept else there)])
        if not spec_of(service).get("selector"):
            mirrored = endpoints is not None and SKIP_MIRROR not in labels_of(endpoints)
            return result(_settled(there, _mirrors(endpoints) if endpoints is not None and mirrored else []))
        pods = [pod for pod in lister.all(kinds.POD, key.namespace) if _counts(service, pod)]
        whole = _endpoints(service, pods)
        writes: list[Write] = [Create(whole)] if endpoints is None else change(endpoints, _over(endpoints, whole))
        return result([*writes, *_settled(there, _slices(service, pods))])


def _services_over(change: ObjectChange, lister: Lister) -> Iterable[Key]:
    """The services whose endpoints a change of a pod may change."""
    if change.old is not None and change.new is not None and _facts(change.old) == _facts(change.new):
        return
    for service in lister.all(kinds.SERVICE, namespace_of(change.object)):
        if _selects_any(service) and any(_selects(spec_of(service)["selector"], state) for state in change.states):
            yield key_of(service)


def _selects_any(service: Object) -> bool:
    return bool(spec_of(service).get("selector"))


def _service_of(change: ObjectChange, lister: Lister) -> Iterable[Key]:
    """The service of a slice that was changed or lost."""
    name = labels_of(change.object).get(SERVICE_NAME)
    if name and change.old is not None:
        yield Key(namespace_of(change.object), name)


def _facts(pod: Object) -> tuple[Any, ...]:
    return labels_of(pod), status_of(pod).get("podIP"), ready(pod), terminating(pod), phase(pod) in ENDED


def _selects(selector: Object, pod: Object) -> bool:
    labels = labels_of(pod)
    return all(labels.get(key) == value for key, value in selector.items())


def _counts(service: Object, pod: Object) -> bool:
    return _selects(spec_of(service)["selector"], pod) and bool(status_of(pod).get("podIP")) and phase(pod) not in ENDED


def _is_served(service: Object, pod: Object) -> bool:
    if spec_of(service).get("publishNotReadyAddresses"):
        return True
    return ready(pod) and not terminating(pod)


def _ports(service: Object, pod: Object) -> list[Object]:
    found = []
    for port in spec_of(service).get("ports") or ():
        number = _number(port, pod)
        if number is not None:
            app = {"appProtocol": port["appProtocol"]} if port.get("appProtocol") else {}
            found.append({"name": port.get("name", ""), "port": number, "protocol": port.get("protocol", "TCP")} | app)
    return found


def _number(port: Object, pod: Object) -> int | None:
    target = port.get("targetPort", port["port"])
    if isinstance(target, int):
        return target or int(port["port"])
    named = (one for container in spec_of(pod).get("containers") or () for one in container.get("ports") or ())
    return next((one["containerPort"] for one in named if one.get("name") == target), None)


def _reference(pod: Object) -> Object:
    return {"kind": "Pod", "namespace": namespace_of(pod), "name": name_of(pod), "uid": uid_of(pod)}


def _slices(service: Object, pods: list[Object]) -> list[Object]:
    """The slices of a service. Pods with other numbers for its ports are in slices of their own."""
    by_ports: dict[str, tuple[list[Object], list[Object]]] = {}
    for pod in pods:
        ports = _ports(service, pod)
        by_ports.setdefault(repr(ports), (ports, []))[1].append(pod)
    groups = list(by_ports.values()) or [(_ports(service, {}), [])]
    parts = [(ports, some[start : start + MOST]) for ports, some in groups for start in range(0, max(len(some), 1), MOST)]
    owner: Object = {"apiVersion": "v1", "kind": "Service", "name": name_of(service), "uid": uid_of(service)}
    owner |= {"controller": True, "blockOwnerDeletion": True}
    labels = {**labels_of(service), SERVICE_NAME: name_of(service), MANAGED_BY: OURS}
    if spec_of(service).get("clusterIP") == "None":
        labels["service.kubernetes.io/headless"] = ""
    return [
        _slice(service, f"{name_of(service)}-{number}", labels, [_endpoint(service, pod) for pod in some], ports, [owner])
        for number, (ports, some) in enumerate(parts)
    ]


def _endpoint(service: Object, pod: Object) -> Object:
    served = _is_served(service, pod)
    conditions = {"ready": served, "serving": ready(pod), "terminating": terminating(pod)}
    hostname = {"hostname": spec_of(pod)["hostname"]} if spec_of(pod).get("hostname") else {}
    place = {"nodeName": spec_of(pod)["nodeName"], "targetRef": _reference(pod)}
    return {"addresses": [status_of(pod)["podIP"]], "conditions": conditions, **hostname, **place}


def _slice(subject: Object, name: str, labels: Object, endpoints: list[Object], ports: list[Object], owners: list[Object]) -> Object:
    fresh = kinds.new(SLICE, namespace_of(subject), name, addressType="IPv4", endpoints=endpoints, ports=ports)
    return {**fresh, "metadata": {**fresh["metadata"], "labels": labels, "ownerReferences": owners}}


def _mirrors(endpoints: Object) -> list[Object]:
    """The slices of Endpoints that somebody else keeps: one for each subset."""
    owner: Object = {"apiVersion": "v1", "kind": "Endpoints", "name": name_of(endpoints), "uid": uid_of(endpoints)}
    owner |= {"controller": True, "blockOwnerDeletion": True}
    labels = {**labels_of(endpoints), SERVICE_NAME: name_of(endpoints), MANAGED_BY: MIRROR}
    found = []
    for number, subset in enumerate(endpoints.get("subsets") or ()):
        addresses = [(one, True) for one in subset.get("addresses") or ()] + [(one, False) for one in subset.get("notReadyAddresses") or ()]
        listed = [_mirrored(one, is_ready) for one, is_ready in addresses]
        ports = [{"name": "", "protocol": "TCP", **port} for port in subset.get("ports") or ()]
        found.append(_slice(endpoints, f"{name_of(endpoints)}-{number}", labels, listed, ports, [owner]))
    return found


def _mirrored(address: Object, is_ready: bool) -> Object:
    kept: Object = {key: address[key] for key in ("hostname", "nodeName", "targetRef") if key in address}
    return {"addresses": [address["ip"]], "conditions": {"ready": is_ready}, **kept}


def _endpoints(service: Object, pods: list[Object]) -> Object:
    """The Endpoints object of a service: the same without slices."""
    subsets: dict[str, Object] = {}
    for pod in pods:
        ports = _ports(service, pod)
        subset = subsets.setdefault(repr(ports), {"ports": [{k: v for k, v in port.items() if v != ""} for port in ports]})
        address = {"ip": status_of(pod)["podIP"], "nodeName": spec_of(pod)["nodeName"], "targetRef": _reference(pod)}
        subset.setdefault("addresses" if _is_served(service, pod) else "notReadyAddresses", []).append(address)
    fresh = kinds.new(ENDPOINTS, namespace_of(service), name_of(service), subsets=list(subsets.values()))
    labels = {**labels_of(service), ENDPOINTS_BY: ENDPOINTS_OURS}
    return {**fresh, "metadata": {**fresh["metadata"], "labels": labels}}


def _over(found: Object, wanted: Object) -> Object:
    metadata = {**found["metadata"], **wanted["metadata"]}
    return {**found, **wanted, "metadata": metadata}


def _settled(there: list[Object], wanted: list[Object]) -> Iterable[Write]:
    """The writes that leave exactly the wanted slices."""
    by_name = {name_of(one): one for one in wanted}
    for found in there:
        one = by_name.pop(name_of(found), None)
        yield from [delete(found)] if one is None else change(found, _over(found, one))
    yield from map(Create, by_name.values())
