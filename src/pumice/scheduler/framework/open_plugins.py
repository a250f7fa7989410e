"""The plugins of one session: made, opened, and their hooks flattened to tuples of bound methods, by tier.

Plugins from outside, and in a cycle that is decided again all plugins, are asked through a guard (`containment.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from pumice.scheduler.engine.rules import Filter, Rule, Scorer
from pumice.scheduler.framework.containment import Broken, BrokenScorer, Failure, Guard, is_ours
from pumice.scheduler.framework.hooks import HOOKS
from pumice.scheduler.framework.observer import Stage
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import PluginOption
from pumice.scheduler.framework.rules import filters_of, scorers_of
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.task import Task

if TYPE_CHECKING:
    from pumice.scheduler.framework.session import Session

Method = Callable[..., Any]
R = TypeVar("R", bound=Rule)
T = TypeVar("T")


class Form(NamedTuple, Generic[R]):
    """One of the two kinds of rules."""

    hook: str
    given: Callable[[Plugin, Callable[[str], bool]], list[R]]
    guarded: Callable[[Guard, R], R]
    broken: Callable[[Failure], R]


GIVEN_FILTERS = Form("filters", filters_of, Guard.filter, Broken)
GIVEN_SCORERS = Form("scorers", scorers_of, Guard.scorer, BrokenScorer)


class MadeWhenAsked(dict[str, T]):
    """By hook; each value is made when first asked for: few hooks are, in most sessions."""

    def __init__(self, make: Callable[[str], T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, hook: str) -> T:
        made = self[hook] = self._make(hook)
        return made


class OpenPlugins:
    """The plugins of a session, and their hooks by tier."""

    def __init__(self, session: Session, *, guarded: bool) -> None:
        """`guarded`: Pumice's own plugins as well."""
        self._session = session
        self._guarded = guarded
        self._tiers = [[(choice, choice.plugin(choice.args, choice.hierarchy)) for choice in tier] for tier in session.policy.tiers]
        everyone = [plugin for tier in self._tiers for _, plugin in tier]
        self._guards: dict[int, Guard] = {}
        self._broken = [failure for plugin in everyone if (failure := self._open(plugin)) is not None]
        self._opened = {id(choice): plugin for choice, plugin in self._pairs()}
        self.tiers = MadeWhenAsked(self._by_tier)  #: methods by hook, tier by tier
        self.flat = MadeWhenAsked(self._in_a_row)  #: the same in a row
        self.everyone = [plugin for _, plugin in self._pairs()]  #: that could be opened

    @property
    def are_trusted(self) -> bool:
        """Whether all of them are asked directly."""
        return not self._guards

    @cached_property
    def rules(self) -> tuple[list[Filter], list[Scorer]]:
        """Filters and scorers. Most sessions go on with those of an earlier one (`lasting.py`)."""
        filters: list[Filter] = [Broken(failure) for failure in self._broken]
        scorers: list[Scorer] = []
        for choice, plugin in self._pairs():
            filters += self._rules(plugin, GIVEN_FILTERS, choice.enabled)
            scorers += self._rules(plugin, GIVEN_SCORERS, choice.enabled)
        return filters, scorers

    def rules_for(self, kind: type[Plugin], form: Form[R]) -> list[R]:
        """Filters or scorers of a plugin that a profile of kube-scheduler names."""
        plugin = kind()
        failure = self._open(plugin)
        return self._rules(plugin, form, lambda hook: True) if failure is None else [form.broken(failure)]

    def named(self, name: str) -> Any:
        """The plugin of this name, or None."""
        return next((plugin for _, plugin in self._pairs() if plugin.name == name), None)

    def question(self, hook: str) -> Method:
        """Asks all who have the hook, and folds their answers."""
        return HOOKS[hook].question(self.tiers[hook])

    def in_order(self, *hooks: str) -> list[tuple[str, Method]]:
        """The methods of several hooks, plugin by plugin."""
        if not any(self.flat[hook] for hook in hooks):
            return []
        return [(hook, self.hook(plugin, hook)) for choice, plugin in self._pairs() for hook in hooks if choice.takes_part(hook)]

    def hook(self, plugin: Plugin, hook: str) -> Method:
        """The plugin's method, guarded if need be."""
        method: Method = getattr(plugin, hook)
        guard = self._guards.get(id(plugin))
        return method if guard is None else guard.hook(hook, method)

    def _pairs(self) -> list[tuple[PluginOption, Plugin]]:
        return [pair for tier in self._tiers for pair in tier]

    def _by_tier(self, hook: str) -> list[list[Method]]:
        takers, opened = self._session.policy.takers.get(hook), self._opened
        if takers is None:
            return [[] for _ in self._tiers]
        return [[self.hook(opened[id(choice)], hook) for choice in tier if id(choice) in opened] for tier in takers]

    def _in_a_row(self, hook: str) -> tuple[Method, ...]:
        if hook not in self._session.policy.takers:  # as most are not, in most policies
            return ()
        return tuple([method for tier in self.tiers[hook] for method in tier])

    def _open(self, plugin: Plugin) -> Failure | None:
        """Open it; one that fails has no part in the session."""
        guard = Guard(plugin, self._failed) if self._guarded or not is_ours(plugin) else None
        if guard is not None:
            self._guards[id(plugin)] = guard
        observer = self._session.observer
        observer.begins(Stage.OPEN, plugin)
        try:
            plugin.open(self._session)
            observer.ends(Stage.OPEN, plugin)
        except Exception as error:
            if guard is None:
                raise
            self._tiers = [[pair for pair in tier if pair[1] is not plugin] for tier in self._tiers]
            return guard.note("open", error, plugin.open)
        return None

    def _failed(self, failure: Failure, about: Any) -> None:
        """The first time it is also told to those who look at the job."""
        failures = self._session.decisions.failures
        if failure not in failures:
            failures[failure] = None
            job = about if isinstance(about, Job) else about.job if isinstance(about, Task) else None
            if job is not None:
                self._session.event(job, "Warning", "PluginFailed", str(failure))

    def _rules(self, plugin: Plugin, form: Form[R], enabled: Callable[[str], bool]) -> list[R]:
        """The plugin's rules of a form; one that cannot give them refuses all tasks."""
        guard = self._guards.get(id(plugin))
        if guard is None:
            return form.given(plugin, enabled)
        try:
            return [form.guarded(guard, rule) for rule in form.given(plugin, enabled)]
        except Exception as error:
            return [form.broken(guard.note(form.hook, error, getattr(plugin, form.hook)))]
