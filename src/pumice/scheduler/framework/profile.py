"""kube-scheduler's profiles, as the `schedule` action takes them: what a KubeSchedulerConfiguration says, resolved.

A profile is found by a pod's schedulerName. Its rules are made anew for each session, so that what they keep lives for one cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pumice.scheduler.engine.rules import Filter, Scorer

if TYPE_CHECKING:
    from pumice.scheduler.framework.session import Session

SCHEDULE = "schedule"  #: the action's name
FilterMaker = Callable[["Session"], list[Filter]]
ScorerMaker = Callable[["Session"], list[Scorer]]


@dataclass(frozen=True)
class DefaultPreemptionArgs:
    """How many of the nodes where evictions might help are tried: a share, but at least so many."""

    percent: int = 10
    least: int = 100


@dataclass(frozen=True)
class ExtenderSpec:
    """A service that is asked over HTTP. An empty verb is not asked."""

    url: str
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 1
    timeout_s: float = 5.0
    names_only: bool = False  #: nodeCacheCapable: it is sent names of nodes, not objects
    managed: frozenset[str] = frozenset()  #: it is asked only for pods that request one of these; empty for all pods
    ignorable: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)  #: enableHTTPS and tlsConfig as written

    @property
    def name(self) -> str:
        return "extender/" + self.url.rstrip("/").rpartition("/")[2]


@dataclass(frozen=True)
class Profile:
    """See the module."""

    name: str
    filters: tuple[FilterMaker, ...]
    scorers: tuple[ScorerMaker, ...]
    post_filters: tuple[str, ...] = ("DynamicResources", "DefaultPreemption")
    preemption: DefaultPreemptionArgs = DefaultPreemptionArgs()
    own: frozenset[str] = frozenset()  #: its plugins that are not kube-scheduler's
    percentage: int = 0  #: of nodes, after which the search for feasible ones stops; 0 and 100 look at all


@dataclass(frozen=True)
class Profiles:
    """All of one configuration."""

    by_name: Mapping[str, Profile]
    extenders: tuple[ExtenderSpec, ...] = ()
    initial_backoff_s: float = 1.0
    max_backoff_s: float = 10.0
