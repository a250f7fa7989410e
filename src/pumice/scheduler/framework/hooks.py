"""The table of hooks: what plugins are asked, the switch of the configuration that turns a hook off, and how the answers are combined.

The `fold` of a hook combines the answers of several plugins (`folds.py`). The answers of a hook without a fold are combined by its caller
(orders become sort keys, rules become evaluations), or the hook has no answer (`open`, `close`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from pumice.scheduler.framework.folds import (
    agree_in_first_tier,
    all_agree,
    anyone,
    first_decided,
    first_refusal,
    first_text,
    intersect_by_tier,
    least,
    sum_each,
    tell_all,
    union_in_first_tier,
    vote_by_tier,
)


class Hook(NamedTuple):
    switch: str = ""  #: of the configuration; empty if the hook cannot be turned off
    fold: Callable[..., Any] | None = None
    by_tier: bool = False  #: whether the fold is given the methods tier by tier, instead of all in a row


HOOKS: dict[str, Hook] = {
    # orders: keys to sort by (smaller is served first), or a comparison where no key exists
    "job_order": Hook("enableJobOrder"),
    "queue_order": Hook("enableQueueOrder"),
    "compare_queues": Hook("enableQueueOrder"),
    "task_order": Hook("enableTaskOrder"),
    "sub_job_order": Hook("enabledSubJobOrder"),
    "victim_queue_order": Hook("", first_decided),
    # may the job be let in, start, wait for room, ...
    "job_valid": Hook("", first_refusal),
    "job_enqueueable": Hook("enableJobEnqueued", vote_by_tier, by_tier=True),
    "job_enqueued": Hook("enableJobEnqueued", tell_all),
    "job_ready": Hook("enableJobReady", all_agree),
    "job_pipelined": Hook("enableJobPipelined", vote_by_tier, by_tier=True),
    "job_starving": Hook("enableJobStarving", agree_in_first_tier, by_tier=True),
    "sub_job_ready": Hook("enabledSubJobReady", all_agree),
    "sub_job_pipelined": Hook("enabledSubJobPipelined", vote_by_tier, by_tier=True),
    # may the queue have more
    "overused": Hook("enabledOverused", anyone),
    "allocatable": Hook("enabledAllocatable", all_agree),
    "queue_room": Hook("enabledAllocatable", least),
    "preemptive": Hook("enablePreemptive", all_agree),
    "preemptive_room": Hook("enablePreemptive", least),
    "explain_not_allocatable": Hook("enabledAllocatable", first_text),
    # which node
    "pre_predicate": Hook("enablePredicate", first_refusal),
    "filters": Hook("enablePredicate"),
    "filter": Hook("enablePredicate"),
    "filter_node": Hook("enablePredicate"),
    "best_node": Hook("enableBestNode"),
    "scorers": Hook("enableNodeOrder"),
    "score": Hook("enableNodeOrder"),
    "score_node": Hook("enableNodeOrder"),
    "hyper_node_order": Hook("enabledHyperNodeOrder", sum_each),
    "hyper_node_gradient_for_job": Hook("enabledHyperNodeGradient"),
    "hyper_node_gradient_for_sub_job": Hook("enabledHyperNodeGradient"),
    # which tasks may be evicted
    "preemptable": Hook("enablePreemptable", intersect_by_tier, by_tier=True),
    "reclaimable": Hook("enableReclaimable", intersect_by_tier, by_tier=True),
    "eviction_cache_key": Hook(),
    "unified_evictable": Hook("", intersect_by_tier, by_tier=True),
    "victim_tasks": Hook("enabledVictim", union_in_first_tier, by_tier=True),
    # what happened
    "on_allocate": Hook("", tell_all),
    "on_deallocate": Hook("", tell_all),
    "on_gate_removed": Hook("", tell_all),
    "open": Hook(),
    "close": Hook(),
}

#: the hooks that may change what becomes of a job that waits alone, besides filters and scores
NEWCOMER_HOOKS = {"open", "close", "job_valid", "job_enqueueable", "job_enqueued", "job_ready", "overused", "allocatable"}
NEWCOMER_HOOKS |= {"pre_predicate", "best_node", "on_allocate"}

#: those, and the hook that gives jobs their order: they may change what becomes of jobs that wait in a line
LINE_HOOKS = NEWCOMER_HOOKS | {"job_order"}

#: the hooks through which a plugin gives its filters and scorers
RULE_HOOKS = ("filters", "filter", "filter_node", "scorers", "score", "score_node")

SWITCHES = frozenset(hook.switch for hook in HOOKS.values()) - {""} | {
    "enableHierarchy",
    "enabledClusterOrder",
    "enableTargetJob",
    "enableReservedNodes",
}
