"""The policy, made from the configuration: which actions run, in which order, with which plugins in which tiers."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from itertools import count, dropwhile
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct, field

from pumice.api.volcano import PodGroup
from pumice.scheduler.framework.hooks import HOOKS, LINE_HOOKS, NEWCOMER_HOOKS, RULE_HOOKS
from pumice.scheduler.framework.plugin import NoArgs, Plugin

if TYPE_CHECKING:
    from pumice.scheduler.framework.decisions import Decisions
    from pumice.scheduler.framework.observer import Observer
    from pumice.scheduler.framework.session import Session
    from pumice.scheduler.model import Cluster, Job
from pumice.scheduler.framework.profiles import Profiles

SCHEDULE = "schedule"  #: the action's name


class Action:
    """The base class of all actions. `name` is the action's name in configurations."""

    name: ClassVar[str] = ""
    Args: ClassVar[type[Struct]] = NoArgs
    settles: ClassVar[bool] = False  #: a second run would add nothing until something changes
    places_gangs: ClassVar[bool] = False  #: it gives idle room to the pods of PodGroups, gang by gang
    plain_for_newcomers: ClassVar[bool]  #: with a newcomer (`newcomer_cycle.py`) it does nothing but let it in, or bind it to the best node
    serves_by_queue: ClassVar[bool] = True  #: whose turn is next depends on the queues of jobs
    reads_only_state: ClassVar[bool]  #: what it does follows from kept state and plugins, or it sets `went_by_clock`

    def __init__(self, args: Any = None) -> None:
        self.args: Any = args if args is not None else self.Args()

    def enter(self, session: Session) -> None:
        """Pretend what plugins are to see when they open. Called before they do."""

    def run(self, session: Session) -> None:
        raise NotImplementedError

    def decide(self, cluster: Cluster, policy: Policy, now: float, observer: Observer) -> Decisions | None:
        """What a cycle decides, if the action can tell without a session; then all is done that follows from it. None: nothing has changed,
        and a session decides."""
        return None

    def next_turn(self, session: Session) -> float:
        """As `Plugin.next_turn`: the time from which the action may do something although nothing has changed."""
        return inf

    def turn_of_newcomer(self, job: Job) -> tuple[Any, ...]:
        """The key of a job's turn among newcomers of one queue that are equal to plugins."""
        return job.created, job.uid

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

    @cached_property
    def places_newcomers(self) -> bool:
        """Whether it is known of all actions and plugins what they do with a newcomer, which is to place it."""
        are_plain = all(vars(type(action)).get("plain_for_newcomers") for action in self.actions)
        plugins = (choice.plugin for choice in self.choices)
        says = {"welcomes", "plain_for_newcomers"}
        are_known = all(says & vars(plugin).keys() or NEWCOMER_HOOKS.isdisjoint(plugin.hooks()) for plugin in plugins)
        keeps = self.shortcuts and self.reads_only_state and self.rules_last and self.profiles is None and not self.gathering_s
        return keeps and are_plain and are_known and self.has_placer

    @cached_property
    def keeps_line(self) -> bool:
        """Whether its only action that places serves jobs in one line, and all plugins are plain for jobs of one pod that wait there."""
        plugins = (choice.plugin for choice in self.choices)
        are_plain = all(vars(each).get("plain_in_line") or LINE_HOOKS.isdisjoint(each.hooks()) for each in plugins)
        is_alone = sum(action.places_gangs for action in self.actions) == 1
        in_line = is_alone and not self.placer.serves_by_queue and not self.has_action("enqueue")
        return self.places_newcomers and in_line and are_plain and self.has_plugin("gang")

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
        """Whether it places the pods of PodGroups as gangs: it has no profiles, or it has an action that does."""
        return self.profiles is None or self.has_placer

    @property
    def has_placer(self) -> bool:
        """Whether an action gives idle room to the pods of PodGroups, such as allocate and in-order."""
        return any(action.places_gangs for action in self.actions)

    @cached_property
    def placer(self) -> Action:
        """The first action that does."""
        return next(action for action in self.actions if action.places_gangs)

    @cached_property
    def _action_names(self) -> frozenset[str]:
        return frozenset(action.name for action in self.actions)

    def has_action(self, name: str) -> bool:
        return name in self._action_names

    def places_after(self, name: str) -> bool:
        """Whether an action that places the pods of PodGroups has a turn after this action."""
        return any(action.places_gangs for action in dropwhile(lambda action: action.name != name, self.actions))

    def has_hook(self, hook: str) -> bool:
        return hook in self.takers

    @cached_property
    def _plugin_names(self) -> frozenset[str]:
        return frozenset(choice.plugin.name for choice in self.choices)

    def has_plugin(self, name: str) -> bool:
        return name in self._plugin_names

    def why_topology_is_unheeded(self, group: PodGroup) -> str:
        """Why a hard network topology of the PodGroup has no effect; empty if it has an effect, or if there is none."""
        asked = [group.spec.network_topology, *(part.network_topology for part in group.spec.sub_group_policy or ())]
        if self.has_hook("hyper_node_gradient_for_job") or not any(topology and topology.mode != "soft" for topology in asked):
            return ""
        return "its hard network topology has no effect: add the plugin network-topology-aware to the scheduler's configuration"
