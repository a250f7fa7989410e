"""What follows from a cycle's decisions where no API server is asked: bound pods run, evicted ones go, nominations are set.

A live scheduler sends requests instead, and its watch shows what came of them.
"""

from collections.abc import Callable

from pumice.scheduler.framework.decisions import Decisions, Evict
from pumice.scheduler.framework.journal import StateJournal
from pumice.scheduler.model import Cluster, status


def carry_out(changes: Cluster | StateJournal, decisions: Decisions, now: float, evict: Callable[[Evict], object]) -> None:
    """Carry out decisions on a cluster, or by a journal that takes everything back. `evict`: what becomes of each evicted pod."""
    for bind in decisions.binds:
        if bind.task.status == status.BINDING:  # else it has gone since
            changes.start(bind.task, bind.task.node, now, bind.annotations)
    for eviction in decisions.evictions:
        evict(eviction)
    for task, node in decisions.nominations.items():
        changes.nominate(task, node)
