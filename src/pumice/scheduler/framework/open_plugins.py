"""The plugins of one session: made, opened, and the methods of their hooks, by tier.

Plugins from outside are called through a guard (`plugin_guard.py`); in a guarded cycle all plugins are. If no plugin is guarded and no
observer needs full cycles, the next session uses the same plugin objects, reset, so that methods are looked up only once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from pumice.scheduler.engine import Filter, Rule, Scorer
from pumice.scheduler.framework.folds import all_agree, anyone
from pumice.scheduler.framework.hooks import HOOKS
from pumice.scheduler.framework.observer import Stage
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.plugin_guard import Broken, BrokenScorer, Failure, Guard, is_ours
from pumice.scheduler.framework.plugin_rules import filters_of, scorers_of
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import Cluster, Job, Task

if TYPE_CHECKING:
    from pumice.scheduler.framework.session import Session

MEMORY = "plugins"  #: its key in the cluster's memory

Method = Callable[..., Any]
R = TypeVar("R", bound=Rule)
T = TypeVar("T")


class RuleForm(NamedTuple, Generic[R]):
    """How plugins give one of the two kinds of rules, filters or scorers."""

    hook: str
    given: Callable[[Plugin, Callable[[str], bool]], list[R]]
    guarded: Callable[[Guard, R], R]
    broken: Callable[[Failure], R]


GIVEN_FILTERS = RuleForm("filters", filters_of, Guard.filter, Broken)
GIVEN_SCORERS = RuleForm("scorers", scorers_of, Guard.scorer, BrokenScorer)


class MadeWhenAsked(dict[str, T]):
    """Values by hook. Each value is made when it is first read, since most sessions need few hooks."""

    def __init__(self, make: Callable[[str], T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, hook: str) -> T:
        made = self[hook] = self._make(hook)
        return made


class OpenPlugins:
    """The plugins of a session, and their hooks by tier."""

    def __init__(self, session: Session, *, guarded: bool) -> None:
        """Make and open the plugins of the session's policy. `guarded`: put Pumice's own plugins behind guards as well."""
        self._session = session
        self._guarded = guarded
        self._policy = session.policy
        self._guards: dict[Plugin, Guard] = {}
        self._broken: list[Failure] = []
        made: dict[type[Plugin], Plugin] = {}  #: a plugin that is listed more than once is one object
        for kind, choice in {choice.plugin: choice for choice in self._policy.choices}.items():
            plugin = kind(choice.args, choice.hierarchy)
            failure = self._open(plugin)
            if failure is None:
                made[kind] = plugin
            else:
                self._broken.append(failure)
        self.everyone = list(made.values())  #: the plugins that could be opened
        self.hosts = [plugin for plugin in self.everyone if "welcomes" in vars(type(plugin))]  #: those that are asked about newcomers
        choices = enumerate(self._policy.choices)
        self._opened = {number: made[choice.plugin] for number, choice in choices if choice.plugin in made}  #: by number in the policy
        self.tiers = MadeWhenAsked(self._by_tier)  #: by hook: the methods, tier by tier
        self.flat = MadeWhenAsked(self._in_a_row)  #: by hook: the methods of all tiers in a row
        self.questions = MadeWhenAsked(self._question)  #: by hook: a function that calls all methods and folds their answers

    @classmethod
    def of(cls, session: Session, *, guarded: bool) -> OpenPlugins:
        """The plugins of the session before, opened again, if they can be used; else new ones."""
        kept: OpenPlugins | None = session.cluster.memory.pop(MEMORY, None)
        policy, in_full = session.policy, guarded or session.observer.needs_full_cycles
        if kept is None or kept._policy is not policy or in_full or not policy.shortcuts:
            return cls(session, guarded=guarded)
        kept._session = session
        for plugin in kept.everyone:  # they have no guards
            session.observer.begins(Stage.OPEN, plugin)
            plugin.open(session)
            session.observer.ends(Stage.OPEN, plugin)
        return kept

    @staticmethod
    def left(cluster: Cluster, policy: Policy) -> OpenPlugins | None:
        """The plugins of the session before, which are not open now; None if it has left none, or those of another policy."""
        kept: OpenPlugins | None = cluster.memory.get(MEMORY)
        return kept if kept is not None and kept._policy is policy else None

    def release(self) -> None:
        """Keep the plugins for the next session, if it may use them. Called when nobody asks them about this one
        any more: nothing of it is kept."""
        if self.are_trusted and not self._session.observer.needs_full_cycles:
            vars(self).pop("rules", None)
            self._session.cluster.memory[MEMORY] = self
            del self._session
            for plugin in self.everyone:
                plugin.forget()

    @property
    def are_trusted(self) -> bool:
        """Whether all plugins are called directly, without guards."""
        return not self._guards

    @cached_property
    def rules(self) -> tuple[list[Filter], list[Scorer]]:
        """The filters and scorers of all plugins. Most sessions use those of an earlier session instead (`evaluations_for`)."""
        filters: list[Filter] = [Broken(failure) for failure in self._broken]
        scorers: list[Scorer] = []
        for number, plugin in self._opened.items():
            choice = self._policy.choices[number]
            filters += self._rules(plugin, GIVEN_FILTERS, choice.enabled)
            scorers += self._rules(plugin, GIVEN_SCORERS, choice.enabled)
        return filters, scorers

    def rules_for(self, kind: type[Plugin], form: RuleForm[R]) -> list[R]:
        """The filters or scorers of a plugin that a profile of kube-scheduler names. The plugin is made and opened for it."""
        plugin = kind()
        failure = self._open(plugin)
        return self._rules(plugin, form, lambda hook: True) if failure is None else [form.broken(failure)]

    def named(self, name: str) -> Any:
        return next((plugin for plugin in self.everyone if plugin.name == name), None)

    def _question(self, hook: str) -> Method:
        _, fold, by_tier = HOOKS[hook]
        assert fold is not None
        methods = (self.tiers if by_tier else self.flat)[hook]
        only_one_decides = fold in (all_agree, anyone) and len(methods) == 1
        return methods[0] if only_one_decides else partial(fold, methods)  # type: ignore[return-value]

    def in_order(self, *hooks: str) -> list[tuple[str, Method]]:
        """The methods of several hooks with the hooks' names, plugin by plugin."""
        opened = [(self._policy.choices[number], plugin) for number, plugin in self._opened.items()]
        return [(hook, self.hook(plugin, hook)) for choice, plugin in opened for hook in hooks if choice.takes_part(hook)]

    def hook(self, plugin: Plugin, hook: str) -> Method:
        """The plugin's method for the hook, behind its guard if the plugin has one."""
        method: Method = getattr(plugin, hook)
        guard = self._guards.get(plugin)
        return method if guard is None else guard.hook(hook, method)

    def _by_tier(self, hook: str) -> list[list[Method]]:
        return [self._methods(hook, tier) for tier in self._policy.takers.get(hook, ())]

    def _in_a_row(self, hook: str) -> list[Method]:
        return self._methods(hook, [number for tier in self._policy.takers.get(hook, ()) for number in tier])

    def _methods(self, hook: str, numbers: Sequence[int]) -> list[Method]:
        return [self.hook(plugin, hook) for plugin in dict.fromkeys(self._opened[number] for number in numbers if number in self._opened)]

    def _open(self, plugin: Plugin) -> Failure | None:
        """Open the plugin; None, or its failure. A plugin that fails takes no part in the session. Raises if it has no guard."""
        guard = Guard(plugin, self.failed) if self._guarded or not is_ours(type(plugin)) else None
        if guard is not None:
            self._guards[plugin] = guard
        observer = self._session.observer
        observer.begins(Stage.OPEN, plugin)
        try:
            plugin.open(self._session)
            observer.ends(Stage.OPEN, plugin)
        except Exception as error:
            if guard is None:
                raise
            return guard.note("open", error, plugin.open)
        return None

    def failed(self, failure: Failure, about: Any) -> None:
        """Note a failure. When it is new, also record an event for the job that the plugin was asked about."""
        failures = self._session.decisions.failures
        if failure not in failures:
            failures[failure] = None
            job = about if isinstance(about, Job) else about.job if isinstance(about, Task) else None
            if job is not None:
                self._session.event(job, "Warning", "PluginFailed", str(failure))

    def _rules(self, plugin: Plugin, form: RuleForm[R], enabled: Callable[[str], bool]) -> list[R]:
        """The plugin's rules of one form. A guarded plugin that fails to give them has one rule that refuses all tasks."""
        guard = self._guards.get(plugin)
        if guard is None:
            return form.given(plugin, enabled)
        try:
            return [form.guarded(guard, rule) for rule in form.given(plugin, enabled)]
        except Exception as error:
            return [form.broken(guard.note(form.hook, error, getattr(plugin, form.hook)))]
