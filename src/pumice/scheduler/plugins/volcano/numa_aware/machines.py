"""The NUMA machines of a session: each node's topology and policies, which CPUs are free, and which will be.

Free CPUs are those that the node's Numatopology object lists, without CPUs that were given to pods since and that it does not show yet.
As with devices, `now` has the CPUs that are free at once, `later` also the CPUs that pods that are leaving still hold.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pumice.api.integers import index_set
from pumice.api.quantity import QuantityError, quantity
from pumice.api.volcano import Numatopology, PodAllocation
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import status
from pumice.scheduler.plugins.volcano.numa_aware.hints import NO_CPUS, NONE, Cpus, NumaTopology

CPU = "cpu"


class NumaMachine:
    """The content of one Numatopology object. `held`: the CPUs of the pods that it shows, by pod uid; None if it does not show pods."""

    def __init__(self, wire: Numatopology, known: dict[Any, NumaTopology]) -> None:
        spec = wire.spec
        self.wire = wire
        details = spec.cpu_detail or {}
        content = tuple(sorted((cpu, place.numa, place.socket, place.core) for cpu, place in details.items()))
        self.topology = known.setdefault(content, NumaTopology(details))  #: shared by all machines with the same CPUs
        policies = spec.policies or {}
        self.is_static = policies.get("CPUManagerPolicy") == "static"
        self.policy = policies.get("TopologyManagerPolicy") or NONE
        listed = (spec.numares or {}).get(CPU)
        self.free: Cpus = frozenset(index_set(listed.allocatable)) - self._reserved() if listed is not None else NO_CPUS
        self.held: dict[str, Cpus] | None = None
        if spec.pod_allocations is not None:
            self.held = {pod.uid: _cpus_of(pod) for pod in spec.pod_allocations}

    def _reserved(self) -> Cpus:
        """The CPUs that the kubelet keeps for itself."""
        try:
            number = quantity((self.wire.spec.res_reserved or {}).get(CPU, 0)).whole
        except QuantityError:
            return NO_CPUS
        return self.topology.take(self.topology.cpus, number) or NO_CPUS


def _cpus_of(pod: PodAllocation) -> Cpus:
    texts = ((container.allocations or {}).get(CPU, "") for container in pod.container_allocations or ())
    return frozenset(cpu for text in texts for cpu in index_set(text))


class Room(NamedTuple):
    now: Cpus
    later: Cpus


class Machines:
    """The machines of a session. `given`: by task uid, CPUs that no Numatopology object shows yet. `kept` lasts from session to session."""

    def __init__(self, session: Session, kept: dict[str, Any], given: Mapping[str, Cpus]) -> None:
        self._session = session
        self._given = given
        self._objects: dict[str, Numatopology] = session.cluster.of("Numatopology")
        self._machines: dict[str, NumaMachine] = kept.setdefault("machines", {})
        self._topologies: dict[Any, NumaTopology] = kept.setdefault("topologies", {})
        for gone in self._machines.keys() - self._objects.keys() if len(self._machines) > len(self._objects) else ():
            del self._machines[gone]
        self._position = len(session.cluster.log)
        self._rooms: dict[int, Room] = {}

    def of(self, node: str) -> NumaMachine | None:
        """The node's machine; None without a Numatopology object."""
        wire = self._objects.get(node)
        if wire is None:
            return None
        machine = self._machines.get(node)
        if machine is None or machine.wire is not wire:
            machine = self._machines[node] = NumaMachine(wire, self._topologies)
        return machine

    def room(self, row: int, machine: NumaMachine) -> Room:
        log = self._session.cluster.log
        for change in log[self._position :]:
            self._rooms.pop(change.row, None)
        self._position = len(log)
        if row not in self._rooms:
            self._rooms[row] = self._count(row, machine)
        return self._rooms[row]

    def forget(self, row: int) -> None:
        """Have the free CPUs of a node counted anew: a pod there has been given CPUs."""
        self._rooms.pop(row, None)

    def _count(self, row: int, machine: NumaMachine) -> Room:
        stays, leaves = set[int](), set[int]()
        for task in self._session.nodes.tasks[row].values():
            given = self._given.get(task.uid, NO_CPUS)
            if task.status == status.RELEASING:
                leaves |= given | (machine.held or {}).get(task.uid, NO_CPUS)
            else:
                stays |= given
        return Room(machine.free - stays - leaves, (machine.free | leaves) - stays)
