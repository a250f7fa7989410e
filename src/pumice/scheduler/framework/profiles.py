"""kube-scheduler's profiles, as the `schedule` action uses them: the content of a KubeSchedulerConfiguration, resolved.

A profile is chosen by a pod's schedulerName. Its rules are made anew for each session, so that their state lives for one cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from pumice.api.problems import Path, Problems
from pumice.api.strict_decoding import Args
from pumice.scheduler.engine import Filter, Scorer
from pumice.scheduler.framework.feature_gates import DEFAULT as RELEASE_DEFAULT, Release

if TYPE_CHECKING:
    from pumice.scheduler.framework.session import Session

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
