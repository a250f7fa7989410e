"""The table of hooks: what plugins are asked, the switch of the configuration that turns a hook off, and how the answers are combined.

The `fold` of a hook combines the answers of several plugins. The answers of a hook without a fold are combined by its caller (orders
become sort keys, rules become evaluations), or the hook has no answer (`open`, `close`).

The folds: ways to combine the answers of plugins. Each takes the plugins' bound methods (in a row, or by tier) and the hook's arguments.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from pumice.scheduler.model import Task, Vector


class Vote(IntEnum):
    """The vote of one plugin. REJECT decides at once, PERMIT decides unless another plugin of its tier rejects, ABSTAIN does not count."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class Refusal(Struct, frozen=True):
    """Why a plugin refuses a job or a task. `reason` is the word that Volcano writes into conditions, `message` is the text for people."""

    reason: str
    message: str


NOT_ENOUGH_RESOURCES = "NotEnoughResources"
NOT_ENOUGH_TASKS = "NotEnoughTasks"
NOT_ENOUGH_PODS_OF_TASK = "NotEnoughPodsOfTask"
UNSCHEDULABLE = "Unschedulable"
SCHEDULABLE = "Schedulable"


Method = Callable[..., Any]
Tiers = Sequence[Sequence[Method]]
Victims = list[Task]


def first_decided(methods: Sequence[Method], *question: Any) -> int:
    """The first answer that is not zero; 0 if there is none."""
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
    """The first text that is not empty; an empty text if there is none."""
    for method in methods:
        text: str = method(*question)
        if text:
            return text
    return ""


def sum_each(methods: Sequence[Method], subject: Any, candidates: Sequence[Any]) -> list[float]:
    """For each candidate the sum of the plugins' scores; 0 if there are no plugins."""
    answers = [method(subject, candidates) for method in methods]
    return [sum(scores) for scores in zip(*answers, strict=True)] if answers else [0.0] * len(candidates)


def least(methods: Sequence[Method], *question: Any) -> Vector | None:
    """Of each resource the least that any plugin answers; None if there are no plugins."""
    return reduce(np.minimum, [method(*question) for method in methods]) if methods else None


def tell_all(methods: Sequence[Method], *arguments: Any) -> None:
    """Call every method; none of them answers anything."""
    for method in methods:
        method(*arguments)


def vote_by_tier(tiers: Tiers, *question: Any) -> bool:
    """Whether the plugins agree. A REJECT means no. A tier with a PERMIT and no REJECT means yes. If every plugin abstains: yes."""
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
    """Whether all plugins agree in the first tier that has any for the hook; False if no tier has any."""
    for methods in tiers:
        if methods:
            return all_agree(methods, *question)
    return False


def intersect_by_tier(tiers: Tiers, evictor: Any, candidates: Victims) -> tuple[Victims, list[Method]]:
    """The victims that all plugins of a tier accept, from the first tier in which there are any; and the methods that accepted them.

    A method answers with a list of tasks, or with None to abstain, or with Vote.REJECT, which leaves its tier without victims. A plugin is
    not asked about a task that an earlier plugin of the tier has refused: most plugins add up what would be left after all evictions, and
    would take this task for evicted. A plugin with `sees_refused_victims` is asked about all candidates.
    """
    for methods in tiers:
        victims: Victims | None = None
        accepting: list[Method] = []
        for method in methods:
            asks_about_all = victims is None or method.__self__.sees_refused_victims  # type: ignore[attr-defined]
            answer = method(evictor, candidates if asks_about_all else victims)
            if answer is None:
                continue
            if answer is Vote.REJECT or not answer:
                victims = []
                break
            accepting.append(method)
            if victims is None:
                victims = answer
            elif answer != victims:
                accepted = {task.uid for task in answer}
                victims = [task for task in victims if task.uid in accepted]
        if victims:
            return victims, accepting
    return [], []


def union_in_first_tier(tiers: Tiers, *question: Any) -> Victims:
    """All victims that any plugin of a tier names, from the first tier in which there are any."""
    for methods in tiers:
        named = {task.uid: task for method in methods for task in method(*question)}
        if named:
            return list(named.values())
    return []


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

#: the hooks through which a plugin gives its filters and scorers
RULE_HOOKS = ("filters", "filter", "filter_node", "scorers", "score", "score_node")

SWITCHES = frozenset(hook.switch for hook in HOOKS.values()) - {""} | {
    "enableHierarchy",
    "enabledClusterOrder",
    "enableTargetJob",
    "enableReservedNodes",
}
