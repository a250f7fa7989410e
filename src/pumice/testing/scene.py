"""A small cluster to schedule in, and what came of it in plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import PluginOption, Policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.world import NOWHERE, World
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.registry import ACTIONS, PLUGINS
from pumice.testing.builders import _Builder, queue

Chosen = str | type[Plugin] | PluginOption

NOW = 1_767_225_600.0  #: 2026-01-01T00:00:00Z


class Outcome(NamedTuple):
    binds: dict[str, str]  #: pod to node
    evictions: list[str]
    pipelined: dict[str, str]  #: pod to node
    waiting: dict[str, str]  #: pod to message
    phases: dict[str, str]  #: PodGroup to phase


def cluster(*objects: _Builder) -> Cluster:
    """A cluster with these objects, and the open queue `default`."""
    made = Cluster()
    for builder in (queue("default"), *objects):
        made.put(*builder.build())
    return made


def policy(actions: str, plugins: Sequence[Chosen]) -> Policy:
    chosen = [actions_name.strip() for actions_name in actions.split(",")]
    return Policy(tuple(ACTIONS[name]() for name in chosen), (tuple(_choice(plugin) for plugin in plugins),))


def _choice(plugin: Chosen) -> PluginOption:
    if isinstance(plugin, PluginOption):
        return plugin
    return PluginOption(PLUGINS[plugin] if isinstance(plugin, str) else plugin)


def session(made: Cluster, *plugins: Chosen, now: float = NOW, world: World = NOWHERE) -> Session:
    """An open session with the plugins in one tier. Use it in a `with` statement."""
    return Session(made, policy("allocate", plugins), now, world)


def schedule(made: Cluster, actions: str, *plugins: Chosen, now: float = NOW, world: World = NOWHERE) -> Outcome:
    """One cycle with the plugins in one tier."""
    decided = cycle(made, policy(actions, plugins), now, world)
    return Outcome(
        {bind.task.key: bind.node for bind in decided.binds},
        [eviction.task.key for eviction in decided.evictions],
        {place.task.key: place.node for place in decided.pipelined},
        {waits.task.key: waits.message for waits in decided.waiting},
        {group.job.uid: group.phase for group in decided.groups},
    )
