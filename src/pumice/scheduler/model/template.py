"""What equal pods share: everything that scheduling reads except identity, state and labels.

A job of a thousand equal pods has one template. Masks, scores and reasons are computed per template, not per pod. `Shared` keeps each once.
What a pod requests is counted in `pod_request.py`.
"""

from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from msgspec.structs import replace

from pumice.api.defaults import SYSTEM_CLASSES
from pumice.api.pod import Container, Pod, PodSpec, Volume
from pumice.api.quantity import Quantity
from pumice.api.structs import encode, pack, unpacker
from pumice.scheduler.model.pod_request import POD_LEVEL, beyond_all, charged, pod_request, request_vector, resize_state, scoring_request
from pumice.scheduler.model.resources import (
    EPSILON,
    FEW_READ,
    MOST_OF_ONE,
    PODS,
    Dimensions,
    Rows,
    Sum,
    Vector,
    as_sum,
    one_text,
    packed,
    unpacked,
)

SCORED = 4  #: so many numbers for scoring come before those of a template's vector
_WRITTEN = unpacker(tuple[Any, PodSpec, Any])


def written(pod: Pod) -> bytes:
    """What pods of a template have in common, as it is written."""
    return pack((pod.metadata.namespace, pod.spec, (resize_state(pod), sorted(charged(pod.status.charges or ()).items()))))


@lru_cache(maxsize=FEW_READ)
def _read(written: bytes) -> PodSpec:
    spec: PodSpec = _WRITTEN.decode(written)[1]
    return spec


@lru_cache(maxsize=FEW_READ)
def _exactly(packed: bytes, width: int) -> Sum:
    requested = unpacked(packed, width)[SCORED:]
    return as_sum(np.where(requested < MOST_OF_ONE, requested, 0.0))


class Template:
    """The part of a pod that equal pods share. Very many may wait that are like no other. So the spec and the numbers are kept as bytes,
    which take a third of the memory. What is made of them when it is read is forgotten when the pods come to rest (`forget`)."""

    __slots__ = (
        "__dict__",
        "_packed",
        "_width",
        "best_effort",
        "beyond",
        "gates",
        "has_pod_terms",
        "namespace",
        "never_preempts",
        "priority_value",
        "scheduler_name",
        "written",
    )

    def __init__(self, pod: Pod, dimensions: Dimensions, as_written: bytes = b"") -> None:
        self.written = as_written or written(pod)
        self.namespace = one_text(pod.metadata.namespace or "default")
        asked = pod_request(pod)
        whole = request_vector(asked, dimensions)
        self.beyond = beyond_all(asked, dimensions)  #: an amount, in words, that no node can ever have; empty for none
        amounts = whole.tolist()
        self.best_effort = not any(amount >= EPSILON for column, amount in enumerate(amounts) if column != PODS)  #: requests only a place
        self._packed = packed(np.array((*scoring_request(pod), *scoring_request(pod, placed=False), *amounts)))
        self._width = SCORED + dimensions.width
        affinity = pod.spec.affinity
        #: whether the pod has inter-pod affinity or anti-affinity terms of its own
        self.has_pod_terms = affinity is not None and bool(affinity.pod_affinity or affinity.pod_anti_affinity)
        self.scheduler_name = pod.spec.scheduler_name or "default-scheduler"
        self.priority_value = pod.spec.priority
        self.never_preempts = pod.spec.preemption_policy == "Never"
        self.gates = tuple(gate.name for gate in pod.spec.scheduling_gates or ())

    @property
    def is_critical(self) -> bool:
        """Whether the cluster lives by the pod, so that it is nobody's victim."""
        return self.spec.priority_class_name in SYSTEM_CLASSES or self.namespace == "kube-system"

    @property
    def spec(self) -> PodSpec:
        """The spec of the first of these pods, without its node and its group."""
        return _read(self.written)

    @property
    def exactly(self) -> Sum:
        """`request` in the form of kept sums."""
        return _exactly(self._packed, self._width)

    @property
    def _numbers(self) -> Vector:
        """What is packed: scoring_cpu, scoring_memory, newcomer_cpu, newcomer_memory, `taken`."""
        return unpacked(self._packed, self._width)

    @cached_property
    def taken(self) -> Vector:
        """What a pod takes on a node."""
        return self._numbers[SCORED:]

    @cached_property
    def immense(self) -> Rows:
        """The dimensions in which it requests more than a node can ever have."""
        return np.flatnonzero(self.taken >= MOST_OF_ONE)

    @cached_property
    def request(self) -> Vector:
        """What a pod takes, as it counts in sums over jobs and queues."""
        return np.where(self.taken < MOST_OF_ONE, self.taken, 0.0) if self.immense.size else self.taken

    @cached_property
    def scoring_cpu(self) -> float:
        return float(self._numbers[0])

    @cached_property
    def scoring_memory(self) -> float:
        return float(self._numbers[1])

    @cached_property
    def newcomer_cpu(self) -> float:
        """The same while it has no node."""
        return float(self._numbers[2])

    @cached_property
    def newcomer_memory(self) -> float:
        return float(self._numbers[3])

    @cached_property
    def bulk(self) -> int:
        """A pod of it makes no sum grow by more."""
        return int(max(*self.taken.tolist(), self.scoring_cpu, self.scoring_memory))

    @cached_property
    def columns(self) -> Rows:
        """The dimensions with a request."""
        return np.flatnonzero(self.taken)

    @cached_property
    def amounts(self) -> Vector:
        """What a pod takes on a node in these dimensions."""
        return self.taken[self.columns]

    @cached_property
    def needs(self) -> list[tuple[int, float]]:
        """`columns` and `amounts` as pairs."""
        return [(column, amount) for column, amount in enumerate(self.taken.tolist()) if amount]

    def without_amounts(self) -> bytes:
        """A key that is equal for templates that differ only in the amounts that they request."""
        spec = self.spec
        bare = replace(
            spec,
            containers=[replace(container, resources=None) for container in spec.containers or ()],
            init_containers=[replace(container, resources=None) for container in spec.init_containers or ()],
            overhead=None,
            resources=None,
        )
        return encode((self.namespace, bare))

    def widen(self, dimensions: Dimensions) -> None:
        self._width = SCORED + dimensions.width
        self.forget()

    def forget(self) -> None:
        """Forget what was made of what is kept."""
        del self.__dict__  # an empty dictionary would take a place, too

    @cached_property
    def containers(self) -> tuple[Container, ...]:
        return tuple(self.spec.containers or ())

    @cached_property
    def sidecars(self) -> tuple[Container, ...]:
        return tuple(c for c in self.spec.init_containers or () if c.restart_policy == "Always")

    @cached_property
    def host_ports(self) -> frozenset[tuple[str, str, int]]:
        """(protocol, address, port) of every host port that the pod requests."""
        ports = (port for container in (*self.containers, *self.sidecars) for port in container.ports or ())
        return frozenset((p.protocol or "TCP", p.host_ip or "0.0.0.0", p.host_port) for p in ports if p.host_port and p.host_port > 0)

    @cached_property
    def needs_only_room(self) -> bool:
        """Whether the pod takes only room from others: no port, volume, claim or shared device, no pod affinity or spread constraint."""
        spec = self.spec
        beside = self.has_pod_terms or spec.topology_spread_constraints
        shares_devices = any(name.startswith("volcano.sh/") for name in self.limits)
        return not (beside or self.host_ports or spec.volumes or spec.resource_claims or shares_devices)

    @cached_property
    def guaranteed(self) -> bool:
        """Whether the quality of service class is Guaranteed: every container has equal cpu and memory requests and limits."""
        for container in (*self.containers, *(self.spec.init_containers or ())):
            limits = (container.resources.limits if container.resources else None) or {}
            requests = (container.resources.requests if container.resources else None) or {}
            for name in POD_LEVEL:
                if name not in limits or limits[name].milli == 0 or (name in requests and requests[name].milli != limits[name].milli):
                    return False
        return bool(self.containers)

    @cached_property
    def limits(self) -> dict[str, float]:
        """Container limits by resource, in whole units: the greater of the sum of containers and the largest init container."""
        totals: dict[str, float] = {}
        for container in self.containers:
            for name, amount in _limits(container):
                totals[name] = totals.get(name, 0.0) + amount.milli / 1000
        for container in self.spec.init_containers or ():
            for name, amount in _limits(container):
                totals[name] = max(totals.get(name, 0.0), amount.milli / 1000)
        return totals


def volumes_that_matter(spec: PodSpec) -> list[Volume] | None:
    """The volumes of which we read more than the name. The API server adds a volume for every pod's token, with a name of its own, by
    which equal pods would differ."""
    return [volume for volume in spec.volumes or () if volume != Volume(name=volume.name)] or None


def _limits(container: Container) -> list[tuple[str, Quantity]]:
    limits = container.resources.limits if container.resources else None
    return list((limits or {}).items())
