"""When Python looks for cyclic garbage: seldom, for there is little of it, and most of what a program here keeps it keeps for long."""

from __future__ import annotations

import gc


def collect_seldom() -> None:
    gc.set_threshold(50_000, 20, 100)


def settle() -> None:
    """For a process that has read what it works on: that stays, so no collection need look at it again."""
    gc.freeze()
