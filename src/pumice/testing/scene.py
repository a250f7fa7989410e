"""A small cluster to schedule in, and what came of it in plain values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pumice.cluster.offline import complete
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import PluginOption, Policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.world import NOWHERE, World
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.task import Task
from pumice.scheduler.registry import ACTIONS, PLUGINS
from pumice.testing.builders import Builder

Chosen = str | type[Plugin] | PluginOption

NOW = 1_767_225_600.0  #: 2026-01-01T00:00:00Z


class Outcome(NamedTuple):
    binds: dict[str, str]  #: pod to node
    evictions: list[str]
    pipelined: dict[str, str]  #: pod to node
    waiting: dict[str, str]  #: pod to message
    phases: dict[str, str]  #: PodGroup to phase


def cluster(*objects: Builder | Iterable[Builder]) -> Cluster:
    """A cluster with these objects, one by one or several at once, and what an API server and Volcano's webhooks add to them."""
    each = (builder for entry in objects for builder in ([entry] if isinstance(entry, Builder) else entry))
    made = Cluster()
    for kind, item in complete(builder.build() for builder in each):
        made.put(kind, item)
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


def scores(session: Session, pod: str) -> dict[str, float]:
    """Of the nodes that a pod, "name" or "namespace/name", may go to."""
    evaluation = session.evaluation(task_of(session.cluster, pod))
    totals = evaluation.totals(evaluation.admitted)
    return {session.nodes.names[row]: float(totals[row]) for row in session.nodes if evaluation.admitted[row]}


def refusals(session: Session, pod: str) -> dict[str, str]:
    """The first reason of each node that a pod may not go to."""
    found: dict[str, str] = {}
    for refused in session.evaluation(task_of(session.cluster, pod)).refusals():
        for row in session.nodes:
            if refused.where[row]:
                found.setdefault(session.nodes.names[row], refused.reason.text)
    return found


def task_of(made: Cluster, pod: str) -> Task:
    return made.tasks[pod if "/" in pod else f"default/{pod}"]
