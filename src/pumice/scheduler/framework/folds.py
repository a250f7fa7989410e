"""The folds: ways to combine the answers of plugins.

Each takes the plugins' bound methods (in a row, or by tier) and the hook's arguments.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from pumice.scheduler.framework.hook_answers import Refusal, Vote
from pumice.scheduler.model import Task, Vector

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
