"""Topology spread constraints of a pod: its own, or the scheduler's defaults with a selector from what selects or controls the pod."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from pumice.api.annotations import HOSTNAME, ZONE_LABEL
from pumice.api.pod import SpreadConstraint
from pumice.api.selectors import Requirement, Selector, matches
from pumice.model.cluster import Cluster
from pumice.model.task import Task
from pumice.model.template import Template
from pumice.plugins.kube.standing.groups import Group
from pumice.plugins.kube.standing.scope import Register, Scope
from pumice.plugins.kube.standing.terms import merged, selector_of

SYSTEM_DEFAULTS = (
    SpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway"),
    SpreadConstraint(max_skew=5, topology_key=ZONE_LABEL, when_unsatisfiable="ScheduleAnyway"),
)


class Spread(NamedTuple):
    """One constraint, its selector complete."""

    constraint: SpreadConstraint
    group: Group | None  #: the pods counted; an empty selector counts none
    counts_itself: bool

    @property
    def key(self) -> str:
        return self.constraint.topology_key


class SpreadConstraints:
    """See the module. `system`: the built-in defaults, under which a node need not have the labels of all."""

    def __init__(self, cluster: Cluster, defaults: Sequence[SpreadConstraint] = SYSTEM_DEFAULTS, *, system: bool = True) -> None:
        self.cluster = cluster
        self.defaults = tuple(defaults)
        self.system = system
        self._selectors: dict[tuple[str, int, str], Selector] = {}
        self._keys: dict[Template, tuple[str, ...]] = {}

    def key(self, task: Task) -> Hashable:
        """What of the pod's labels the constraints look at."""
        own = task.template.spec.topology_spread_constraints
        if not own:
            return self._selector(task)
        return tuple(task.labels.get(key) for key in self._label_keys(task.template, own))

    def of_pod(self, task: Task, *, hard: bool) -> tuple[Spread, ...]:
        """Its constraints that filter (hard) or score."""
        kind = "DoNotSchedule" if hard else "ScheduleAnyway"
        constraints = task.template.spec.topology_spread_constraints
        if constraints:
            return tuple(self._spread(c, selector_of(c.label_selector), task) for c in constraints if c.when_unsatisfiable == kind)
        wanted = [c for c in self.defaults if c.when_unsatisfiable == kind]
        selector = self._selector(task) if wanted else ()
        return tuple(self._spread(c, selector, task) for c in wanted) if selector else ()

    def needs_all_labels(self, task: Task) -> bool:
        """Whether a node that lacks the label of one constraint is out of them all."""
        return bool(task.template.spec.topology_spread_constraints) or not self.system

    def _spread(self, constraint: SpreadConstraint, selector: Selector, task: Task) -> Spread:
        selector = merged(selector, constraint.match_label_keys or (), task.labels)
        group = Group((Scope(selector, frozenset([task.namespace])),), living=True) if selector else None
        return Spread(constraint, group, matches(selector, task.labels))

    def _label_keys(self, template: Template, own: Sequence[SpreadConstraint]) -> tuple[str, ...]:
        keys = self._keys.get(template)
        if keys is None:
            looked_at = {r.key for c in own for r in selector_of(c.label_selector)} | {k for c in own for k in c.match_label_keys or ()}
            keys = self._keys[template] = tuple(sorted(looked_at))
        return keys

    # -- the selector of the defaults

    def _selector(self, task: Task) -> Selector:
        """What services and the pod's controller select; empty if there is none."""
        cluster = self.cluster
        if not self.defaults or not (task.controller or cluster.of("Service")):
            return ()
        key = (task.namespace, id(task.labels), task.controller)
        found = self._selectors.get(key)
        if found is None:
            found = self._selectors[key] = (*_exactly(self._service_labels(task)), *self._controller_selector(task))
        return found

    def _service_labels(self, task: Task) -> dict[str, str]:
        labels: dict[str, str] = {}
        for name in sorted(self._services.meaning(task)):
            labels |= self.cluster.of("Service")[name].spec.selector
        return labels

    @cached_property
    def _services(self) -> Register[str]:
        """Services by the pods they select; one without a selector selects none."""
        register: Register[str] = Register()
        for name, service in self.cluster.of("Service").items():
            if service.spec.selector:
                register.add(name, (Scope(_exactly(service.spec.selector), frozenset([service.metadata.namespace])),))
        return register

    def _controller_selector(self, task: Task) -> Selector:
        kind, _, name = task.controller.partition("/")
        controller = self.cluster.of(kind).get(f"{task.namespace}/{name}")
        if controller is None:
            return ()
        selector = controller.spec.selector
        if kind == "ReplicationController":
            return _exactly(selector or {})
        return selector_of(selector)


def _exactly(labels: Mapping[str, str]) -> Selector:
    return tuple(Requirement(key, "In", (value,)) for key, value in labels.items())
