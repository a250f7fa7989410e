"""Headlines about missing room: on one node, for a whole gang, or in one HyperNode, with the numbers.

A remedy gives exactly what is missing, on the node that lacks least, as the end of what others run there would. Where they hold
less than that, it is more nodes like it; for a pod that no node can take, it is a smaller pod.
"""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from pumice.answers.answer import Because, Headline
from pumice.answers.changes import ClusterChange, MoreNodes, MoreRoom, listed
from pumice.answers.refusing_rules import NodesFor
from pumice.answers.request_changes import SmallerPods, first_requests
from pumice.api.plural import counted
from pumice.scheduler.model import EPSILON, PODS, Table, Task, Vector
from pumice.scheduler.model.hypernodes import BELOW_ALL, NO_SUCH_TIER


class Missing:
    """What a gang still lacks: `found` of the `wanted` pods have places, and these tasks must still find theirs."""

    def __init__(self, wanted: int, found: int, tasks: list[Task]) -> None:
        self.wanted, self.found, self.tasks = wanted, found, tasks

    @property
    def short(self) -> int:
        return self.wanted - self.found

    @property
    def is_gang(self) -> bool:
        return self.wanted > 1


def headline(nodes: NodesFor, missing: Missing, whose: str) -> Headline:
    """The headline if no open node has room for one more pod of this kind."""
    among = nodes.open & nodes.large
    if not among.any():
        return too_large(nodes, whose)
    row = int(nodes.distance(among).argmin())
    place = _worst(nodes, row)
    column, name = nodes.columns[place], _name(nodes, place)
    need, free, short = (
        _amount_text(nodes, column, amount) for amount in (nodes.template.amounts[place], nodes.free[place, row], nodes.short[place, row])
    )
    node, remedy = nodes.table.names[row], (_room(nodes, row, missing),)
    freest = (
        f"of {int(among.sum())} nodes that it may use, {node} comes closest with {free}"
        if among.sum() > 1
        else f"{node}, the only node that it may use, has {free}"
    )
    if missing.is_gang:
        return _gang(nodes, missing, f"one more needs {need} {name} on a node, and {freest}", remedy)
    together = nodes.free[:, among].sum(axis=1)
    if (together > nodes.template.amounts - EPSILON).all() and among.sum() > 1:
        all_ = _amount_text(nodes, column, together[place])
        text = f"no node has {need} {name} free, though all together have {all_}: {freest} ({short} short)"
        return Headline(Because.FRAGMENTED, text, need, free, short, remedy)
    return Headline(Because.NO_ROOM, f"no node has {need} {name} free: {freest} ({short} short)", need, free, short, remedy)


def _gang(nodes: NodesFor, missing: Missing, detail: str, remedy: tuple[ClusterChange, ...]) -> Headline:
    wanted, found, short = missing.wanted, missing.found, missing.short
    empty = nodes.copies(nodes.open, empty=True)
    job = missing.tasks[0].job if missing.tasks else None
    alike = job is not None and all(task.template is nodes.template for task in job.tasks.values())
    if alike and empty < wanted:
        return headline_of_gang(missing, empty, remedy)
    text = f"its {wanted} pods start together, and there is room for {found} ({short} short): {detail}"
    return Headline(Because.GANG, text, str(wanted), str(found), str(short), remedy)


def of_gang(missing: Missing, more: Headline) -> Headline:
    """The headline if a part of a gang finds nodes, and `more` keeps one more of its pods from all others."""
    wanted, found, short = missing.wanted, missing.found, missing.short
    text = f"its {wanted} pods start together, and there are nodes for {found} ({short} short): for one more, {more.text}"
    return Headline(more.because, text, str(wanted), str(found), str(short), more.remedy)


def headline_of_gang(missing: Missing, most: int, remedy: tuple[ClusterChange, ...] = ()) -> Headline:
    """The headline if even an empty cluster would hold no more than `most` pods of the gang."""
    wanted = missing.wanted
    text = f"its {wanted} pods start together, and even empty nodes would hold only {most} ({wanted - most} short)"
    return Headline(Because.GANG_TOO_LARGE, text, str(wanted), str(most), str(wanted - most), remedy)


def too_large(nodes: NodesFor, whose: str) -> Headline:
    """The headline if no node could take a pod of `whose`, even if the node were empty."""
    lacking: Vector = nodes.template.amounts[:, None] - nodes.table.allocatable[nodes.columns]
    lacking[lacking < EPSILON] = 0.0
    parts = np.where(nodes.alive, (lacking / nodes.template.amounts[:, None]).sum(axis=0), np.inf)
    best = np.where(nodes.open, parts, parts + nodes.template.amounts.size)  # an open node if there is any
    row = int(best.argmin())
    place = int((lacking[:, row] / nodes.template.amounts).argmax())
    column, name = nodes.columns[place], _name(nodes, place)
    largest = nodes.table.allocatable[column, row]
    need, most, short = (_amount_text(nodes, column, amount) for amount in (nodes.template.amounts[place], largest, lacking[place, row]))
    text = f"it asks for {need} {name} on one node, and the largest, {nodes.table.names[row]}, has {most} in all ({short} short)"
    lacks = np.zeros(len(nodes.table.allocatable))
    lacks[nodes.columns] = lacking[:, row]
    return Headline(Because.TOO_LARGE, text, need, most, short, (_smaller(nodes, whose, lacks) or _more(nodes, row, lacks),))


def _smaller(nodes: NodesFor, whose: str, lacks: Vector) -> SmallerPods | None:
    """The pods without what they lack on an empty node, if their first containers can do without it."""
    own = nodes.table.dimensions.vector(first_requests(nodes.template.spec))
    places = np.flatnonzero(lacks > 0)
    if PODS in places or (own[places] <= lacks[places]).any():
        return None
    return SmallerPods(
        whose, {nodes.table.dimensions.names[c]: nodes.table.dimensions.format(c, own[c] - lacks[c]) for c in places.tolist()}
    )


def in_domain(nodes: NodesFor, missing: Missing, domain: str, tier: int, wider: ClusterChange) -> Headline:
    """The headline if the roomiest HyperNode that may hold a job is too small for it. `nodes` are the nodes in it. `wider`: what helps if
    no node in it could give as much as is missing, as more nodes would not be in that HyperNode."""
    tasks = missing.tasks[: missing.wanted]
    where = f"its {counted(len(tasks), 'pod')} must be in one HyperNode of tier {tier} or lower"
    found = _of_topology(nodes, tasks, f"{where}; the roomiest, {domain}, has")
    return found if isinstance(found.remedy[0], MoreRoom) else replace(found, remedy=(wider,))


def in_cluster(nodes: NodesFor, missing: Missing) -> Headline:
    """The headline if pods with a network topology may be anywhere, but all that wait need more room than there is."""
    wanted = counted(missing.wanted, "pod")
    return _of_topology(nodes, missing.tasks, f"its network topology asks for room for all {wanted} that wait, and there is")


def _of_topology(nodes: NodesFor, tasks: list[Task], so: str) -> Headline:
    short, remedy = _short_of_room(nodes, tasks)
    wanted, found = len(tasks), len(tasks) - short
    return Headline(Because.TOPOLOGY, f"{so} room for {found} ({short} short)", str(wanted), str(found), str(short), remedy)


def for_a_part(nodes: NodesFor, missing: Missing) -> Headline | None:
    """The headline if there is room for one more pod, but not for all that must start together; else None."""
    tasks = missing.tasks[: missing.short]
    short, remedy = _short_of_room(nodes, tasks, at_least=0) if tasks else (0, ())
    if not short:
        return None
    found = missing.wanted - short
    text = f"its {missing.wanted} pods start together, and there is room for {found} ({short} short)"
    return Headline(Because.GANG, text, str(missing.wanted), str(found), str(short), remedy)


def _short_of_room(nodes: NodesFor, tasks: list[Task], at_least: int = 1) -> tuple[int, tuple[ClusterChange, ...]]:
    """How many of the tasks find no room if each takes the first open node, and the room that they need on the node that lacks least."""
    left, free = _first_fit(nodes, tasks)
    among = nodes.open & nodes.large if (nodes.open & nodes.large).any() else nodes.open if nodes.open.any() else nodes.alive
    row = int(nodes.distance(among).argmin())
    need = np.sum([task.template.request for task in left or tasks], axis=0)
    short_there = np.maximum(need - np.maximum(free[:, row], 0.0), 0.0) if left else need
    return max(len(left), at_least), (_more(nodes, row, short_there, left or tasks),)


def no_domain(tier: int, wider: ClusterChange) -> Headline:
    none = f"its pods must be in one HyperNode of tier {tier} or lower, and there is none"
    return Headline(Because.TOPOLOGY, NO_SUCH_TIER if tier == BELOW_ALL else none, remedy=(wider,))


def _first_fit(nodes: NodesFor, tasks: list[Task]) -> tuple[list[Task], Table]:
    """The tasks that find no room if each takes the first open node with room, and what is free then."""
    free, left = nodes.free_everywhere(), []
    for task in tasks:
        fits = nodes.open.copy()
        for column, amount in task.template.needs:
            fits &= free[column] > amount - EPSILON
        if fits.any():
            free[:, int(fits.argmax())] -= task.template.request
        else:
            left.append(task)
    return left, free


def _room(nodes: NodesFor, row: int, missing: Missing) -> ClusterChange:
    """The room that all missing pods together lack."""
    kind = sorted(missing.tasks, key=lambda task: task.template is not nodes.template)[: max(1, missing.short)]
    need: Vector = np.sum([task.template.request for task in kind], axis=0)
    short = np.maximum(need - np.maximum(nodes.all_free(row), 0.0), 0.0)
    short[nodes.columns] = np.maximum(short[nodes.columns], nodes.short[:, row])
    return _more(nodes, row, short, kind)


def _more(nodes: NodesFor, row: int, short: Vector, tasks: Sequence[Task] = ()) -> ClusterChange:
    """So much more room on a node; for more than others hold there, as many nodes like it as the tasks fill."""
    has = nodes.table.allocatable[:, row]
    need: Vector = np.sum([task.template.request for task in tasks], axis=0)
    if tasks and nodes.large[row] and (short > _held_by_others(nodes, row, tasks[0])).any():
        asked = need > 0
        a_pod = need[asked] / len(tasks)
        return MoreNodes(nodes.table.names[row], -(-len(tasks) // max(int((has[asked] // a_pod).min()), 1)))
    return MoreRoom(nodes.table.names[row], listed(nodes.table.dimensions, short))


def _held_by_others(nodes: NodesFor, row: int, own: Task) -> Vector:
    """What pods of others than the task's job hold on a node."""
    held: Vector = nodes.table.used[:, row].copy()
    for task in nodes.table.tasks[row].values():
        if task.job is own.job and own.job is not None:
            held -= task.template.request
    return held


def _worst(nodes: NodesFor, row: int) -> int:
    """The index in `columns` of the resource that the node lacks most."""
    return int((nodes.short[:, row] / nodes.template.amounts).argmax())


def _name(nodes: NodesFor, place: int) -> str:
    return nodes.table.dimensions.names[nodes.columns[place]]


def _amount_text(nodes: NodesFor, column: int, amount: float) -> str:
    return nodes.table.dimensions.format_amount(column, max(amount, 0.0))
