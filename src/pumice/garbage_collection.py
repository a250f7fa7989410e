"""What Pumice's programs change in Python: they collect cyclic garbage rarely.

There is little garbage, and most of what a program keeps, it keeps for long. Imports make hardly any garbage: a program collects none until
its command is imported. All threads stand still during a collection, so each looks at few objects, and at each object only twice.
"""

import gc
from contextlib import suppress


def collect_nothing() -> None:
    """Collect no garbage until `imported` is called."""
    gc.disable()


def imported() -> None:
    """Collect garbage rarely from now on: all modules are imported. If collections are on, others control them: nothing changes."""
    if not gc.isenabled():
        collect_seldom()


def reads() -> None:
    """Collect ten times more rarely until `collect_seldom` is called: all that is now imported, or read of a cluster, stays."""
    gc.set_threshold(500_000, 20, 100)


def collect_seldom() -> None:
    settle()
    gc.set_threshold(20_000, 2, 2500)
    gc.enable()


def give_back() -> None:
    """Give free memory between what is in use back to the machine: glibc does so only if it is asked."""
    import ctypes  # few programs need it

    with suppress(AttributeError):  # other C libraries
        ctypes.CDLL(None).malloc_trim(0)


def settle() -> None:
    """Exclude all present objects from collections. For a process that has read its data: they stay, so no collection need examine them."""
    gc.freeze()
