"""Room that Volcano's actions have promised in this session to gangs that wait for leaving pods: plain pods must not take it.

A node is refused if the pod fits there now, but would not fit once all releasing pods have left and all pipelined pods have come.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pumice.scheduler.engine import Filter, Reach, Reason, Refused, View
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import EPSILON, Task, status

PROMISED = Reason("node(s) had no room but what is promised to a gang")


class PipelinedRoom(Filter):
    """A filter that keeps the room promised to gangs."""

    name = "PromisedRoom"
    reach = Reach.NODE
    plannable = True

    def prepare(self, task: Task) -> Any:
        return task.template

    def refuse(self, template: Any, nodes: View) -> Sequence[Refused]:
        now, later = np.ones(len(nodes), bool), np.ones(len(nodes), bool)
        for column, amount in template.needs:
            idle, limit = nodes.idle[column], amount - EPSILON
            now &= idle > limit
            later &= idle + nodes.releasing[column] - nodes.pipelined[column] > limit
        return [Refused(now & ~later, PROMISED)]


def pipelined_room(session: Session) -> list[Filter]:
    """The filter, if any gang has such room; else no filter."""
    promised = session.pretended.operations or any(operation.task.status == status.PIPELINED for operation in session.undecided)
    return [PipelinedRoom()] if promised else []
