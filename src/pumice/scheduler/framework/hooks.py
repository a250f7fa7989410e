"""The table of hooks: what a plugin may be asked, the switch of the configuration that turns it off, and how answers become one.

A hook without a fold is combined by whoever asks (orders become keys, rules become evaluations), or only told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from msgspec import Struct

from pumice.scheduler.model.task import Task

# Verdicts are values: a refusal says what was needed and how much is short. Also the three-valued vote.


class Vote(IntEnum):
    """A veto ends the asking; a permit ends its tier; who abstains is not counted."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class Refusal(Struct, frozen=True):
    """Why not. `reason` is Volcano's word for conditions, `message` what a person reads."""

    reason: str
    message: str


NOT_ENOUGH_RESOURCES = "NotEnoughResources"
NOT_ENOUGH_TASKS = "NotEnoughTasks"
NOT_ENOUGH_PODS_OF_TASK = "NotEnoughPodsOfTask"
UNSCHEDULABLE = "Unschedulable"
SCHEDULABLE = "Schedulable"


# The ways to combine the answers of plugins. Each takes the bound methods (flat, or by tier) and the question.

Method = Callable[..., Any]
Tiers = Sequence[Sequence[Method]]
Victims = list[Task]


def first_decided(methods: Sequence[Method], *question: Any) -> int:
    """The first answer that is not zero."""
    for method in methods:
        answer = method(*question)
        if answer:
            return int(answer)
    return 0


def all_agree(methods: Sequence[Method], *question: Any) -> bool:
    return all(method(*question) for method in methods)


def anyone(methods: Sequence[Method], *question: Any) -> bool:
    return any(method(*question) for method in methods)


def first_refusal(methods: Sequence[Method], *question: Any) -> Refusal | None:
    for method in methods:
        refusal: Refusal | None = method(*question)
        if refusal is not None:
            return refusal
    return None


def first_text(methods: Sequence[Method], *question: Any) -> str:
    """The first answer that says anything."""
    return next((text for method in methods if (text := method(*question))), "")


def sum_each(methods: Sequence[Method], subject: Any, candidates: Sequence[Any]) -> list[float]:
    """A sum for each candidate."""
    answers = [method(subject, candidates) for method in methods]
    return [sum(scores) for scores in zip(*answers, strict=True)] if answers else [0.0] * len(candidates)


def tell_all(methods: Sequence[Method], *news: Any) -> None:
    """Nobody answers."""
    for method in methods:
        method(*news)


def vote_by_tier(tiers: Tiers, *question: Any) -> bool:
    """A veto ends it; a yes ends its tier and so decides; silence is consent."""
    for methods in tiers:
        permitted = False
        for method in methods:
            vote = method(*question)
            if vote < 0:
                return False
            permitted |= vote > 0
        if permitted:
            return True
    return True


def agree_in_first_tier(tiers: Tiers, *question: Any) -> bool:
    """The first tier with a voice decides, unanimously; without any voice: no."""
    for methods in tiers:
        if methods:
            return all_agree(methods, *question)
    return False


def intersect_by_tier(tiers: Tiers, evictor: Any, candidates: Victims) -> Victims:
    """Victims that every voter of a tier accepts, from the first tier that has any.

    A method answers with a list, or with None to abstain, or with Vote.REJECT, which leaves its tier with no victims. Whom one has refused
    the next is not asked about, for most count what is left and would count him (a plugin that `sees_refused_victims` wants it so).
    """
    for methods in tiers:
        victims: Victims | None = None
        for method in methods:
            asks_about_all = victims is None or method.__self__.sees_refused_victims  # type: ignore[attr-defined]
            answer = method(evictor, candidates if asks_about_all else victims)
            if answer is None:
                continue
            if answer is Vote.REJECT or not answer:
                victims = []
                break
            if victims is None:
                victims = answer
            elif answer != victims:
                accepted = {task.uid for task in answer}
                victims = [task for task in victims if task.uid in accepted]
        if victims:
            return victims
    return []


def union_in_first_tier(tiers: Tiers, *question: Any) -> Victims:
    """All victims that anybody of a tier names, from the first tier that names any."""
    for methods in tiers:
        named = {task.uid: task for method in methods for task in method(*question)}
        if named:
            return list(named.values())
    return []


class Hook(NamedTuple):
    switch: str = ""  #: empty: it cannot be turned off
    fold: Callable[..., Any] | None = None
    by_tier: bool = False  #: the fold is given the methods tier by tier, else all in a row


HOOKS: dict[str, Hook] = {
    # orders: keys to sort by (smaller is served first), or a comparison where no key exists
    "job_order": Hook("enableJobOrder"),
    "queue_order": Hook("enableQueueOrder"),
    "compare_queues": Hook("enableQueueOrder"),
    "task_order": Hook("enableTaskOrder"),
    "sub_job_order": Hook("enabledSubJobOrder"),
    "victim_queue_order": Hook("", first_decided),
    # may the job ...
    "job_valid": Hook("", first_refusal),
    "job_enqueueable": Hook("enableJobEnqueued", vote_by_tier, by_tier=True),
    "job_enqueued": Hook("enableJobEnqueued", tell_all),
    "job_ready": Hook("enableJobReady", all_agree),
    "job_pipelined": Hook("enableJobPipelined", vote_by_tier, by_tier=True),
    "job_starving": Hook("enableJobStarving", agree_in_first_tier, by_tier=True),
    "sub_job_ready": Hook("enabledSubJobReady", all_agree),
    "sub_job_pipelined": Hook("enabledSubJobPipelined", vote_by_tier, by_tier=True),
    # may the queue ...
    "overused": Hook("enabledOverused", anyone),
    "allocatable": Hook("enabledAllocatable", all_agree),
    "preemptive": Hook("enablePreemptive", all_agree),
    "explain_not_allocatable": Hook("enabledAllocatable", first_text),
    # where
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
    # who must go
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

#: hooks by which a plugin gives filters and scorers
RULE_HOOKS = ("filters", "filter", "filter_node", "scorers", "score", "score_node")

#: the hook that says whom an action may evict
VICTIMS_HOOKS = {"preempt": "preemptable", "reclaim": "reclaimable", "gangpreempt": "unified_evictable", "gangreclaim": "unified_evictable"}

SWITCHES = frozenset(hook.switch for hook in HOOKS.values()) - {""} | {
    "enableHierarchy",
    "enabledClusterOrder",
    "enableTargetJob",
    "enableReservedNodes",
}
