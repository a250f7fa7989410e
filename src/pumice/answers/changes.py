"""Changes to a cluster, as values. Remedies consist of changes, and so do answers to "what if".

Each change describes itself in words, is a tagged object in JSON, and can be made in a `TrialCluster`. Here are changes to nodes and
queues, and what runs ends or moves; changes to waiting pods are in `pod_changes.py`, those to what jobs request in `request_changes.py`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from pumice.answers.trial_cluster import TrialCluster
from pumice.api import rfc3339
from pumice.api.core import Node, ResourceQuota, Taint
from pumice.api.meta import Metadata
from pumice.api.plural import plural
from pumice.api.quantity import Quantity, quantity
from pumice.api.volcano import Guarantee, Queue, QueueStatus
from pumice.scheduler.model import Dimensions, Job, Nodes, Vector, status

Amounts = dict[str, str]
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"  #: the taint of cordoned nodes


class ClusterChange(Struct, frozen=True, tag_field="change"):
    """Base class of all changes."""

    comes_last: ClassVar[bool] = False  #: among several changes
    words: ClassVar[str]  #: with the names of fields in braces

    def make(self, trial: TrialCluster) -> None:
        raise NotImplementedError

    def __str__(self) -> str:
        return self.words.format_map({name: _text(value) for name, value in asdict(self).items()})


class MoreRoom(ClusterChange, frozen=True, tag="room"):
    """A node gets more allocatable resources."""

    node: str
    amounts: Amounts
    words: ClassVar[str] = "{amounts} more on node {node}"

    def make(self, trial: TrialCluster) -> None:
        nodes = trial.cluster.nodes
        row = nodes.rows[self.node]
        more = nodes.dimensions.vector(quantities(self.amounts))
        trial.put("Node", giving(nodes, row, nodes.allocatable[:, row] + more))


def giving(nodes: Nodes, row: int, amounts: Vector) -> Node:
    """The node of a row, with these amounts as its allocatable resources."""
    wire, dimensions = nodes.wire[row], nodes.dimensions
    given = quantities(listed(dimensions, amounts))
    return replace(wire, status=replace(wire.status, allocatable={**(wire.status.allocatable or {}), **given}))


class MoreNodes(ClusterChange, frozen=True, tag="nodes"):
    """The cluster gets more nodes: empty ones, like an existing node."""

    like: str
    count: int

    def __str__(self) -> str:
        return f"{self.count} more {plural(self.count, 'node')} like {self.like}"

    @property
    def names(self) -> list[str]:
        return [f"{self.like}-like-{number}" for number in range(self.count)]

    def make(self, trial: TrialCluster) -> None:
        nodes = trial.cluster.nodes
        wire = nodes.wire[nodes.rows[self.like]]
        for name in self.names:
            labels = {key: name if value == self.like else value for key, value in (wire.metadata.labels or {}).items()}
            meta = replace(wire.metadata, name=name, uid=name, labels=labels)
            trial.put("Node", replace(wire, metadata=meta, spec=replace(wire.spec, unschedulable=None)))


class Uncordon(ClusterChange, frozen=True, tag="uncordon"):
    node: str
    words: ClassVar[str] = "uncordon node {node}"

    def make(self, trial: TrialCluster) -> None:
        _untaint(trial, (self.node,), lambda taint: taint.key == UNSCHEDULABLE, unschedulable=None)  # a controller removes that taint


class Recover(ClusterChange, frozen=True, tag="recover"):
    """A node is healthy again, and loses the taints that its conditions gave it."""

    node: str
    words: ClassVar[str] = "node {node} healthy again"

    def make(self, trial: TrialCluster) -> None:
        _untaint(trial, (self.node,), is_of_condition)


def is_of_condition(taint: Taint) -> bool:
    """Whether a condition of the node is behind the taint, such as not being ready: it comes again when somebody removes it."""
    return taint.key.startswith("node.kubernetes.io/") and taint.key != UNSCHEDULABLE


class Untaint(ClusterChange, frozen=True, tag="untaint"):
    """Nodes lose taints."""

    nodes: tuple[str, ...]
    taints: tuple[str, ...]  #: as kubectl writes them, `key=value:effect`

    def __str__(self) -> str:
        return f"remove the taint {', '.join(self.taints)} from {_nodes(self.nodes)}"

    def make(self, trial: TrialCluster) -> None:
        _untaint(trial, self.nodes, lambda taint: written(taint) in self.taints)


def _untaint(trial: TrialCluster, nodes: Iterable[str], goes: Callable[[Taint], bool], **spec: Any) -> None:
    for wire in _wires(trial, nodes):
        left = [taint for taint in wire.spec.taints or () if not goes(taint)]
        trial.put("Node", replace(wire, spec=replace(wire.spec, taints=left or None, **spec)))


class LabelNodes(ClusterChange, frozen=True, tag="label"):
    nodes: tuple[str, ...]
    labels: dict[str, str]

    def __str__(self) -> str:
        return f"label {_nodes(self.nodes)} with {', '.join(f'{key}={value}' for key, value in self.labels.items())}"

    def make(self, trial: TrialCluster) -> None:
        for wire in _wires(trial, self.nodes):
            trial.put("Node", replace(wire, metadata=replace(wire.metadata, labels=(wire.metadata.labels or {}) | self.labels)))


def written(taint: Taint) -> str:
    """A taint as kubectl writes it."""
    return f"{taint.key}={taint.value or ''}:{taint.effect}"


def _wires(trial: TrialCluster, names: Iterable[str]) -> list[Node]:
    nodes = trial.cluster.nodes
    return [nodes.wire[nodes.rows[name]] for name in names]


def _nodes(names: tuple[str, ...]) -> str:
    return f"{'node' if len(names) == 1 else 'nodes'} {', '.join(names)}"


class MoreQuota(ClusterChange, frozen=True, tag="quota"):
    """A queue's `capability`, `deserved` or `guarantee` gets these amounts. What is guaranteed must be deserved as well."""

    queue: str
    field: str
    amounts: Amounts

    def __str__(self) -> str:
        field = "guarantee and deserved" if self.field == "guarantee" else self.field
        return f"{field} of {_text(self.amounts)} for queue {self.queue}"

    def make(self, trial: TrialCluster) -> None:
        queue = trial.cluster.queues.get(self.queue)
        if queue is not None and queue.wire is not None:  # it may be still to be made, by another change
            trial.put("Queue", self.of(queue.wire))

    def of(self, queue: Queue) -> Queue:
        """The queue with this change."""
        amounts = quantities(self.amounts)
        if self.field != "guarantee":
            return replace(queue, spec=replace(queue.spec, **{self.field: (getattr(queue.spec, self.field) or {}) | amounts}))
        before, deserved = queue.spec.guarantee, queue.spec.deserved or {}
        guarantee = Guarantee(((before.resource if before else None) or {}) | amounts)
        lower = {name: each for name, each in amounts.items() if name not in deserved or deserved[name].milli < each.milli}
        return replace(queue, spec=replace(queue.spec, guarantee=guarantee, deserved=deserved | lower))


class RaiseQuota(ClusterChange, frozen=True, tag="resource-quota"):
    """A ResourceQuota allows these amounts."""

    quota: str  #: namespace/name
    amounts: Amounts
    words: ClassVar[str] = "ResourceQuota {quota} with {amounts}"

    def make(self, trial: TrialCluster) -> None:
        known: ResourceQuota = trial.cluster.of("ResourceQuota")[self.quota]
        more = quantities(self.amounts)
        spec, state = replace(known.spec, hard=(known.spec.hard or {}) | more), replace(known.status, hard=(known.status.hard or {}) | more)
        trial.put("ResourceQuota", replace(known, spec=spec, status=state))


class OpenQueue(ClusterChange, frozen=True, tag="open"):
    queue: str
    words: ClassVar[str] = "open queue {queue}"

    def make(self, trial: TrialCluster) -> None:
        queue = trial.cluster.queues[self.queue].wire
        assert queue is not None
        trial.put("Queue", replace(queue, status=replace(queue.status, state="Open")))


class MakeQueue(ClusterChange, frozen=True, tag="make-queue"):
    queue: str
    words: ClassVar[str] = "create queue {queue}"

    def make(self, trial: TrialCluster) -> None:
        trial.put("Queue", Queue(Metadata(name=self.queue), status=QueueStatus(state="Open")))


class Gone(ClusterChange, frozen=True, tag="gone"):
    """Pods, or all pods of PodGroups, have ended or were deleted."""

    whose: tuple[str, ...]
    words: ClassVar[str] = "without {whose}"

    def make(self, trial: TrialCluster) -> None:
        cluster = trial.cluster
        for each in self.whose:
            kind, _, key = each.partition("/")
            if kind == "pod":
                trial.remove("Pod", key)
            else:
                self._end(trial, cluster.jobs[key])

    def _end(self, trial: TrialCluster, job: Job) -> None:
        for task in list(job.tasks.values()):
            if not task.status & status.FINISHED:
                trial.remove("Pod", task.key)
        if job.group is not None:
            trial.remove("PodGroup", job.uid)


class MovePod(ClusterChange, frozen=True, tag="move"):
    """A running pod runs on another node instead."""

    pod: str  #: namespace/name
    node: str
    words: ClassVar[str] = "pod/{pod} moved to node {node}"

    def make(self, trial: TrialCluster) -> None:
        task = trial.cluster.tasks[self.pod]
        trial.move(task, task.status, trial.cluster.nodes.rows[self.node])


class Later(ClusterChange, frozen=True, tag="later"):
    """Nothing changes but the time."""

    at: float

    def __str__(self) -> str:
        return f"nothing but time, from {rfc3339(self.at)} on"

    def make(self, trial: TrialCluster) -> None:
        """The cycles that follow are rehearsed at that time."""


def quantities(amounts: Amounts) -> dict[str, Quantity]:
    return {name: quantity(text) for name, text in amounts.items()}


def _text(value: Any) -> str:
    """Names and amounts with commas between them, and anything else as it is."""
    parts = [f"{amount} {name}" for name, amount in value.items()] if isinstance(value, dict) else value
    return ", ".join(parts) if isinstance(parts, list | tuple) else str(parts)


def merged(changes: Sequence[ClusterChange], dimensions: Dimensions) -> list[ClusterChange]:
    """The same changes without repetition, in an order in which they can be made: room on a node is added up, as are more nodes, and of
    several amounts for a limit the largest is taken, parents before their children. Jobs end first: those that wait would take what is
    added. So do queues begin, whose limits may be among the changes. Gates are removed last: pods that are made anew have them again."""
    first: list[ClusterChange] = []
    rooms: dict[str, Vector] = {}
    nodes: Counter[str] = Counter()  #: how many more, by the node that they are like
    limits: dict[tuple[str, str], Amounts] = {}  #: by queue and field
    quotas: dict[str, Amounts] = {}
    found: list[ClusterChange] = []
    added = {name: change.like for change in changes if isinstance(change, MoreNodes) for name in change.names}
    for change in changes:
        match change:
            case Gone() | MakeQueue() if change not in first:
                first.append(change)
            case MoreRoom():
                node = added.get(change.node, change.node)
                rooms[node] = dimensions.vector(quantities(change.amounts)) + rooms.get(node, 0.0)
            case MoreNodes():
                nodes[added.get(change.like, change.like)] += change.count
            case MoreQuota():
                limits[change.queue, change.field] = _raised(limits.pop((change.queue, change.field), {}), change.amounts)
            case RaiseQuota():
                quotas[change.quota] = _raised(quotas.get(change.quota, {}), change.amounts)
            case _ if change not in (*first, *found):
                found.append(change)
    more = [MoreRoom(node, listed(dimensions, amounts)) for node, amounts in rooms.items()]
    higher = [MoreQuota(queue, field, amounts) for (queue, field), amounts in limits.items()]
    found.sort(key=lambda change: change.comes_last)
    alike = [MoreNodes(like, count) for like, count in nodes.items()]
    return [*first, *more, *alike, *higher, *(RaiseQuota(quota, amounts) for quota, amounts in quotas.items()), *found]


def _raised(limits: Amounts, amounts: Amounts) -> Amounts:
    higher = {n: a for n, a in amounts.items() if n not in limits or quantity(limits[n]).milli < quantity(a).milli}
    return limits | higher


def listed(dimensions: Dimensions, vector: Vector) -> Amounts:
    """The amounts of a vector that are above zero, by resource name."""
    return {name: dimensions.format(column, vector[column]) for column, name in enumerate(dimensions.names) if vector[column] > 0}


def make_all(trial: TrialCluster, changes: Iterable[ClusterChange]) -> None:
    for change in changes:
        change.make(trial)
