"""A plugin is a class in one file. It takes part in a hook by defining a method with the name of the hook.

`hooks.py` has the table of hooks. Arguments are a typed struct (`Args`), made from the configuration. Each session has new plugin objects,
or resets those of the session before, so attributes live for one cycle. What must live longer goes into `session.memory`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from pumice.api import did_you_mean
from pumice.scheduler.framework.hooks import HOOKS

if TYPE_CHECKING:
    from pumice.scheduler.framework.newcomer import Newcomer
    from pumice.scheduler.framework.session import Session
    from pumice.scheduler.model import Job, Mask, Task


#: Hooks that were renamed since the first release: old name to new name.
_RENAMED = {"evictor_kind": "eviction_cache_key", "queue_shortfall": "explain_not_allocatable", "on_ungate": "on_gate_removed"}
_RENAMED |= {"tells_apart": "class_key"}


#: Methods that are not hooks: if a plugin has them, sessions, commands and the web page call them.
_QUESTIONS = ("admission_room", "entitlements", "why_before")


class NoArgs(msgspec.Struct):
    """The `Args` of plugins and actions without arguments."""


class Plugin:
    """The base class of all plugins. `name` is the plugin's name in configurations."""

    name: ClassVar[str] = ""
    Args: ClassVar[type[msgspec.Struct]] = NoArgs
    hierarchy_only: ClassVar[frozenset[str]] = frozenset()  #: hooks that take part only with the switch enableHierarchy
    sees_refused_victims: ClassVar[bool] = False  #: it is asked also about victims that earlier plugins refused
    reads_only_state: ClassVar[bool] = False  #: its answers depend only on the kept state, its arguments, and time as `next_turn` says
    rules_last: ClassVar[bool] = False  #: its filters and scorers keep nothing of the session, so later sessions may use them
    tunable: ClassVar[bool] = False  #: it says what is preferred, not what is allowed: `pumice tune` may add it, or leave it out
    compares_by_state: ClassVar[bool] = False  #: `compare_queues` goes by what is held now; a try that was undone leaves no trace
    plain_for_newcomers: ClassVar[bool] = False  #: it welcomes each newcomer, and is not asked
    plain_in_line: ClassVar[bool] = False  #: it lets each job of one pod start, orders those that wait by what they are, or says they wait
    wildcard_args: ClassVar[tuple[str, ...]] = ()  #: prefixes of arguments whose rest is a name, such as "binpack.resources."

    def __init__(self, args: Any = None, hierarchy: bool = False) -> None:
        self.args: Any = args if args is not None else self.Args()
        self.hierarchy = hierarchy  #: the switch enableHierarchy

    def forget(self) -> None:
        """Remove all attributes that were set since the plugin was made, so that the next session can use the object."""
        args, hierarchy = self.args, self.hierarchy
        vars(self).clear()
        self.args, self.hierarchy = args, hierarchy

    def open(self, session: Session) -> None:
        """Prepare for a session. Called when the session opens, before any other hook."""
        self.session = session

    def next_turn(self, session: Session) -> float:
        """When the plugin's answers next change by time alone, in seconds since 1970; inf for never. Asked only if `reads_only_state`."""
        return inf

    def welcomes(self, newcomer: Newcomer) -> bool:
        """Whether all that the plugin does in a cycle with this newcomer and nothing else to decide is to let it in, and to let it start on
        its best node, wherever that is. Asked while the plugin is not open. Only plugins that define it are asked: others must have none of
        the hooks that it is about (`NEWCOMER_HOOKS`), or be `plain_for_newcomers`."""
        raise NotImplementedError

    def order_of_newcomer(self, job: Job) -> Any:
        """What `job_order` says of a newcomer, asked while the plugin is not open; None if only a session knows. So it is if a plugin with
        `job_order` does not define it."""

    def exposes(self) -> Iterable[Job] | None:
        """The jobs whose tasks the plugin might let go, by `preemptable` or `reclaimable`, in an action that evicts and begins now: no pods
        become ready in it. None for all jobs. To leave out a job only saves questions: the hooks must refuse its tasks all the same."""
        return None

    def spares(self, evictor: Task, task: Task) -> bool:
        """Whether the plugin would now refuse the task to the evictor in `preemptable` and `reclaimable`, whichever other tasks go. This,
        too, only saves questions. It depends on what the task's job and queue hold, for `reclaimable` not on the evictor: the less they
        hold, the more is spared."""
        return False

    def spares_rows(self, evictor: Task) -> Mask | bool:
        """The nodes on which the plugin would now refuse all tasks to the evictor in `preemptable` and `reclaimable`, True for all nodes.
        This, too, only saves questions. Of the evictor it depends on its job and its template alone."""
        return False

    def class_key(self, job: Job) -> Hashable:
        """What the plugin's answers about a waiting job depend on, besides the job's queue, minimum and priority, and its tasks except
        their names; None for nothing. Jobs with equal values may be treated as alike. Asked only if `reads_only_state`."""
        return None

    @classmethod
    def hooks(cls) -> list[str]:
        """The names of the hooks that the class defines."""
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
    """Whether the name of a public method is so similar to that of a hook that it is probably a spelling mistake."""
    return attribute not in _QUESTIONS and not hasattr(Plugin, attribute) and bool(did_you_mean(attribute, HOOKS))
