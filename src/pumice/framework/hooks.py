"""The table of hooks: what a plugin may be asked, the switch of the configuration that turns it off, and how answers become one.

A hook without a fold is combined by whoever asks (orders become keys, rules become evaluations), or only told.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from pumice.framework import folds
from pumice.framework.folds import Tiers


class Hook(NamedTuple):
    switch: str = ""  #: empty: it cannot be turned off
    fold: Callable[..., Any] | None = None
    by_tier: bool = False  #: the fold is given the methods tier by tier, else all in a row

    def question(self, tiers: Tiers) -> Callable[..., Any]:
        """Asks these methods, and folds what they answer."""
        assert self.fold is not None
        return partial(self.fold, tiers if self.by_tier else tuple(method for tier in tiers for method in tier))


HOOKS: dict[str, Hook] = {
    # orders: keys to sort by (smaller is served first), or a comparison where no key exists
    "job_order": Hook("enableJobOrder"),
    "queue_order": Hook("enableQueueOrder"),
    "compare_queues": Hook("enableQueueOrder"),
    "task_order": Hook("enableTaskOrder"),
    "sub_job_order": Hook("enabledSubJobOrder"),
    "victim_queue_order": Hook("", folds.first_decided),
    # may the job ...
    "job_valid": Hook("", folds.first_refusal),
    "job_enqueueable": Hook("enableJobEnqueued", folds.vote_by_tier, by_tier=True),
    "job_enqueued": Hook("enableJobEnqueued", folds.tell_all),
    "job_ready": Hook("enableJobReady", folds.all_agree),
    "job_pipelined": Hook("enableJobPipelined", folds.vote_by_tier, by_tier=True),
    "job_starving": Hook("enableJobStarving", folds.agree_in_first_tier, by_tier=True),
    "sub_job_ready": Hook("enabledSubJobReady", folds.all_agree),
    "sub_job_pipelined": Hook("enabledSubJobPipelined", folds.vote_by_tier, by_tier=True),
    # may the queue ...
    "overused": Hook("enabledOverused", folds.anyone),
    "allocatable": Hook("enabledAllocatable", folds.all_agree),
    "preemptive": Hook("enablePreemptive", folds.all_agree),
    "queue_shortfall": Hook("enabledAllocatable", folds.first_text),
    # where
    "pre_predicate": Hook("enablePredicate", folds.first_refusal),
    "filters": Hook("enablePredicate"),
    "filter": Hook("enablePredicate"),
    "filter_node": Hook("enablePredicate"),
    "best_node": Hook("enableBestNode"),
    "scorers": Hook("enableNodeOrder"),
    "score": Hook("enableNodeOrder"),
    "score_node": Hook("enableNodeOrder"),
    "hyper_node_order": Hook("enabledHyperNodeOrder", folds.sum_each),
    "hyper_node_gradient_for_job": Hook("enabledHyperNodeGradient"),
    "hyper_node_gradient_for_sub_job": Hook("enabledHyperNodeGradient"),
    # who must go
    "preemptable": Hook("enablePreemptable", folds.intersect_by_tier, by_tier=True),
    "reclaimable": Hook("enableReclaimable", folds.intersect_by_tier, by_tier=True),
    "evictor_kind": Hook(),
    "unified_evictable": Hook("", folds.intersect_by_tier, by_tier=True),
    "victim_tasks": Hook("enabledVictim", folds.union_in_first_tier, by_tier=True),
    # what happened
    "on_allocate": Hook("", folds.tell_all),
    "on_deallocate": Hook("", folds.tell_all),
    "on_ungate": Hook("", folds.tell_all),
    "open": Hook(),
    "close": Hook(),
}

SWITCHES = frozenset(hook.switch for hook in HOOKS.values()) - {""} | {
    "enableHierarchy",
    "enabledClusterOrder",
    "enableTargetJob",
    "enableReservedNodes",
}
