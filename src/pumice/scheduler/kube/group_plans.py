"""Plans: where a group goes in each placement.

They are kept for the next group of the same shape. Equal members are planned further ahead than one gang: once a gang has got its places,
the next one's are those that follow.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from pumice.scheduler.engine import Evaluation
from pumice.scheduler.engine.plan_equal_tasks import plan
from pumice.scheduler.kube.group_placements import Placement, Placements
from pumice.scheduler.model import Cluster, Template, Vector

AHEAD = 64  #: so many members of one kind are planned at least
OTHER = -1  #: stands for a change that is not by pods of the kind that was planned


class PlannedPlaces:
    """The planned places of all groups of one shape, in all placements. `template`: that of all members, if they have one."""

    def __init__(self, cluster: Cluster, found: Placements, size: int, template: Template | None) -> None:
        self._cluster, self._found, self._size, self._template = cluster, found, size, template
        self._rows: list[Sequence[int] | None] = [None] * len(found.all)  #: by placement; None if it must be planned anew
        self.counts: Vector = np.zeros(len(found.all))  #: how many members find a place
        self._position = cluster.log.position

    def refresh(self, plan_in: Callable[[Placement], Sequence[int]]) -> None:
        """Plan anew where nodes have changed. `plan_in`: the rows of the members in a placement, perhaps of more; it leaves no trace."""
        self._take_in_changes()
        self._position = self._cluster.log.position
        for number, rows in enumerate(self._rows):
            if rows is None:
                planned = self._rows[number] = plan_in(self._found.all[number])
                self.counts[number] = min(len(planned), self._size)
        self._position = self._cluster.log.position

    def _take_in_changes(self) -> None:
        """Forget the plans that do not hold any more. A plan that was followed goes on."""
        changes = self._cluster.log.since(self._position)
        if changes is None:
            self._rows = [None] * len(self._rows)
            return
        net: dict[int, Counter[int]] = {}
        for row, task, sign in changes:
            net.setdefault(int(self._found.number_of[row]), Counter())[row if task.template is self._template and sign else OTHER] += (
                sign or 1
            )
        net.pop(-1, None)
        for number, change in net.items():
            rows, moved = self._rows[number], {row: count for row, count in change.items() if count}
            if moved and rows is not None:
                follows = moved == Counter(rows[: self._size]) and len(rows) >= 2 * self._size
                self._rows[number] = rows[self._size :] if follows else None

    def rows(self, number: int) -> Sequence[int]:
        """The rows of the members in a placement, in the order in which the members are tried."""
        rows = self._rows[number]
        assert rows is not None, "it is refreshed"
        return rows[: self._size]


def places_in(placement: Placement, evaluation: Evaluation, size: int) -> Sequence[int]:
    """The rows in a placement of equal members: of `size`, and of some more if there is room. The evaluation must be refreshed."""
    candidates, most = evaluation.admitted & placement.rows, max(size, AHEAD)
    return list(islice(plan(evaluation, candidates, most), most)) if candidates.any() else []


class PlacementMemory:
    """What attempts of one session keep for those after them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.of_all_nodes: dict[Any, Placements] = {}
        self._planned: dict[Any, PlannedPlaces] = {}

    def planned(
        self, shape: Hashable, found: Placements, size: int, plan_in: Callable[[Placement], Sequence[int]], template: Template | None = None
    ) -> PlannedPlaces:
        """The planned places of a group with `size` members, up to date. `shape`: what decides them besides the nodes."""
        key = (shape, found)
        places = self._planned.get(key)
        if places is None:
            places = self._planned[key] = PlannedPlaces(self._cluster, found, size, template)
        places.refresh(plan_in)
        return places
