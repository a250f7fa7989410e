"""Plugins that hold back or let go, pods that cannot be placed, and the classes of what is urgent."""

from __future__ import annotations

from collections.abc import Callable

from pumice.scheduler.framework.hook_answers import Refusal
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.model.queue import Queue
from pumice.scheduler.model.task import Task
from pumice.testing import PodBuilder, priority_class

PLUGINS = ("priority", "gang", "predicates")
CLASSES = (priority_class("low", 1), priority_class("high", 9))
Change = Callable[[PodBuilder], PodBuilder]


class Held(Plugin):
    """Holds back the pods named p."""

    name = "held"

    def pre_predicate(self, task: Task) -> Refusal | None:
        return Refusal("Later", "its licence is in use") if task.name == "p" else None


class Anybody(Plugin):
    """Whoever runs elsewhere may be taken back; a queue named sated has had enough."""

    name = "anybody"

    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> list[Task]:
        return candidates

    def overused(self, queue: Queue) -> bool:
        return queue.name == "sated"


def port(made: PodBuilder) -> PodBuilder:
    return made.having("spec", "containers", 0, "ports", value=[{"containerPort": 1, "hostPort": 80}])


def lost_claim(made: PodBuilder) -> PodBuilder:
    """Rejected whatever the node: it names a claim that is not there."""
    return made.having("spec", "volumes", value=[{"name": "v", "persistentVolumeClaim": {"claimName": "lost"}}])


def same(made: PodBuilder) -> PodBuilder:
    return made
