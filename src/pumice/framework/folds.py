"""The ways to combine the answers of plugins. Each takes the bound methods (flat, or by tier) and the question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pumice.framework.verdict import Refusal, Vote
from pumice.model.task import Task

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
    the next is not asked about, for most count what is left and would count him (a plugin that `counts_refused` wants it so).
    """
    for methods in tiers:
        victims: Victims | None = None
        for method in methods:
            asks_about_all = victims is None or method.__self__.counts_refused  # type: ignore[attr-defined]
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
