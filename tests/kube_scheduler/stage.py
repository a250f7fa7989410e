"""A small cluster under kube-scheduler's rules: YAML of a configuration and builders in, plain values out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pumice.api import yaml
from pumice.inputs.cluster_from_files import advance, complete
from pumice.scheduler.config import KUBE_DEFAULT, config_text, read_configurations, schedulers_of
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.pods_to_try import EVERYBODY, WaitingPods
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.world import NOWHERE, World
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.registry import PLUGINS
from pumice.testing.builders import Builder, NodeBuilder, PodBuilder, manifest, node, pod

NOW = 1_767_268_800.0  #: 2026-01-01T12:00:00Z
EARLIER = "2026-01-01T10:00:00Z"


class Outcome(NamedTuple):
    binds: dict[str, str]
    evictions: list[str]
    nominations: dict[str, str]
    waiting: dict[str, str]  #: pod to message


def policy(*texts: str) -> Policy:
    """Of configurations of either kind; the default of kube-scheduler without any."""
    found = [config_text(text, "test") for text in texts or (KUBE_DEFAULT,)]
    return read_configurations(found, PLUGINS)[0]


def profile(body: str = "{}") -> str:
    """A configuration with one profile, given in flow style."""
    return f"{KUBE_DEFAULT}profiles: [{body}]\n"


def document(text: str) -> yaml.Document:
    return next(yaml.documents(text, "test.yaml"))


def machine(name: str, cpu: int | str = 2, **labels: str) -> NodeBuilder:
    made = node(name).cpu(cpu).memory("8Gi").label("kubernetes.io/hostname", name)
    for key, value in labels.items():
        made = made.label(key, value)
    return made


def waiting(name: str, cpu: int | str = 1, priority: int = 0) -> PodBuilder:
    return pod(name).cpu(cpu).memory("100Mi").priority(priority).scheduler("default-scheduler")


def existing(name: str, on: str, cpu: int | str = 1, priority: int = 0, since: str | None = EARLIER) -> PodBuilder:
    made = waiting(name, cpu, priority).on(on)
    return made.having("status", "startTime", value=since) if since else made


def budget(name: str, allowed: int, selector: dict[str, Any] | None, *, disrupted: Sequence[str] = ()) -> Builder:
    status_part = {"disruptionsAllowed": allowed, "disruptedPods": dict.fromkeys(disrupted, EARLIER)}
    spec = {} if selector is None else {"selector": selector}
    return manifest("PodDisruptionBudget", name, spec=spec, status=status_part)


def cluster(chosen: Policy, *objects: Builder) -> Cluster:
    made = Cluster(schedulers_of(chosen))
    for kind, item in complete(each.build() for each in objects):
        made.put(kind, item)
    return made


def run(made: Cluster, chosen: Policy, cycles: int = 1, world: World = NOWHERE, queue: WaitingPods = EVERYBODY) -> Outcome:
    """The outcome of the last cycle."""
    for number in range(cycles):
        decided = cycle(made, chosen, NOW + number, world, queue)
        made.check()
        outcome = Outcome(
            {bind.task.name: bind.node for bind in decided.binds},
            [eviction.task.name for eviction in decided.evictions],
            {task.name: task.nominated for task in made.tasks.values() if task.nominated and task.status == status.PENDING},
            {told.task.name: told.message for told in decided.waiting},
        )
        advance(made, decided, NOW + number)
    return outcome


def play(*objects: Builder, conf: str = KUBE_DEFAULT, cycles: int = 1, world: World = NOWHERE) -> Outcome:
    chosen = policy(conf)
    return run(cluster(chosen, *objects), chosen, cycles, world)
