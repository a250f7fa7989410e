"""Room that Volcano's actions have promised in this session to gangs that wait for leaving pods: plain pods must not take it.

A node that takes a pod now, but would not once all leave who leave and all came who are promised, refuses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pumice.engine.rules import Filter, Reach, Reason, Refused
from pumice.engine.view import View
from pumice.framework.session import Session
from pumice.model import status
from pumice.model.resources import EPSILON
from pumice.model.task import Task

PROMISED = Reason("node(s) had no room but what is promised to a gang")


class PromisedRoom(Filter):
    """See the module."""

    name = "PromisedRoom"
    reach = Reach.NODE
    foresees = True

    def prepare(self, task: Task) -> Any:
        return task.template

    def refuse(self, template: Any, nodes: View) -> Sequence[Refused]:
        now, later = np.ones(len(nodes), bool), np.ones(len(nodes), bool)
        for column, amount in template.needs:
            idle, limit = nodes.idle[column], amount - EPSILON
            now &= idle > limit
            later &= idle + nodes.releasing[column] - nodes.pipelined[column] > limit
        return [Refused(now & ~later, PROMISED)]


def promised_room(session: Session) -> list[Filter]:
    """The rule, if there are such gangs."""
    return [PromisedRoom()] if any(operation.task.status == status.PIPELINED for operation in session.undecided) else []
