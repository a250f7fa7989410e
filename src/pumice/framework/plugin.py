"""A plugin is a class in one file; defining a method named after a hook is the registration.

`HOOKS` names every hook, the switch of the configuration that turns it off, and what it is asked. Arguments are a typed struct
(`Args`), made from the configuration. A new object is made for each session, so its attributes live for one cycle; what must
outlive it goes into `session.memory`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from pumice.api.errors import did_you_mean

if TYPE_CHECKING:
    from pumice.framework.session import Session

HOOKS: dict[str, str] = {
    # orders: keys to sort by (smaller is served first), or a comparison where no key exists
    "job_order": "enableJobOrder",
    "queue_order": "enableQueueOrder",
    "compare_queues": "enableQueueOrder",
    "task_order": "enableTaskOrder",
    "sub_job_order": "enabledSubJobOrder",
    "victim_queue_order": "",
    # may the job ...
    "job_valid": "",
    "job_enqueueable": "enableJobEnqueued",
    "job_enqueued": "enableJobEnqueued",
    "job_ready": "enableJobReady",
    "job_pipelined": "enableJobPipelined",
    "job_starving": "enableJobStarving",
    "sub_job_ready": "enabledSubJobReady",
    "sub_job_pipelined": "enabledSubJobPipelined",
    # may the queue ...
    "overused": "enabledOverused",
    "allocatable": "enabledAllocatable",
    "preemptive": "enablePreemptive",
    "queue_shortfall": "enabledAllocatable",
    # where
    "pre_predicate": "enablePredicate",
    "filters": "enablePredicate",
    "filter": "enablePredicate",
    "filter_node": "enablePredicate",
    "best_node": "enableBestNode",
    "scorers": "enableNodeOrder",
    "score": "enableNodeOrder",
    "score_node": "enableNodeOrder",
    "hyper_node_order": "enabledHyperNodeOrder",
    "hyper_node_gradient_for_job": "enabledHyperNodeGradient",
    "hyper_node_gradient_for_sub_job": "enabledHyperNodeGradient",
    # who must go
    "preemptable": "enablePreemptable",
    "reclaimable": "enableReclaimable",
    "evictor_kind": "",
    "unified_evictable": "",
    "victim_tasks": "enabledVictim",
    # what happened
    "on_allocate": "",
    "on_deallocate": "",
    "on_ungate": "",
    "open": "",
    "close": "",
}

SWITCHES = frozenset(HOOKS.values()) - {""} | {"enableHierarchy", "enabledClusterOrder", "enableTargetJob", "enableReservedNodes"}


class NoArgs(msgspec.Struct):
    """For plugins without arguments."""


class Plugin:
    """Base of all plugins. `name` is what configurations write."""

    name: ClassVar[str] = ""
    Args: ClassVar[type[msgspec.Struct]] = NoArgs
    hierarchy_only: ClassVar[frozenset[str]] = frozenset()  #: hooks that take part only with the switch enableHierarchy
    counts_refused: ClassVar[bool] = False  #: of victims it is asked also about those whom the plugins before it refused
    wildcard_args: ClassVar[tuple[str, ...]] = ()  #: prefixes of arguments whose rest is a name, such as "binpack.resources."

    def __init__(self, args: Any = None, hierarchy: bool = False) -> None:
        self.args: Any = args if args is not None else self.Args()
        self.hierarchy = hierarchy  #: the switch enableHierarchy

    def open(self, session: Session) -> None:
        """Called when the session opens, before any other hook."""
        self.session = session

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
            if not attribute.startswith("_") and attribute not in HOOKS and _looks_like_hook(attribute):
                raise TypeError(f"plugin {cls.name!r}: there is no hook {attribute!r}{did_you_mean(attribute, HOOKS)}")


def _looks_like_hook(attribute: str) -> bool:
    """Whether a public method's name is so near to a hook's that it must be a slip."""
    return bool(did_you_mean(attribute, HOOKS)) and attribute not in ("args", "hooks", "describe")
