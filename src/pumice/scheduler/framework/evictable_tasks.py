"""Which tasks may be evicted in a session: whom plugins let go by the hooks of evicting actions, and whom they certainly do not.

What a plugin exposes and spares are bounds, which save asking about each task: they count only where all plugins are trusted.
"""

from collections.abc import Callable, Hashable, Iterable
from functools import reduce
from operator import or_
from typing import Any, cast

from pumice.scheduler.framework.open_plugins import OpenPlugins
from pumice.scheduler.framework.past_evictions import PastEvictions
from pumice.scheduler.model import Cluster, Job, Mask, Task


class EvictableTasks:
    """What plugins say of victims. `hook`: preemptable, reclaimable or unified_evictable, by the action that asks."""

    def __init__(self, cluster: Cluster, plugins: OpenPlugins, past_evictions: PastEvictions, *, shortcuts: bool) -> None:
        self._cluster = cluster
        self._plugins = plugins
        self._past_evictions = past_evictions
        self._shortcuts = shortcuts
        self._kinds: dict[str, list[Callable[[Task], Hashable]]] = {}
        self._sparing: dict[str, list[list[Callable[[Task, Task], bool]]]] = {}
        self._permitting: dict[Task, list[Callable[..., Any]]] = {}  #: by victim: the methods that let it go when they were last asked

    @property
    def _may_skip(self) -> bool:
        return self._shortcuts and self._plugins.are_trusted

    def permitted(self, hook: str, evictor: Any, candidates: list[Task]) -> list[Task]:
        """The victims that plugins let go, by the hook that is asked. Which plugins these are is remembered."""
        victims, accepting = self._plugins.questions[hook](evictor, candidates)
        self._permitting.update(dict.fromkeys(victims, accepting))
        return cast("list[Task]", victims)

    def permitted_by(self, victim: Task) -> tuple[str, ...]:
        """The names of the plugins that let a victim go, when they were last asked about it."""
        return tuple(method.__self__.name for method in self._permitting.get(victim, ()))  # type: ignore[attr-defined]

    def eviction_cache_key(self, hook: str, evictor: Task) -> Hashable:
        """Equal for evictors for which plugins permit the same victims; different for each evictor if a plugin lacks this hook."""
        if hook not in self._kinds:
            plugins = [method.__self__ for method in self._plugins.flat[hook]]  # type: ignore[attr-defined]
            self._kinds[hook] = [
                self._plugins.hook(p, "eviction_cache_key") if hasattr(p, "eviction_cache_key") else _by_itself for p in plugins
            ]
        return *(kind(evictor) for kind in self._kinds[hook]), self._past_evictions.spared(evictor)

    def exposed(self, hook: str) -> set[Job]:
        """The jobs that may lose tasks in the action that begins now, by the hook that says which: in some tier all plugins expose them."""
        exposed = set[Job]()
        for named in map(self._named_by, filter(None, self._plugins.tiers[hook])):
            exposed |= set.intersection(*map(set, named)) if named else set(self._cluster.jobs.values())
        return exposed

    def exposes_any(self, hook: str) -> bool:
        """Whether any job may lose tasks now."""
        tiers = map(self._named_by, filter(None, self._plugins.tiers[hook]))
        return any(all(next(iter(jobs), None) is not None for jobs in named) for named in tiers)

    def _named_by(self, tier: list[Callable[..., Any]]) -> list[Iterable[Job]]:
        """The jobs that plugins of a tier expose, of those plugins that do not expose all."""
        if not (self._may_skip):
            return []
        answers = [method.__self__.exposes() for method in tier]  # type: ignore[attr-defined]
        return [jobs for jobs in answers if jobs is not None]

    def unspared(self, hook: str, evictor: Task, tasks: list[Task]) -> list[Task]:
        """Those of these tasks that might go now: in some tier no plugin spares them."""
        if hook not in self._sparing:
            known = self._may_skip
            tiers = filter(None, self._plugins.tiers[hook])
            self._sparing[hook] = [[method.__self__.spares for method in tier] if known else [] for tier in tiers]  # type: ignore[attr-defined]
        left = [tasks] * len(self._sparing[hook])
        for number, tier in enumerate(self._sparing[hook]):
            for spares in tier:
                left[number] = [task for task in left[number] if not spares(evictor, task)]
        some = [its for its in left if its]
        return [task for task in tasks if any(task in its for its in some)] if len(some) > 1 else some[0] if some else []

    def spared_rows(self, hook: str, evictor: Task) -> Mask | bool:
        """The nodes where certainly no task may go now for this one, True for all: in each tier some plugin spares all tasks there."""
        spared: Mask | bool = self._may_skip
        for tier in filter(None, self._plugins.tiers[hook]):
            if spared is not False:
                spared = spared & reduce(or_, [method.__self__.spares_rows(evictor) for method in tier])  # type: ignore[attr-defined]
        return spared


def _by_itself(evictor: Task) -> Hashable:
    return evictor.uid
