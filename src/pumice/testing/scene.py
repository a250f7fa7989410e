"""A small cluster to schedule in, and the outcome in plain values."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pumice.inputs.cluster_from_files import complete
from pumice.scheduler.config.implied import with_implied
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import PluginOption, Policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.world import NOWHERE, World
from pumice.scheduler.model import Cluster, Task
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
    """A cluster with these objects, given singly or in lists, and with what an API server and Volcano's webhooks would add to them."""
    each = (builder for entry in objects for builder in ([entry] if isinstance(entry, Builder) else entry))
    made = Cluster()
    for kind, item in complete(builder.build() for builder in each):
        made.put(kind, item)
    return made


def policy(actions: str, plugins: Sequence[Chosen]) -> Policy:
    chosen = [actions_name.strip() for actions_name in actions.split(",")]
    tier = tuple(_choice(plugin) for plugin in plugins)
    return Policy(with_implied(tuple(ACTIONS[name]() for name in chosen), [tier], ACTIONS), (tier,))


def _choice(plugin: Chosen) -> PluginOption:
    if isinstance(plugin, PluginOption):
        return plugin
    return PluginOption(PLUGINS[plugin] if isinstance(plugin, str) else plugin)


def session(made: Cluster, *plugins: Chosen, now: float = NOW, world: World = NOWHERE) -> Session:
    """An open session with the plugins in one tier. Use it in a `with` statement."""
    return Session(made, policy("allocate", plugins), now, world)


def schedule(made: Cluster, actions: str, *plugins: Chosen, now: float = NOW, world: World = NOWHERE) -> Outcome:
    """The outcome of one cycle with these actions, and with the plugins in one tier."""
    decided = cycle(made, policy(actions, plugins), now, world)
    return Outcome(
        {bind.task.key: bind.node for bind in decided.binds},
        [eviction.task.key for eviction in decided.evictions],
        {place.task.key: place.node for place in decided.pipelined},
        {waits.task.key: waits.message for waits in decided.waiting},
        {group.job.uid: group.phase for group in decided.groups},
    )


def scores(session: Session, pod: str) -> dict[str, float]:
    """The total score of each node to which a pod, "name" or "namespace/name", may go."""
    evaluation = session.evaluation(task_of(session.cluster, pod))
    totals = evaluation.totals(evaluation.admitted)
    return {session.nodes.names[row]: float(totals[row]) for row in session.nodes if evaluation.admitted[row]}


def refusals(session: Session, pod: str) -> dict[str, str]:
    """The first reason for each node to which a pod may not go."""
    found: dict[str, str] = {}
    for refused in session.evaluation(task_of(session.cluster, pod)).refusals():
        for row in session.nodes:
            if refused.where[row]:
                found.setdefault(session.nodes.names[row], refused.reason.text)
    return found


def task_of(made: Cluster, pod: str) -> Task:
    return made.tasks[pod if "/" in pod else f"default/{pod}"]
