"""Placements: the sets of nodes in which a group with a topology constraint is tried, and their scores.

There is one placement for each value of the constraint's node label; without a constraint there is one, of all nodes. Members that run
already fix the value. Of several placements that take the group, the one with the highest total score is chosen, of equal ones the first.
Two plugins score: `PodGroupPodsCount` prefers more members, `NodeResourcesFit` fuller nodes, whatever its own strategy is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from pumice.scheduler.engine.rules import MAX_SCORE
from pumice.scheduler.kube.groups import Group
from pumice.scheduler.model.nodes import ABSENT, Nodes
from pumice.scheduler.model.resources import CPU, MEMORY, Mask, Vector
from pumice.scheduler.model.task import Task
from pumice.scheduler.plugins.kube.catalogue import PODS_COUNT
from pumice.scheduler.plugins.kube.node_resources_fit import PLUGIN as FIT
from pumice.scheduler.plugins.kube.node_resources_fit import STORAGE

NO_DOMAIN = "cannot determine domain for already scheduled pods: "

Places = Sequence[tuple[Task, int]]  #: tasks, each with the row of its node


class Placement(Struct, frozen=True):
    """A set of nodes. `name`: the value of the label that they share; empty for none."""

    name: str
    rows: Mask


class Undetermined(Exception):
    """The members that run already do not fix one value of the label."""


def placements(group: Group, nodes: Nodes, among: Mask, running: Iterable[Task]) -> list[Placement]:
    """The placements of a group among some nodes. `running`: its members that have a node. Raises Undetermined."""
    key = group.topology_key
    if not key:
        return [Placement("", among)]
    codes, values = nodes.codes(key)
    fixed = _fixed(running, nodes, key)
    found = (Placement(value, among & (codes == code)) for code, value in enumerate(values) if fixed is None or value == fixed)
    return [placement for placement in found if placement.rows.any()]


def _fixed(running: Iterable[Task], nodes: Nodes, key: str) -> str | None:
    codes, values = nodes.codes(key)
    met: dict[str, None] = {}
    for task in running:
        if task.node < 0:
            raise Undetermined(f'{NO_DOMAIN}getting node for pod {task.key}: node "{task.node_name}" not found')
        if codes[task.node] == ABSENT:
            raise Undetermined(f"{NO_DOMAIN}no topology domain found for pod {task.key}")
        met[values[codes[task.node]]] = None
    if len(met) > 1:
        raise Undetermined(f"{NO_DOMAIN}more than 1 domain found for pod group: {', '.join(met)}")
    return next(iter(met), None)


# Scores. Each is 0..100, and counts as often as its plugin's weight says.


def best(found: Sequence[tuple[Placement, Places]], running: int, nodes: Nodes, weights: Mapping[str, int], of: Mapping[str, int]) -> int:
    """The index of the placement with the highest total score. `running`: how many members have a node already; `of`: resources with their
    weights."""
    totals = np.zeros(len(found))
    if PODS_COUNT in weights:
        counts = np.array([running + len(places) for _, places in found], float)
        totals += np.floor(counts * MAX_SCORE / max(counts.max(), 1.0)) * weights[PODS_COUNT]
    if FIT.name in weights:
        fullness = [_fullness(placement.rows, places, nodes, of) for placement, places in found]
        totals += np.array(fullness) * weights[FIT.name]
    return int(totals.argmax())


def _fullness(rows: Mask, places: Places, nodes: Nodes, weights: Mapping[str, int]) -> float:
    """How full the nodes are together with the members placed there, in percent: the weighted mean over resources."""
    total = weight_sum = 0.0
    for name, weight in weights.items():
        column = nodes.dimensions.columns.get(name)
        if column is None:
            continue
        asked = _asked(places, column)
        if not asked and column not in (CPU, MEMORY) and name != STORAGE:
            continue
        used: Vector = nodes.nonzero_used[column] if column in (CPU, MEMORY) else nodes.used_for_filters[column]
        room = np.where(rows, nodes.allocatable[column], 0.0)
        capacity, requested = float(room.sum()), float(used[room > 0].sum()) + asked
        if capacity:
            total += np.floor(min(requested, capacity) * MAX_SCORE / capacity) * weight
            weight_sum += weight
    return float(np.floor(total / weight_sum)) if weight_sum else 0.0


def _asked(places: Places, column: int) -> float:
    if column == CPU:
        return sum(task.template.newcomer_cpu for task, _ in places)
    if column == MEMORY:
        return sum(task.template.newcomer_memory for task, _ in places)
    return float(sum(task.template.request[column] for task, _ in places))
