"""The topology spread constraints of pods: their own, or the defaults, with the selector of the pods that are counted."""

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from pumice.api.annotations import HOSTNAME, ZONE_LABEL
from pumice.api.pod import TopologySpreadConstraint
from pumice.api.selectors import Requirement, Selector, matches
from pumice.scheduler.model import Cluster, Task, Template
from pumice.scheduler.model.shared_templates import Pairs
from pumice.scheduler.model.task import SPREADING_KINDS
from pumice.scheduler.plugins.kube.indexes.existing_affinity_terms import merged, selector_of
from pumice.scheduler.plugins.kube.indexes.existing_pods import CountedPods
from pumice.scheduler.plugins.kube.indexes.label_index import LabelIndex, PodScope

SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway"),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE_LABEL, when_unsatisfiable="ScheduleAnyway"),
)
SELECTING_KINDS = ("Service", *SPREADING_KINDS)  #: kinds whose objects give pods the selector of the defaults


class Spread(Struct, frozen=True):
    """One constraint with its complete selector."""

    constraint: TopologySpreadConstraint
    group: CountedPods | None  #: the pods that are counted; None for an empty selector, which counts no pod
    counts_itself: bool

    @property
    def key(self) -> str:
        return self.constraint.topology_key


class SpreadConstraints:
    """The spread constraints of pods: their own, or the defaults.

    `system`: the defaults are the built-in ones, under which a node may lack the labels of some constraints.
    """

    def __init__(self, cluster: Cluster, defaults: Sequence[TopologySpreadConstraint] = SYSTEM_DEFAULTS, *, system: bool = True) -> None:
        self.cluster = cluster
        self.defaults = tuple(defaults)
        self.system = system
        self._selectors: dict[tuple[str, Pairs, str], Selector] = {}
        self._keys: dict[Template, tuple[str, ...]] = {}

    def key(self, task: Task) -> Hashable:
        """The values of the pod's labels that its constraints use."""
        own = task.template.spec.topology_spread_constraints
        if not own:
            return self._selector(task)
        return tuple(task.labels.get(key) for key in self._label_keys(task.template, own))

    def tells_apart(self, template: Template) -> bool:
        """Whether pods of this template may differ in that."""
        return bool(template.spec.topology_spread_constraints) or any(map(self.cluster.of, SELECTING_KINDS))

    def of_pod(self, task: Task, *, hard: bool) -> tuple[Spread, ...]:
        """The pod's constraints that filter (`hard`), or those that score."""
        kind = "DoNotSchedule" if hard else "ScheduleAnyway"
        constraints = task.template.spec.topology_spread_constraints
        if constraints:
            return tuple(self._spread(c, selector_of(c.label_selector), task) for c in constraints if c.when_unsatisfiable == kind)
        wanted = [c for c in self.defaults if c.when_unsatisfiable == kind]
        selector = self._selector(task) if wanted else ()
        return tuple(self._spread(c, selector, task) for c in wanted) if selector else ()

    def needs_all_labels(self, task: Task) -> bool:
        """Whether a node that lacks the label of one constraint is ignored by all of them."""
        return bool(task.template.spec.topology_spread_constraints) or not self.system

    def _spread(self, constraint: TopologySpreadConstraint, selector: Selector, task: Task) -> Spread:
        selector = merged(selector, constraint.match_label_keys or (), task.labels)
        group = CountedPods((PodScope(selector, frozenset([task.namespace])),), living=True) if selector else None
        return Spread(constraint, group, matches(selector, task.labels))

    def _label_keys(self, template: Template, own: Sequence[TopologySpreadConstraint]) -> tuple[str, ...]:
        keys = self._keys.get(template)
        if keys is None:
            looked_at = {r.key for c in own for r in selector_of(c.label_selector)} | {k for c in own for k in c.match_label_keys or ()}
            keys = self._keys[template] = tuple(sorted(looked_at))
        return keys

    # -- the selector of the defaults

    def _selector(self, task: Task) -> Selector:
        """The selector of the pod's Services and of its controller; empty if there are none."""
        cluster = self.cluster
        if not self.defaults or not (task.controller or cluster.of("Service")):
            return ()
        key = (task.namespace, task.labels, task.controller)
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
    def _services(self) -> LabelIndex[str]:
        """The Services by the pods that they select. A Service without a selector selects none."""
        register: LabelIndex[str] = LabelIndex()
        for name, service in self.cluster.of("Service").items():
            if service.spec.selector:
                register.add(name, (PodScope(_exactly(service.spec.selector), frozenset([service.metadata.namespace])),))
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
