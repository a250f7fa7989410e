"""Nobody goes in vain: victims are put back, the most important first, as far as their beneficiary keeps a place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def needed(victims: Sequence[T], stands: Callable[[list[T]], bool]) -> list[T]:
    """Those without whom it would not do; the least important first, as they came. None of them can be put back.

    `stands` says whether the beneficiary has a place if only these go. Many are tried at a time, for as long as that goes well. Where one
    that was put back lets another stay (who looks for company), that is tried as well, until nobody more can.
    """
    left = list(victims)
    while len(must_go := _once(left, stands)) < len(left):
        left = must_go
    return left


def _once(victims: list[T], stands: Callable[[list[T]], bool]) -> list[T]:
    undecided, must_go, step = victims, list[T](), 1
    while undecided:
        rest = undecided[:-step]
        if stands(rest + must_go):
            undecided, step = rest, 2 * step
        elif step > 1:
            step = 1
        else:
            undecided, must_go = rest, [undecided[-1], *must_go]
    return must_go
