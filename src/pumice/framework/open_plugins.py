"""The plugins of one session: made, opened, and their hooks flattened to tuples of bound methods, by tier.

Plugins from outside, and in a cycle that is decided again all plugins, are asked through a guard (`containment.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pumice.engine.rules import Filter, Rule, Scorer
from pumice.framework.containment import Broken, Failure, Guard, is_ours
from pumice.framework.hooks import HOOKS
from pumice.framework.observer import Stage
from pumice.framework.plugin import Plugin
from pumice.framework.policy import Choice
from pumice.framework.rules import filters_of, scorers_of
from pumice.model.job import Job
from pumice.model.task import Task

if TYPE_CHECKING:
    from pumice.framework.session import Session

Method = Callable[..., Any]
R = TypeVar("R", bound=Rule)


class OpenPlugins:
    """See the module."""

    def __init__(self, session: Session, *, guarded: bool) -> None:
        """`guarded`: Pumice's own plugins as well."""
        self._session = session
        self._guarded = guarded
        self._tiers = [[(choice, choice.plugin(choice.args, choice.hierarchy)) for choice in tier] for tier in session.policy.tiers]
        everyone = [plugin for tier in self._tiers for _, plugin in tier]
        self._guards: dict[int, Guard] = {}
        broken = [failure for plugin in everyone if (failure := self._open(plugin)) is not None]
        self.tiers: dict[str, list[list[Method]]] = {hook: self._methods(hook) for hook in HOOKS}  #: methods by hook, tier by tier
        self.flat = {hook: tuple(method for tier in tiers for method in tier) for hook, tiers in self.tiers.items()}  #: the same in a row
        self.filters: list[Filter] = [Broken(failure) for failure in broken]
        self.scorers: list[Scorer] = []
        for choice, plugin in self._pairs():
            self._add_rules(choice, plugin)

    def filters_for(self, kind: type[Plugin]) -> list[Filter]:
        """Those of a plugin that a profile of kube-scheduler names."""
        plugin = kind()
        if (failure := self._open(plugin)) is not None:
            return [Broken(failure)]
        guard, filters = self._guards.get(id(plugin)), filters_of(plugin, _always)
        return filters if guard is None else list(map(guard.filter, filters))

    def scorers_for(self, kind: type[Plugin]) -> list[Scorer]:
        """The same for its scorers; one that cannot open refuses by its filters."""
        plugin = kind()
        if self._open(plugin) is not None:
            return []
        guard, scorers = self._guards.get(id(plugin)), scorers_of(plugin, _always)
        return scorers if guard is None else list(map(guard.scorer, scorers))

    def named(self, name: str) -> Any:
        """The plugin of this name, or None."""
        return next((plugin for _, plugin in self._pairs() if plugin.name == name), None)

    def question(self, hook: str) -> Method:
        """Asks all who have the hook, and folds their answers."""
        return HOOKS[hook].question(self.tiers[hook])

    def in_order(self, *hooks: str) -> list[tuple[str, Method]]:
        """The methods of several hooks, plugin by plugin."""
        taking_part = ((hook, choice, plugin) for choice, plugin in self._pairs() for hook in hooks)
        return [(hook, self.hook(plugin, hook)) for hook, choice, plugin in taking_part if _takes_part(choice, plugin, hook)]

    def hook(self, plugin: Plugin, hook: str) -> Method:
        """The plugin's method, guarded if need be."""
        method: Method = getattr(plugin, hook)
        guard = self._guards.get(id(plugin))
        return method if guard is None else guard.hook(hook, method)

    def _pairs(self) -> list[tuple[Choice, Plugin]]:
        return [pair for tier in self._tiers for pair in tier]

    def _methods(self, hook: str) -> list[list[Method]]:
        return [[self.hook(plugin, hook) for choice, plugin in tier if _takes_part(choice, plugin, hook)] for tier in self._tiers]

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

    def _add_rules(self, choice: Choice, plugin: Plugin) -> None:
        guard = self._guards.get(id(plugin))
        if guard is None:
            self.filters += filters_of(plugin, choice.enabled)
            self.scorers += scorers_of(plugin, choice.enabled)
            return
        self.filters += self._rules(guard, "filters", lambda: list(map(guard.filter, filters_of(plugin, choice.enabled))))
        self.scorers += self._rules(guard, "scorers", lambda: list(map(guard.scorer, scorers_of(plugin, choice.enabled))))

    def _rules(self, guard: Guard, hook: str, give: Callable[[], list[R]]) -> list[R]:
        """The plugin's rules; one that cannot give them refuses all tasks."""
        try:
            return give()
        except Exception as error:
            self.filters.append(Broken(guard.note(hook, error, getattr(guard.plugin, hook))))
            return []


def _always(hook: str) -> bool:
    return True


def _takes_part(choice: Choice, plugin: Plugin, hook: str) -> bool:
    return hasattr(plugin, hook) and choice.enabled(hook)
