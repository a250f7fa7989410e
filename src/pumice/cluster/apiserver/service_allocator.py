"""Cluster IPs and node ports of Services: each is held by one Service, and is free again once its Service has no use for it.

Which are held is noted at each write, so that to give one out no Service is looked at. A write that is refused, or is a dry run, holds
nothing. What two Services hold, as an older version could give it out, stays with both. The cluster IPs are those of the ServiceCIDR
`kubernetes`; other ServiceCIDRs have no part in this. An IPAddress says which Service has a cluster IP. It comes and goes with that, and
comes back if somebody deletes it. An address that has an IPAddress of somebody else is not given out.
"""

import json
import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pumice.api import Object, name_of, namespace_of
from pumice.cluster.apiserver.metadata import set_identity
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.status import StatusError
from pumice.cluster.apiserver.storage.watch import WatchEvent

if TYPE_CHECKING:
    from pumice.cluster.apiserver.store import Store

CIDR = "10.96.0.0/12"
_HOSTS = IPv4Network(CIDR)
ADDRESSES = range(int(_HOSTS[1]), int(_HOSTS[-1]))
CHOSEN = 256  #: so many of the first addresses are left to those who choose one themselves
PORTS = range(30000, 32768)
NONE = "None"  #: the cluster IP of a Service that shall have none
SERVICES = "services"
IP_ADDRESSES = "ipaddresses.networking.k8s.io"
_LABELS = {"ipaddress.kubernetes.io/ip-family": "IPv4", "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}

Held = TypeVar("Held", bound=Hashable)


class _Allocated(Generic[Held]):
    """What Services hold of a range. `of` says what a Service holds, `shown` how a Service states a number of the range."""

    def __init__(self, what: str, numbers: range, shown: Callable[[int], Held], of: Callable[[Object | None], set[Held]]) -> None:
        self.held: Counter[Held] = Counter()  #: by how many Services
        self.of = of
        self._what, self._numbers, self._shown = what, numbers, shown

    def take(self, service: Object | None) -> None:
        self.held.update(self.of(service))

    def give_back(self, service: Object | None) -> None:
        for each in self.of(service):
            self.held[each] -= 1
            if not self.held[each]:
                del self.held[each]

    def free(self, service: Object, but: set[Held]) -> Iterator[Held]:
        """What nobody holds, from a place in the range on that follows from the uid, so that runs are alike."""
        first = zlib.crc32(str(service["metadata"].get("uid", "")).encode())
        for step in range(len(self._numbers)):
            found = self._shown(self._numbers[(first + step) % len(self._numbers)])
            if found not in self.held and found not in but:
                yield found
        why = f"failed to allocate a {self._what}: range is full"
        raise StatusError(500, "InternalError", f"Internal error occurred: {why}", {"causes": [{"message": why}]})


class ServiceAllocator:
    def __init__(self, store: "Store") -> None:
        self._store = store
        self._addresses = _Allocated("serviceIP", ADDRESSES[CHOSEN:], lambda number: str(IPv4Address(number)), _addresses)
        self._ports = _Allocated("nodePort", PORTS, int, _ports)

    def restored(self, storage: str, service: Object) -> None:
        if storage == SERVICES:
            self._addresses.take(service)
            self._ports.take(service)

    def on_write(self, storage: str, event: WatchEvent) -> None:
        if storage == IP_ADDRESSES:
            if event.type == "DELETED" and event.key[1] in self._addresses.held:
                self._bring_back(event.object)
            return
        self._addresses.give_back(event.previous)
        self._ports.give_back(event.previous)
        if event.type != "DELETED":
            self.restored(storage, event.object)
            self._note(event.object)
        for address in _addresses(event.previous):
            if address not in self._addresses.held and self._stated(address) == _stated_by(event.object):
                self._store.remove_trusted(IP_ADDRESSES, ("", address))

    def _bring_back(self, gone: Object) -> None:
        """Make an IPAddress that somebody deleted once more, for the Service that has the address. Mostly the deleted one named it."""
        ref = (gone.get("spec") or {}).get("parentRef") or {}
        service = self._store.find(SERVICES, ref.get("namespace", ""), ref.get("name", ""))
        if service is not None and name_of(gone) in _addresses(service):
            self._note(service)
        else:
            self.note_all()

    def note_all(self) -> None:
        """Make the IPAddresses that are missing: somebody deleted them, or an older version wrote the Services."""
        for service in list(self._store.all(SERVICES)):
            self._note(service)

    def _note(self, service: Object) -> None:
        for address in _addresses(service):
            if self._stated(address) is None:
                kind = self._store.kind(IP_ADDRESSES)
                made = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {"name": address, "labels": dict(_LABELS)}}
                set_identity(kind, made, "", self._store.new_uid(), self._store.now())
                self._store.put_trusted(IP_ADDRESSES, ("", address), made | {"spec": {"parentRef": _stated_by(service)}})

    def _stated(self, address: str) -> Object | None:
        """Whom an IPAddress names as the owner of an address."""
        found = self._store.storage.get(IP_ADDRESSES, ("", address))
        return None if found is None else found.get("spec", {}).get("parentRef", {})

    def give(self, kind: ServedKind, service: Object, old: Object | None) -> None:
        """Write into a Service the cluster IP and the node ports that it lacks. Raises StatusError if one is taken, or none is left."""
        spec = service["spec"]
        if old is not None:
            _leave(spec, old["spec"])
        if spec.get("type") != "ExternalName" and spec.get("clusterIP") != NONE:
            self._give_address(kind, service, _addresses(old))
        if spec.get("type") in ("NodePort", "LoadBalancer"):
            self._give_ports(kind, service, old)

    def _give_address(self, kind: ServedKind, service: Object, mine: set[str]) -> None:
        spec = service["spec"]
        if fault := self._address_fault(spec.get("clusterIP") or "", spec.get("clusterIPs") or [], mine):
            raise kind.invalid(service["metadata"].get("name", ""), [fault])
        if not spec.get("clusterIP"):
            spec["clusterIP"] = next(each for each in self._addresses.free(service, set()) if self._stated(each) is None)
        spec["clusterIPs"] = [spec["clusterIP"]]

    def _address_fault(self, stated: str, all_stated: list[str], mine: set[str]) -> tuple[str, str] | None:
        """The field with the fault, and the fault, if a Service cannot have these addresses. An address that it has is not exchanged."""
        field, value = "spec.clusterIPs", f"Invalid value: {json.dumps(all_stated)}"
        if not stated:
            return (field, f"{value}: must be empty when `clusterIP` is not specified") if all_stated else None
        if all_stated[0] != stated:
            return field, f"{value}: first value must match `clusterIP`"
        for index, address in enumerate(all_stated):
            if not _is_address(address, IPv4Address):
                valid = f"{value}: IPv6 is not configured on this cluster"
                wrong = f"Invalid value: {json.dumps(address)}: must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
                return f"{field}[{index}]", valid if _is_address(address, IPv6Address) else wrong
        if len(all_stated) > 1:
            return field, f"{value}: may specify no more than one IP for each IP family"
        if mine:
            return None
        outside = int(IPv4Address(stated)) not in ADDRESSES
        why = "the provided network does not match the current range" if outside else "provided IP is already allocated"
        return (field, f"{value}: failed to allocate IP {stated}: {why}") if outside or self._is_held(stated) else None

    def _is_held(self, address: str) -> bool:
        return address in self._addresses.held or self._stated(address) is not None

    def _give_ports(self, kind: ServedKind, service: Object, old: Object | None) -> None:
        spec = service["spec"]
        ports, mine = spec.get("ports") or [], _ports(old)
        _keep(ports, old)
        self._check_ports(kind, service, mine)
        if spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
            return
        free = self._ports.free(service, mine | _ports(service))
        same: dict[Any, Object] = {}  #: by port: its first entry. Under another protocol it has the same node port
        for port in ports:
            if port.get("nodePort"):
                same.setdefault(port.get("port"), port)
        for port in ports:
            if not port.get("nodePort"):
                other = same.setdefault(port.get("port"), port)
                is_same = other is not port and other.get("protocol") != port.get("protocol")
                port["nodePort"] = other["nodePort"] if is_same else next(free)

    def _check_ports(self, kind: ServedKind, service: Object, mine: set[int]) -> None:
        causes, before = [], set[tuple[int, str]]()
        for index, each in enumerate(service["spec"].get("ports") or ()):
            port = each.get("nodePort") or 0
            fault = self._port_fault(port) if port and port not in mine else ""
            if (port, each.get("protocol", "")) in before:
                fault = f"Duplicate value: {port}"
            if port:
                before.add((port, each.get("protocol", "")))
            if fault:
                causes.append((f"spec.ports[{index}].nodePort", fault))
        if causes:
            raise kind.invalid(service["metadata"].get("name", ""), causes)

    def _port_fault(self, port: int) -> str:
        """Why a port cannot be held; empty if it can."""
        if port in self._ports.held:
            return f"Invalid value: {port}: provided port is already allocated"
        outside = f"provided port is not in the valid range. The range of valid ports is {PORTS[0]}-{PORTS[-1]}"
        return "" if port in PORTS else f"Invalid value: {port}: {outside}"


def _stated_by(service: Object) -> Object:
    return {"resource": SERVICES, "namespace": namespace_of(service), "name": name_of(service)}


def _addresses(service: Object | None) -> set[str]:
    spec = (service or {}).get("spec", {})
    return {address for address in (spec.get("clusterIP"), *(spec.get("clusterIPs") or ())) if address} - {NONE}


def _is_address(text: str, of: type[IPv4Address] | type[IPv6Address]) -> bool:
    try:
        of(text)
    except AddressValueError:
        return False
    return True


def _ports(service: Object | None) -> set[int]:
    return {port["nodePort"] for port in (service or {}).get("spec", {}).get("ports") or () if port.get("nodePort")}


#: what only Services of these types have
_OF_TYPES = {
    ("ClusterIP", "LoadBalancer", "NodePort"): ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"),
    ("LoadBalancer", "NodePort"): ("externalTrafficPolicy",),
    ("LoadBalancer",): ("allocateLoadBalancerNodePorts", "loadBalancerClass", "healthCheckNodePort"),
}


def _leave(spec: Object, before: Object) -> None:
    """Take what the type of a Service does not have out of it, if its former type had it and it is as it was."""
    for types, fields in _OF_TYPES.items():
        for field in fields if before["type"] in types and spec["type"] not in types else ():
            if spec.get(field) == before.get(field):
                spec.pop(field, None)
    exposed = ("LoadBalancer", "NodePort")
    if before["type"] in exposed and spec["type"] not in exposed:
        had = {port.get("nodePort") for port in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            if port.get("nodePort") in had:
                port.pop("nodePort", None)


def _keep(ports: list[Object], old: Object | None) -> None:
    """A port keeps the node port that the port of its name had, if it states none and no other port states that one."""
    before = {port.get("name", ""): port.get("nodePort") for port in (old or {}).get("spec", {}).get("ports") or ()}
    stated = {port.get("nodePort") for port in ports}
    for port in ports:
        known = before.get(port.get("name", ""))
        if not port.get("nodePort") and known and known not in stated:
            port["nodePort"] = known
            stated.add(known)
