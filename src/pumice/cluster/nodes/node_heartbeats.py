"""The node's side of simulated kubelets: every Node of the store is registered, renews its lease, and may fail.

A node is up until it is annotated `pumice.io/kubelet: stopped`. Then its kubelet writes nothing more and its pods do not change, until
the annotation is removed. If each of thousands of nodes renewed its lease every ten seconds, at sixty times the speed, a laptop could do
nothing else. So leases are renewed so rarely that their writes stay below a limit, and last longer accordingly. Only the last lease before
a failure lasts the usual 40 s, so that the failure is noticed as soon as in a real cluster.
"""

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from ipaddress import AddressValueError, IPv4Address, IPv4Network

from pumice.api import Object, name_of, rfc3339, status_of, uid_of
from pumice.api.annotations import KUBELET
from pumice.api.json_objects import annotations_of, is_true
from pumice.api.times import micro_time
from pumice.cluster.apiserver import StatusError, Store
from pumice.cluster.clock import Alarm, AlarmClock


class Addresses:
    """Gives out the addresses of a network in order, so that an address is used again as late as possible. The addresses in `taken` are in
    use; its texts may also be no addresses at all."""

    def __init__(self, network: str, taken: Iterable[str] = ()) -> None:
        span = IPv4Network(network)
        self._first, self._size = int(span.network_address), span.num_addresses
        self._taken = set(taken)
        places = (place - self._first for place in map(_number, self._taken) if place is not None)
        self._last = max((place for place in places if 0 <= place < self._size), default=0)

    def take(self) -> str:
        for _ in range(self._size):
            self._last = (self._last + 1) % self._size
            address = str(IPv4Address(self._first + self._last))
            if self._last and address not in self._taken:
                self._taken.add(address)
                return address
        raise OSError(f"all of {self._size} addresses are in use")

    def give_back(self, address: str) -> None:
        self._taken.discard(address)


def _number(address: str) -> int | None:
    """The number of an IPv4 address. None if the text is none: a pending pod has no address, and clients may write any text there."""
    try:
        return int(IPv4Address(address))
    except AddressValueError:
        return None


STOPPED = (KUBELET, "stopped")  #: the annotation of a failed node, and its value
LEASES, LEASE_NAMESPACE = "leases.coordination.k8s.io", "kube-node-lease"
LEASE_S, RENEW_S, LONGEST_RENEW_S = 40, 10.0, 3600.0
RENEWALS_PER_S = 100.0  #: the most renewals of all nodes together per second of the machine's time
STALL_S = 10.0  #: the seconds of the machine's time for which the process may stall before nodes are considered dead
NODE_NETWORK = "172.16.0.0/12"
PARTS = 16  #: the nodes are divided into this many parts, which renew their leases one after the other
CONDITIONS = {
    "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
}


def is_stopped(node: Object) -> bool:
    return annotations_of(node).get(STOPPED[0]) == STOPPED[1]


def registered(node: Object, now: float, address: str, version: str) -> Object:
    """The status of a node whose kubelet, of the API server's version, has just started."""
    status = status_of(node)
    at = rfc3339(now)
    conditions = [
        {"type": type_, "status": value, "lastHeartbeatTime": at, "lastTransitionTime": at, "reason": reason, "message": message}
        for type_, (value, reason, message) in CONDITIONS.items()
    ]
    own = {condition["type"] for condition in conditions}
    others = [each for each in status.get("conditions") or () if each["type"] not in own]
    info = {"kubeletVersion": version.replace("+", "-"), "osImage": "simulated", "containerRuntimeVersion": "simulated://1"}
    info |= {"kernelVersion": "simulated", "operatingSystem": "linux", "architecture": "amd64", "kubeProxyVersion": ""}
    info |= dict.fromkeys(("machineID", "systemUUID", "bootID"), uid_of(node))
    addresses = [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name_of(node)}]
    return {
        **status,
        "capacity": status.get("capacity") or status.get("allocatable") or {},
        "allocatable": status.get("allocatable") or status.get("capacity") or {},
        "addresses": status.get("addresses") or addresses,
        "nodeInfo": {**info, **{key: value for key, value in (status.get("nodeInfo") or {}).items() if value}},
        "conditions": [*conditions, *others],
    }


class NodeAgents:
    """The kubelets of all nodes. `returned` is called with the name of a node that is up now and was not before."""

    def __init__(self, store: Store, clock: AlarmClock, returned: Callable[[str], None]) -> None:
        self._store = store
        self._clock = clock
        self._returned = returned
        self._up: dict[str, str] = {}  #: by name: the uids of the nodes that are up
        self._rounds: deque[str] = deque()  #: names of nodes that are up, or were until recently, in the order of their next renewal
        self._in_rounds: set[str] = set()  #: the names in `_rounds`
        self._alarm: Alarm | None = None
        self._addresses = Addresses(NODE_NETWORK, filter(None, map(_own_address, store.all("nodes"))))
        self._given: dict[str, str] = {}  #: by the uid of a node: its address

    def is_up(self, name: str) -> bool:
        return name in self._up

    def look(self, name: str) -> None:
        """Follow a write to a node: the node may be new, stopped, up again, or deleted."""
        node = self._store.storage.get("nodes", ("", name))
        if node is None or is_stopped(node):
            uid = self._up.pop(name, None)
            if uid is not None and node is not None:
                self._renew(name, LEASE_S)
            elif uid is not None:
                self._addresses.give_back(self._given.pop(uid, ""))
            return
        if self._up.get(name) == uid_of(node):
            if not is_true(node, "Ready"):  # it was marked as not ready, for instance as its lease ran out
                self._register(node)
            return
        self._up[name] = uid_of(node)
        if name not in self._in_rounds:
            self._in_rounds.add(name)
            self._rounds.append(name)
        self._register(node)
        self._returned(name)
        if self._alarm is None:
            self._next_round()

    def _register(self, node: Object) -> None:
        if not is_true(node, "Ready"):
            address = _own_address(node) or self._given.get(uid_of(node)) or self._addresses.take()
            self._given[uid_of(node)] = address
            status = registered(node, self._clock.now(), address, self._store.version)
            self._store.put_trusted("nodes", ("", name_of(node)), node | {"metadata": dict(node["metadata"]), "status": status})
        self._renew(name_of(node), self._lease_s())

    # Leases

    def _period_s(self) -> float:
        return min(max(RENEW_S, max(1, len(self._up)) * self._clock.speed / RENEWALS_PER_S), LONGEST_RENEW_S)

    def _lease_s(self) -> int:
        return max(LEASE_S, int(4 * self._period_s()), int(min(STALL_S * self._clock.speed, 4 * LONGEST_RENEW_S)))

    def _next_round(self) -> None:
        self._alarm = self._clock.at(self._clock.now() + self._period_s() / PARTS, self._round)

    def _round(self) -> None:
        lease_s = self._lease_s()
        for _ in range(-(-len(self._rounds) // PARTS)):
            name = self._rounds.popleft()
            if name in self._up:
                self._renew(name, lease_s)
                self._rounds.append(name)
            else:
                self._in_rounds.discard(name)
        self._alarm = None
        if self._rounds:
            self._next_round()

    def _renew(self, name: str, lease_s: int) -> None:
        key = (LEASE_NAMESPACE, name)
        renewed = {"leaseDurationSeconds": lease_s, "renewTime": micro_time(self._clock.now())}
        lease = self._store.storage.get(LEASES, key)
        if lease is not None:
            self._store.put_trusted(LEASES, key, lease | {"metadata": dict(lease["metadata"]), "spec": lease["spec"] | renewed})
            return
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": self._up[name]}
        fresh = {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": {"holderIdentity": name, **renewed}}
        with suppress(StatusError):  # the namespace is gone: without a lease, only the node's conditions tell its state
            self._store.create(LEASES, fresh, LEASE_NAMESPACE)


def _own_address(node: Object) -> str:
    return next((each["address"] for each in status_of(node).get("addresses") or () if each.get("type") == "InternalIP"), "")
