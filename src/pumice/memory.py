"""When Python looks for cyclic garbage: seldom, for there is little of it, and most of what a program here keeps it keeps for long.

Modules that are imported make none that would be worth a look: a program looks for none until its command is there.
"""

from __future__ import annotations

import gc


def collect_nothing() -> None:
    """Until `imported`."""
    gc.disable()


def imported() -> None:
    """Modules are there to stay. Nothing happens where others say when to collect."""
    if not gc.isenabled():
        collect_seldom()


def reads() -> None:
    """All that is read of a cluster stays: until `collect_seldom` a look is worth it ten times as seldom."""
    gc.set_threshold(500_000, 20, 100)


def collect_seldom() -> None:
    settle()
    gc.set_threshold(50_000, 20, 100)
    gc.enable()


def settle() -> None:
    """For a process that has read what it works on: that stays, so no collection need look at it again."""
    gc.freeze()
