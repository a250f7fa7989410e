"""Placements: the sets of nodes in which a group with a topology constraint is tried, and their scores.

There is one placement for each value of the constraint's node label; without a constraint there is one, of all nodes. Members that run
already fix the value. Of several placements that take the group, the one with the highest total score is chosen, of equal ones the first.
Two plugins score: `PodGroupPodsCount` prefers more members, `NodeResourcesFit` fuller nodes, whatever its own strategy is.

Where members are equal and only what a node has decides, the places of a gang or a tree of gangs in a placement are planned, and kept
until one of its nodes changes: when a group has got its places, the next one of its shape finds those of the others still planned.

A score is 0..100, and counts as often as its plugin's weight says.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from pumice.scheduler.engine import MAX_SCORE, Scores
from pumice.scheduler.kube.pod_groups import NativeGroup
from pumice.scheduler.model import ABSENT, CPU, MEMORY, Mask, Nodes, Rows, Task, Template, Vector
from pumice.scheduler.plugins.kube.catalogue import PODS_COUNT
from pumice.scheduler.plugins.kube.node_resources_fit import PLUGIN as FIT
from pumice.scheduler.plugins.kube.resource_allocation import STORAGE

NO_DOMAIN = "cannot determine domain for already scheduled pods: "
MOST_LEVELS = 4  #: of a tree, from the group with the constraint on

Places = Sequence[tuple[Task, int]]  #: tasks, each with the row of its node


class Placement(Struct, frozen=True):
    """A set of nodes. `name`: the value of the label that they share; empty for none."""

    name: str
    rows: Mask


class Placements:
    """All placements of a group; no node is in two of them."""

    def __init__(self, found: Sequence[Placement]) -> None:
        self.all = found
        rows = [np.flatnonzero(placement.rows) for placement in found]
        self._order: Rows = np.concatenate(rows) if rows else np.zeros(0, np.intp)
        self._starts: Rows = np.cumsum([0, *map(len, rows)])[:-1]
        self.number_of = np.full(len(found[0].rows) if found else 0, -1)  #: by row, the number of its placement
        for number, part in enumerate(rows):
            self.number_of[part] = number

    def sums(self, column: Vector) -> Vector:
        """The sum of a column of the node table in each placement."""
        total: Vector = np.add.reduceat(column[self._order], self._starts)
        return total


class Undetermined(Exception):
    """The members that run already do not fix one value of the label, or the tree is too deep to look for them."""


def placements(group: NativeGroup, nodes: Nodes, among: Mask, running: Iterable[Task], kept: dict[Any, Placements]) -> Placements:
    """The placements of a group among some nodes. `running`: its members that have a node. `kept`: those of all nodes, for other groups.
    Raises Undetermined."""
    key = group.topology_key
    if not key:
        return Placements([Placement("", among)])
    if (deep := group.below(MOST_LEVELS)) is not None:
        raise Undetermined(f"exceeded maximum hierarchy depth at {deep.kind}/{deep.key}")
    codes, values = nodes.codes(key)
    fixed = _fixed(running, nodes, key)
    known = kept.get(key) if fixed is None and among is nodes.alive else None
    if known is not None:
        return known
    parts = (Placement(value, among & (codes == code)) for code, value in enumerate(values) if fixed is None or value == fixed)
    found = Placements([placement for placement in parts if placement.rows.any()])
    if fixed is None and among is nodes.alive:
        kept[key] = found
    return found


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


def best(
    found: Placements,
    feasible: Sequence[int],
    counts: Vector,
    asked: Callable[[int], Vector],
    nodes: Nodes,
    weights: Mapping[str, int],
    resources: Mapping[str, int],
) -> int:
    """The number of the feasible placement with the highest total score. For each placement, `counts` has the number of members that would
    run there, and `asked` what those ask for together that have no node yet, by column of the node table. `resources`: with their weights.
    """
    totals = np.zeros(len(found.all))
    if PODS_COUNT in weights:
        totals += np.floor(counts * MAX_SCORE / max(counts[list(feasible)].max(), 1.0)) * weights[PODS_COUNT]
    if FIT.name in weights:
        totals += _fullness(found, asked, nodes, resources) * weights[FIT.name]
    return feasible[int(totals[list(feasible)].argmax())]


def _fullness(found: Placements, asked: Callable[[int], Vector], nodes: Nodes, weights: Mapping[str, int]) -> Scores:
    """How full each placement would be, in percent: the weighted mean over resources."""
    total, weight_sums = np.zeros(len(found.all)), np.zeros(len(found.all))
    for name, weight in weights.items():
        column = nodes.dimensions.columns.get(name)
        if column is None:
            continue
        more = asked(column)
        basic = column in (CPU, MEMORY)
        used: Vector = nodes.nonzero_used[column] if basic else nodes.used_for_filters[column]
        has = nodes.allocatable[column]
        capacity, requested = found.sums(has), found.sums(np.where(has > 0, used, 0.0)) + more
        counts = (capacity > 0) & (basic or name == STORAGE or more > 0)
        share = np.floor(np.minimum(requested, capacity) * MAX_SCORE / np.where(counts, capacity, 1.0))
        total += np.where(counts, share, 0.0) * weight
        weight_sums += counts * weight
    return np.floor(total / np.where(weight_sums > 0, weight_sums, 1.0))


def asked_by(template: Template, column: int) -> float:
    """What a pod that has no node yet counts in scores."""
    if column == CPU:
        return template.newcomer_cpu
    return template.newcomer_memory if column == MEMORY else float(template.request[column])
