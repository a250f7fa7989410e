"""A plugin is a class in one file; defining a method named after a hook is the registration.

`hooks.py` has the table of hooks. Arguments are a typed struct (`Args`), made from the configuration. In each session a plugin is a new
object, or as if it were, so its attributes live for one cycle; what must outlive it goes into `session.memory`.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from pumice.api.errors import did_you_mean
from pumice.scheduler.framework.hooks import HOOKS

if TYPE_CHECKING:
    from pumice.scheduler.framework.session import Session
    from pumice.scheduler.model.job import Job


#: Hooks of the first release, by what they are called now.
_RENAMED = {
    "evictor_kind": "eviction_cache_key",
    "queue_shortfall": "explain_not_allocatable",
    "on_ungate": "on_gate_removed",
}


#: What else plugins are asked, by answers and by pages.
_QUESTIONS = ("describe", "entitlements", "why_before")


class NoArgs(msgspec.Struct):
    """For plugins without arguments."""


class Plugin:
    """Base of all plugins. `name` is what configurations write."""

    name: ClassVar[str] = ""
    Args: ClassVar[type[msgspec.Struct]] = NoArgs
    hierarchy_only: ClassVar[frozenset[str]] = frozenset()  #: hooks that take part only with the switch enableHierarchy
    sees_refused_victims: ClassVar[bool] = False  #: of victims it is asked also about those whom the plugins before it refused
    reads_only_state: ClassVar[bool] = False  #: its answers follow from the kept state, its arguments, and the time that `next_turn` names
    rules_last: ClassVar[bool] = False  #: its filters and scorers hold nothing of the session that it was made for
    wildcard_args: ClassVar[tuple[str, ...]] = ()  #: prefixes of arguments whose rest is a name, such as "binpack.resources."

    def __init__(self, args: Any = None, hierarchy: bool = False) -> None:
        self.args: Any = args if args is not None else self.Args()
        self.hierarchy = hierarchy  #: the switch enableHierarchy

    def forget(self) -> None:
        """It is as it was made."""
        args, hierarchy = self.args, self.hierarchy
        vars(self).clear()
        self.args, self.hierarchy = args, hierarchy

    def open(self, session: Session) -> None:
        """Called when the session opens, before any other hook."""
        self.session = session

    def next_turn(self, session: Session) -> float:
        """When its answers change by time alone, if nothing else does. Asked of one that `reads_only_state`."""
        return inf

    def tells_apart(self, job: Job) -> Hashable:
        """What of a job that waits its answers depend on, besides its queue, its minimum, its priority, and its tasks but for their names.
        Asked of one that `reads_only_state`."""
        return None

    @classmethod
    def hooks(cls) -> list[str]:
        """The hooks that the class defines."""
        return [hook for hook in HOOKS if getattr(cls, hook, None) is not getattr(Plugin, hook, None)]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in cls.__dict__:
            return
        methods = (name for name, value in cls.__dict__.items() if callable(value) and not isinstance(value, type))
        for attribute in methods:
            if attribute in _RENAMED:
                raise TypeError(f"plugin {cls.name!r}: the hook {attribute!r} is now {_RENAMED[attribute]!r}")
            if not attribute.startswith("_") and attribute not in HOOKS and _looks_like_hook(attribute):
                raise TypeError(f"plugin {cls.name!r}: there is no hook {attribute!r}{did_you_mean(attribute, HOOKS)}")


def _looks_like_hook(attribute: str) -> bool:
    """Whether a public method's name is so near to a hook's that it must be a slip."""
    return attribute not in _QUESTIONS and not hasattr(Plugin, attribute) and bool(did_you_mean(attribute, HOOKS))
