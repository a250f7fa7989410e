"""Node ports of Services: each is held by one Service, and is free again once its Service has no use for it.

Which are held is noted at each write, so that to give out a port no Service is looked at. A write that is refused, or is a dry run, holds
nothing. Ports that two Services hold, as an older version could give them out, stay with both.
"""

import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pumice.api import Object
from pumice.cluster.apiserver.kinds import ServedKind
from pumice.cluster.apiserver.status import StatusError
from pumice.cluster.apiserver.watch import WatchEvent

PORTS = range(30000, 32768)
_SERVICES = "services"


class NodePorts:
    def __init__(self) -> None:
        self._held: Counter[int] = Counter()  #: by port: how many Services hold it

    def restored(self, storage: str, service: Object) -> None:
        if storage == _SERVICES:
            self._held.update(_ports(service))

    def on_write(self, storage: str, event: WatchEvent) -> None:
        if storage != _SERVICES:
            return
        for port in _ports(event.previous):
            self._held[port] -= 1
            if not self._held[port]:
                del self._held[port]
        if event.type != "DELETED":
            self._held.update(_ports(event.object))

    def give(self, kind: ServedKind, service: Object, old: Object | None) -> None:
        """Write node ports into the ports of a Service that lack them. Raises StatusError if a port is taken, or none is left."""
        spec = service["spec"] if kind.resource == _SERVICES else {}
        if spec.get("type") not in ("NodePort", "LoadBalancer"):
            return
        ports, mine = spec.get("ports") or [], _ports(old)
        _keep(ports, old)
        self._check(kind, service, mine)
        if spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
            return
        free = self._free(zlib.crc32(str(service["metadata"].get("uid", "")).encode()), mine | _ports(service))
        same: dict[Any, Object] = {}  #: by port: its first entry. Under another protocol it has the same node port
        for port in ports:
            if port.get("nodePort"):
                same.setdefault(port.get("port"), port)
        for port in ports:
            if not port.get("nodePort"):
                other = same.setdefault(port.get("port"), port)
                is_same = other is not port and other.get("protocol") != port.get("protocol")
                port["nodePort"] = other["nodePort"] if is_same else next(free)

    def _check(self, kind: ServedKind, service: Object, mine: set[int]) -> None:
        causes, before = [], set[tuple[int, str]]()
        for index, each in enumerate(service["spec"].get("ports") or ()):
            port = each.get("nodePort") or 0
            fault = self._fault(port) if port and port not in mine else ""
            if (port, each.get("protocol", "")) in before:
                fault = f"Duplicate value: {port}"
            if port:
                before.add((port, each.get("protocol", "")))
            if fault:
                causes.append((f"spec.ports[{index}].nodePort", fault))
        if causes:
            raise kind.invalid(service["metadata"].get("name", ""), causes)

    def _fault(self, port: int) -> str:
        """Why a port cannot be held; empty if it can."""
        if port in self._held:
            return f"Invalid value: {port}: provided port is already allocated"
        outside = f"provided port is not in the valid range. The range of valid ports is {PORTS[0]}-{PORTS[-1]}"
        return "" if port in PORTS else f"Invalid value: {port}: {outside}"

    def _free(self, first: int, given: set[int]) -> Iterator[int]:
        """The ports that nobody holds, from a place in the range on that follows from the uid, so that runs are alike."""
        for step in range(len(PORTS)):
            port = PORTS[(first + step) % len(PORTS)]
            if port not in self._held and port not in given:
                yield port
        why = "failed to allocate a nodePort: range is full"
        raise StatusError(500, "InternalError", f"Internal error occurred: {why}", {"causes": [{"message": why}]})


def _ports(service: Object | None) -> set[int]:
    return {port["nodePort"] for port in (service or {}).get("spec", {}).get("ports") or () if port.get("nodePort")}


def _keep(ports: list[Object], old: Object | None) -> None:
    """A port keeps the node port that the port of its name had, if it states none and no other port states that one."""
    before = {port.get("name", ""): port.get("nodePort") for port in (old or {}).get("spec", {}).get("ports") or ()}
    stated = {port.get("nodePort") for port in ports}
    for port in ports:
        known = before.get(port.get("name", ""))
        if not port.get("nodePort") and known and known not in stated:
            port["nodePort"] = known
            stated.add(known)
