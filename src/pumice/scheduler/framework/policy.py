"""The policy, made from the configuration: which actions run, in which order, with which plugins in which tiers.

kube-scheduler's profiles, as the `schedule` action uses them: the content of a KubeSchedulerConfiguration, resolved.
A profile is chosen by a pod's schedulerName. Its rules are made anew for each session, so that their state lives for one cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from itertools import count, dropwhile
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct, field

from pumice.api.problems import Path, Problems
from pumice.api.strict_decoding import Args
from pumice.scheduler.engine import Filter, Scorer
from pumice.scheduler.framework.features import DEFAULT as RELEASE_DEFAULT, Release
from pumice.scheduler.framework.hooks import HOOKS, RULE_HOOKS
from pumice.scheduler.framework.plugin import NoArgs, Plugin

if TYPE_CHECKING:
    from pumice.scheduler.framework.session import Session
    from pumice.scheduler.model import Job

SCHEDULE = "schedule"  #: the action's name
FilterMaker = Callable[["Session"], list[Filter]]
ScorerMaker = Callable[["Session"], list[Scorer]]


class DefaultPreemptionArgs(Args, frozen=True):
    """How many of the nodes where evictions might help are tried: a percentage, but at least the absolute number."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100

    def check(self, path: Path, problems: Problems) -> None:
        percent, least = (*path, "minCandidateNodesPercentage"), (*path, "minCandidateNodesAbsolute")
        problems.within(percent, self.min_candidate_nodes_percentage, 0, 100)
        if self.min_candidate_nodes_absolute < 0:
            problems.invalid(least, self.min_candidate_nodes_absolute, "not in valid range [0, inf)")
        if self.min_candidate_nodes_percentage == self.min_candidate_nodes_absolute == 0:
            problems.invalid(percent, 0, "cannot be zero at the same time as minCandidateNodesAbsolute")
            problems.invalid(least, 0, "cannot be zero at the same time as minCandidateNodesPercentage")


PREEMPTION_DEFAULTS = DefaultPreemptionArgs()


class ExtenderSpec(Struct, frozen=True):
    """A scheduler extender, called over HTTP. It is not called for a verb that is empty."""

    url: str
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 1
    timeout_s: float = 5.0
    names_only: bool = False  #: nodeCacheCapable: requests have names of nodes, not objects
    managed: frozenset[str] = frozenset()  #: it is called only for pods that request one of these resources; empty: for all
    ignorable: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)  #: enableHTTPS and tlsConfig as written

    @property
    def name(self) -> str:
        return "extender/" + self.url.rstrip("/").rpartition("/")[2]


class Profile(Struct, frozen=True):
    """A profile of kube-scheduler, from its configuration."""

    name: str
    filters: tuple[FilterMaker, ...]
    scorers: tuple[ScorerMaker, ...]
    post_filters: tuple[str, ...] = ("DynamicResources", "DefaultPreemption")
    preemption: DefaultPreemptionArgs = PREEMPTION_DEFAULTS
    own: frozenset[str] = frozenset()  #: names of its plugins that are not kube-scheduler's
    percentage: int = 0  #: of the nodes: when so many are found feasible the search stops; 0 and 100: all nodes are examined
    group_post_filters: tuple[str, ...] = ()  #: as post_filters, for groups of pods
    holds_gangs_back: bool = False  #: a group with too few pods for its minimum is not tried
    is_gang_checked: bool = False  #: the minimum of a group counts while its pods are tried
    tries_placements: bool = False  #: groups are tried in placements
    generates_placements: bool = False  #: the topology constraints of groups count
    placement_weights: Mapping[str, int] = field(default_factory=dict)  #: the plugins that score placements of groups
    placement_resources: Mapping[str, int] = field(default_factory=dict)  #: resources and weights with which NodeResourcesFit does it


class Profiles(Struct, frozen=True):
    """All profiles and extenders of one configuration."""

    by_name: Mapping[str, Profile]
    extenders: tuple[ExtenderSpec, ...] = ()
    initial_backoff_s: float = 1.0
    max_backoff_s: float = 10.0
    release: Release = RELEASE_DEFAULT


class Action:
    """The base class of all actions. `name` is the action's name in configurations."""

    name: ClassVar[str] = ""
    Args: ClassVar[type[Struct]] = NoArgs
    settles: ClassVar[bool] = False  #: a second run would add nothing until something changes
    reads_only_state: ClassVar[bool]  #: what it does follows from kept state and plugins, or it sets `went_by_clock`

    def __init__(self, args: Any = None) -> None:
        self.args: Any = args if args is not None else self.Args()

    def enter(self, session: Session) -> None:
        """Pretend what plugins are to see when they open. Called before they do."""

    def run(self, session: Session) -> None:
        raise NotImplementedError

    def next_turn(self, session: Session) -> float:
        """As `Plugin.next_turn`: the time from which the action may do something although nothing has changed."""
        return inf

    def class_key(self, job: Job) -> Hashable:
        """What else of a waiting job the action reads, as for `Plugin.class_key`. Called only if `reads_only_state`."""
        return None


class PluginOption(Struct, frozen=True):
    """One plugin of one tier: its class, arguments, and the hooks that are switched off."""

    plugin: type[Plugin]
    args: Any = None
    off: frozenset[str] = frozenset()  #: names of switches that are false
    hierarchy: bool = False

    def enabled(self, hook: str) -> bool:
        return HOOKS[hook].switch not in self.off and (self.hierarchy or hook not in self.plugin.hierarchy_only)

    def takes_part(self, hook: str) -> bool:
        return hasattr(self.plugin, hook) and self.enabled(hook)


class Policy(Struct, frozen=True, dict=True):
    """Actions and tiers of plugins, from the configuration."""

    actions: tuple[Action, ...]
    tiers: tuple[tuple[PluginOption, ...], ...]
    metrics: dict[str, str] = field(default_factory=dict)
    shadow_groups: bool = False  #: make PodGroups inside the scheduler for pods without one, as kube-batch does
    profiles: Profiles | None = None  #: kube-scheduler's profiles, if that is what is configured
    gathering_s: float = 0.0  #: the period for which pods beyond their job's minimum wait for jobs that are just arriving
    texts: tuple[str, ...] = ()  #: texts of the configurations from which it was read
    shortcuts: bool = True  #: use what was computed before; without it everything is computed anew, with the same decisions

    @cached_property
    def choices(self) -> list[PluginOption]:
        """The plugins of all tiers in a row. The number of a plugin is its index in this list."""
        return [choice for tier in self.tiers for choice in tier]

    @cached_property
    def takers(self) -> dict[str, list[list[int]]]:
        """For each hook in which any plugin takes part: the numbers of these plugins, tier by tier. Every session reads it."""
        number = count()
        tiers = [[(next(number), choice) for choice in tier] for tier in self.tiers]
        found = {hook: [[each for each, choice in tier if choice.takes_part(hook)] for tier in tiers] for hook in HOOKS}
        return {hook: numbers for hook, numbers in found.items() if any(numbers)}

    # what a class declares of itself does not hold for its subclasses

    @cached_property
    def reads_only_state(self) -> bool:
        """Whether decisions depend only on the kept state, and on time only where a plugin says when (`next_turn`)."""
        kinds = (*map(type, self.actions), *(choice.plugin for choice in self.choices))
        return all(vars(kind).get("reads_only_state") for kind in kinds)

    @cached_property
    def rules_last(self) -> bool:
        """Whether later sessions may use the filters and scorers that its plugins gave an earlier session."""
        givers = {self.choices[number].plugin for hook in RULE_HOOKS for tier in self.takers.get(hook, ()) for number in tier}
        return all(vars(giver).get("rules_last") for giver in givers)

    @property
    def reads_volcano(self) -> bool:
        """Whether it reads objects of Volcano's kinds: it places gangs, or a profile has a plugin that is not kube-scheduler's."""
        profiles = self.profiles
        return self.places_gangs or (profiles is not None and any(profile.own for profile in profiles.by_name.values()))

    def has_gate(self, gate: str) -> bool:
        """Whether a feature gate of kube-scheduler is on."""
        return self.profiles is not None and self.profiles.release.has(gate)

    @property
    def reads_native_groups(self) -> bool:
        """Whether it places the pods of Kubernetes' own PodGroups together."""
        return self.profiles is not None and self.profiles.release.places_groups

    @property
    def places_gangs(self) -> bool:
        """Whether it places the pods of PodGroups as gangs: it has no profiles, or it has the action allocate."""
        return self.profiles is None or self.has_action("allocate")

    @property
    def only_places(self) -> bool:
        """Whether its actions let jobs in and place pods, and evict none for others."""
        return {action.name for action in self.actions} <= {"enqueue", "allocate", "backfill", "giveback"}

    def has_action(self, name: str) -> bool:
        return any(action.name == name for action in self.actions)

    def comes_later(self, name: str, than: str) -> bool:
        """Whether an action has a turn after another action."""
        return any(action.name == name for action in dropwhile(lambda action: action.name != than, self.actions))

    def has_hook(self, hook: str) -> bool:
        return hook in self.takers

    def has_plugin(self, name: str) -> bool:
        return any(choice.plugin.name == name for tier in self.tiers for choice in tier)
