"""What equal pods share: everything that scheduling reads except identity, state and labels.

A job of a thousand equal pods has one template. Masks, scores and reasons are computed per template, not per pod. `Shared` has each once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from sys import getrefcount, intern
from weakref import WeakValueDictionary, ref

import numpy as np
from msgspec.structs import replace

from pumice.api.pod import Container, Pod, PodSpec, Volume
from pumice.api.quantity import Quantity
from pumice.api.structs import encode
from pumice.scheduler.model.pod_request import POD_LEVEL, beyond_all, pod_request, request_vector, resize_state, scoring_request
from pumice.scheduler.model.resources import EPSILON, MOST_OF_ONE, PODS, Dimensions, Sum, Vector, as_sum


class Template:
    """The part of pods that equal ones share. `spec` is that of the first pod met, without its node."""

    def __init__(self, pod: Pod, dimensions: Dimensions) -> None:
        self.spec: PodSpec = pod.spec
        self.namespace = pod.metadata.namespace or "default"
        self.annotations = pod.metadata.annotations or {}  #: of the first pod; read only keys in TEMPLATE_ANNOTATIONS here
        asked = pod_request(pod)
        whole = request_vector(asked, dimensions)
        self.beyond = beyond_all(asked, dimensions)  #: an amount, in words, that makes it fit nowhere, ever; empty for none
        self.immense = np.flatnonzero(whole >= MOST_OF_ONE)  #: dimensions of which it asks for more than a node can ever have
        self.request: Vector = np.where(whole < MOST_OF_ONE, whole, 0.0)  #: as it counts in sums over jobs and queues
        self.exactly: Sum = as_sum(self.request)  #: the same, as kept sums count
        needed = np.flatnonzero(whole)
        self.columns = needed  #: dimensions with a request
        self.amounts: Vector = whole[needed]  #: what it takes on a node
        self.needs = list(zip(needed.tolist(), self.amounts.tolist(), strict=True))  #: the same as pairs
        real = whole.copy()
        real[PODS] = 0
        self.best_effort = bool((real < EPSILON).all())  #: asks for nothing but a place
        self.scoring_cpu, self.scoring_memory = scoring_request(pod)
        self.newcomer_cpu, self.newcomer_memory = scoring_request(pod, placed=False)  #: the same while it looks for a node
        self.bulk = int(max(whole.max(), self.scoring_cpu, self.scoring_memory))  #: no sum grows by more than this
        self.scheduler_name = pod.spec.scheduler_name or "default-scheduler"
        self.priority_value = pod.spec.priority
        self.never_preempts = pod.spec.preemption_policy == "Never"
        self.gates = tuple(gate.name for gate in pod.spec.scheduling_gates or ())

    @property
    def taken(self) -> Vector:
        """What it takes on a node, in all dimensions."""
        vector = np.zeros_like(self.request)
        vector[self.columns] = self.amounts
        return vector

    def without_amounts(self) -> bytes:
        """Equal for templates that differ only in how much they ask for."""
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
        self.request, self.exactly = dimensions.fitted(self.request), dimensions.fitted(self.exactly)

    @cached_property
    def containers(self) -> tuple[Container, ...]:
        return tuple(self.spec.containers or ())

    @cached_property
    def sidecars(self) -> tuple[Container, ...]:
        return tuple(c for c in self.spec.init_containers or () if c.restart_policy == "Always")

    @cached_property
    def host_ports(self) -> frozenset[tuple[str, str, int]]:
        """(protocol, address, port) of every host port asked for."""
        ports = (port for container in (*self.containers, *self.sidecars) for port in container.ports or ())
        return frozenset((p.protocol or "TCP", p.host_ip or "0.0.0.0", p.host_port) for p in ports if p.host_port and p.host_port > 0)

    @cached_property
    def has_pod_terms(self) -> bool:
        """Whether it has inter-pod affinity or anti-affinity of its own."""
        affinity = self.spec.affinity
        return affinity is not None and bool(affinity.pod_affinity or affinity.pod_anti_affinity)

    @cached_property
    def needs_only_room(self) -> bool:
        """Whether all it takes from others is room: no port, volume, claim or shared device, and no say in who stands beside it."""
        spec = self.spec
        beside = self.has_pod_terms or spec.topology_spread_constraints
        shares_devices = any(name.startswith("volcano.sh/") for name in self.limits)
        return not (beside or self.host_ports or spec.volumes or spec.resource_claims or shares_devices)

    @cached_property
    def guaranteed(self) -> bool:
        """Quality of service class Guaranteed: every container has equal cpu and memory requests and limits."""
        for container in (*self.containers, *(self.spec.init_containers or ())):
            limits = (container.resources.limits if container.resources else None) or {}
            requests = (container.resources.requests if container.resources else None) or {}
            for name in POD_LEVEL:
                if name not in limits or limits[name].milli == 0 or (name in requests and requests[name].milli != limits[name].milli):
                    return False
        return bool(self.containers)

    @cached_property
    def limits(self) -> dict[str, float]:
        """Container limits by name, in whole units: the greater of the sum of containers and the largest init container."""
        totals: dict[str, float] = {}
        for container in self.containers:
            for name, amount in _limits(container):
                totals[name] = totals.get(name, 0.0) + amount.milli / 1000
        for container in self.spec.init_containers or ():
            for name, amount in _limits(container):
                totals[name] = max(totals.get(name, 0.0), amount.milli / 1000)
        return totals


def volumes_that_matter(spec: PodSpec) -> list[Volume] | None:
    """Without those of which only the name is read: the server makes one up for every pod's token, and equal pods would differ by it."""
    return [volume for volume in spec.volumes or () if volume != Volume(name=volume.name)] or None


def _limits(container: Container) -> list[tuple[str, Quantity]]:
    limits = container.resources.limits if container.resources else None
    return list((limits or {}).items())


# What equal pods share is there once, and gone with the last of them, or some time after.
#
# Nearly each pod of a gang has labels of its own, and a weak reference takes half as much memory as labels: those that nobody has any
# longer are looked for instead, whenever there are twice as many as the last time.

FEW = 1000  #: labels and annotations that are not worth looking through


class Pairs(dict[str, str]):
    """Labels or annotations, one for all equal ones, and so a key as itself."""

    __slots__ = ("__weakref__",)

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


NO_PAIRS = Pairs()
_nobodys = {0: Pairs()}
UNUSED = getrefcount(_nobodys[0])  #: of what stands in a dictionary alone


class Shared:
    """Templates, and labels and annotations as a whole. Each is one object for all that are equal."""

    def __init__(self, dimensions: Dimensions) -> None:
        self._dimensions = dimensions
        self._templates: WeakValueDictionary[bytes, Template] = WeakValueDictionary()
        self._latest: Callable[[], Template | None] = lambda: None  #: that the next pod has often, too
        self._pairs: dict[int, Pairs] = {}  #: by their hash, which takes less than they
        self._bound = FEW  #: pairs after which those that nobody has are looked for

    def template(self, pod: Pod) -> Template:
        spec = replace(pod.spec, node_name=None, volumes=volumes_that_matter(pod.spec))
        resized, latest = resize_state(pod), self._latest()
        if latest is not None and resized is None and latest.namespace == pod.metadata.namespace and latest.spec == spec:
            return latest
        key = encode((pod.metadata.namespace, spec, resized))
        known = self._templates.get(key)
        if known is None:
            known = self._templates[key] = Template(replace(pod, spec=spec), self._dimensions)
        if resized is None:
            self._latest = ref(known)
        return known

    def pairs(self, pairs: dict[str, str] | None) -> Pairs:
        if not pairs:
            return NO_PAIRS
        key = hash(frozenset(pairs.items()))
        known = self._pairs.get(key)
        if known is None or known != pairs:
            known = self._pairs[key] = Pairs((name, intern(pairs[name])) for name in sorted(pairs))
            if len(self._pairs) > self._bound:
                self._forget_unused()
        return known

    def _forget_unused(self) -> None:
        for key in [key for key in self._pairs if getrefcount(self._pairs[key]) == UNUSED]:
            del self._pairs[key]
        self._bound = FEW + 2 * len(self._pairs)

    def widen(self) -> None:
        for template in self._templates.values():
            template.widen(self._dimensions)
