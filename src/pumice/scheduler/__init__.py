"""The scheduler: pure, and importable alone. What plugins, actions and programs need of it can be imported from here (docs/plugins.md).

`cycle(cluster, policy, now)` does its work: kept state and configuration go in, `Decisions` come out. Names are loaded when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pumice.scheduler.config.volcano_conf import read_policy as read_policy
    from pumice.scheduler.engine import (
        MAX_SCORE as MAX_SCORE,
        Filter as Filter,
        Reach as Reach,
        Reason as Reason,
        Refused as Refused,
        Scorer as Scorer,
        View as View,
    )
    from pumice.scheduler.framework.cycle import cycle as cycle
    from pumice.scheduler.framework.decisions import (
        Bind as Bind,
        Decisions as Decisions,
        Evict as Evict,
        Pipelined as Pipelined,
        Waiting as Waiting,
    )
    from pumice.scheduler.framework.hook_answers import Refusal as Refusal, Vote as Vote
    from pumice.scheduler.framework.observer import Observer as Observer
    from pumice.scheduler.framework.plugin import Plugin as Plugin
    from pumice.scheduler.framework.policy import Action as Action, Policy as Policy
    from pumice.scheduler.framework.session import Session as Session
    from pumice.scheduler.framework.world import World as World
    from pumice.scheduler.model import Cluster as Cluster, Job as Job, OneOf as OneOf, Queue as Queue, Range as Range, Task as Task
    from pumice.scheduler.registry import PLUGINS as PLUGINS

_WHERE = {
    "config.volcano_conf": ("read_policy",),
    "engine.normalize_score": ("MAX_SCORE",),
    "engine.rules": ("Filter", "Reach", "Reason", "Refused", "Scorer"),
    "engine.view": ("View",),
    "framework.cycle": ("cycle",),
    "framework.decisions": ("Bind", "Decisions", "Evict", "Pipelined", "Waiting"),
    "framework.hook_answers": ("Refusal", "Vote"),
    "framework.observer": ("Observer",),
    "framework.plugin": ("Plugin",),
    "framework.policy": ("Action", "Policy"),
    "framework.session": ("Session",),
    "framework.world": ("World",),
    "model.cluster": ("Cluster",),
    "model.job": ("Job",),
    "model.queue": ("Queue",),
    "model.argument_ranges": ("OneOf", "Range"),
    "model.task": ("Task",),
    "registry": ("PLUGINS",),
}
_MODULES = {name: module for module, names in _WHERE.items() for name in names}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value
