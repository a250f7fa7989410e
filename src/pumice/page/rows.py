"""The rows that the page shows of nodes, queues, jobs and pods. Amounts are in CPUs, bytes and GPUs."""

from collections import Counter
from collections.abc import Iterable, Iterator
from math import inf

import msgspec

from pumice.answers.subject import named_by_user
from pumice.api.annotations import KUBELET
from pumice.api.core import Node
from pumice.api.quantity import is_gpu
from pumice.controllers.kubernetes.node_lifecycle import NOT_READY, UNREACHABLE
from pumice.scheduler.model import CPU, MEMORY, Cluster, Job, Queue, Task, Template, Vector, status
from pumice.scheduler.model.resources import HALF, Sum

Amounts = dict[str, float]  #: of cpu, memory, gpu; amounts that are 0 or infinite are left out
Moments = tuple[float | None, float | None]  #: P50 and P90 of a start, in seconds since 1970; None: not within a week
GROUPS = ("topology.kubernetes.io/rack", "topology.kubernetes.io/zone", "pumice.io/pool", "node.kubernetes.io/instance-type")
LOOSE = "pod/"  #: the prefix of the keys of pods without a PodGroup
NO_QUEUE = "-"  #: the name of the row that has such pods; no queue can have it


class NodeRow(msgspec.Struct, omit_defaults=True):
    group: str  #: HyperNode, rack, zone, pool or type, whichever the node has first
    room: Amounts  #: allocatable
    used: Amounts
    held: list[tuple[str, float, float]]  #: a job, and the CPUs and GPUs of its pods on this node
    cordoned: bool = False
    failed: bool = False  #: its kubelet does not report, or is marked as stopped


class QueueRow(msgspec.Struct, omit_defaults=True):
    parent: str
    weight: int
    state: str
    held: Amounts
    asked: Amounts  #: requested by pods that wait
    deserved: Amounts
    guarantee: Amounts
    limit: Amounts  #: of the capability
    jobs: int
    waiting: int


class JobRow(msgspec.Struct, omit_defaults=True):
    queue: str
    phase: str
    created: float
    pods: dict[str, int]  #: by status
    held: Amounts
    asked: Amounts
    priority: int = 0
    minimum: int = 0
    started: float | None = None  #: when the first of its pods started
    why: str = ""  #: why it waits
    expected: Moments | None = None  #: when it starts; None: nothing is known
    owner: str = ""  #: the name of the object that controls its PodGroup or pods, as a user knows it
    kind: str = ""  #: the API and kind of the owner: batch.volcano.sh/v1alpha1/Job; of pods without a PodGroup the kind alone


class PodRow(msgspec.Struct, omit_defaults=True):
    name: str
    role: str
    status: str
    node: str
    created: float
    started: float | None
    asks: Amounts
    why: str = ""


class Amounting:
    """Converts vectors to amounts. Cards of all vendors count as GPUs. Plain numbers are several times faster here than arrays."""

    def __init__(self, cluster: Cluster) -> None:
        self._cards = [column for column, name in enumerate(cluster.dimensions.names) if is_gpu(name)]
        self._shares: dict[Template, tuple[float, float]] = {}

    def of(self, vector: Vector) -> Amounts:
        return self._named(vector.tolist())

    def of_sum(self, kept: Sum) -> Amounts:
        low, high = kept.tolist()
        return self._named([few + HALF * many for few, many in zip(low, high, strict=True)] if any(high) else low)

    def share(self, task: Task) -> tuple[float, float]:
        """The CPUs and the GPUs that a pod requests."""
        template = task.template
        found = self._shares.get(template)
        if found is None:
            numbers = template.request.tolist()
            found = self._shares[template] = numbers[CPU] / 1000, self._gpus(numbers)
        return found

    def of_requests(self, tasks: Iterator[Task]) -> Amounts:
        found = Counter[Template](task.template for task in tasks)
        sums: Counter[str] = Counter()
        for template, count in found.items():
            sums.update({name: count * amount for name, amount in self.of(template.request).items()})
        return {**sums}

    def _named(self, numbers: list[float]) -> Amounts:
        found = {"cpu": numbers[CPU] / 1000, "memory": float(numbers[MEMORY]), "gpu": self._gpus(numbers)}
        return {name: amount for name, amount in found.items() if amount and amount < inf}

    def _gpus(self, numbers: list[float]) -> float:
        return sum(numbers[column] for column in self._cards if column < len(numbers)) / 1000


def node_row(cluster: Cluster, row: int, hypernode: str, amounting: Amounting) -> NodeRow:
    nodes = cluster.nodes
    labels = nodes.labels(row)
    held: dict[str, tuple[float, float]] = {}
    for task in nodes.tasks[row].values():
        key, (cpu, gpu) = job_key(task), amounting.share(task)
        before = held.get(key, (0.0, 0.0))
        held[key] = before[0] + cpu, before[1] + gpu
    return NodeRow(
        group=hypernode or next((labels[key] for key in GROUPS if key in labels), ""),
        room=amounting.of(nodes.allocatable[:, row]),
        used=amounting.of(nodes.used[:, row]),
        held=[(key, round(cpu, 3), round(gpu, 3)) for key, (cpu, gpu) in held.items()],
        cordoned=bool(nodes.cordoned[row]),
        failed=_has_failed(nodes.wire[row]),
    )


def _has_failed(node: Node) -> bool:
    stopped = (node.metadata.annotations or {}).get(KUBELET) == "stopped"
    return stopped or any(taint.key in (NOT_READY, UNREACHABLE) for taint in node.spec.taints or ())


def queue_row(queue: Queue, deserved: Vector, amounting: Amounting) -> QueueRow:
    return QueueRow(
        parent=queue.parent,
        weight=queue.weight,
        state=queue.state,
        held=amounting.of_sum(queue.holding),
        asked=amounting.of_sum(queue.asking),
        deserved=amounting.of(deserved),
        guarantee=amounting.of(queue.guarantee),
        limit=amounting.of(queue.capability),
        jobs=len(queue.jobs),
        waiting=sum(bool(job.pending) or job.is_pending for job in queue.jobs.values()),
    )


def job_row(job: Job, why: str, expected: Moments | None, amounting: Amounting) -> JobRow:
    """The row of a job. A job without pods requests the minimum resources of its PodGroup."""
    waits = bool(job.pending) or not job.tasks
    owner = job.group.metadata.controller if job.group is not None else None
    return JobRow(
        queue=job.queue.name if job.queue is not None else "",
        phase=job.phase,
        created=job.created,
        pods={name: job.by_status[bit] for bit, name in status.NAMES.items() if bit in job.by_status},
        held=amounting.of_sum(job.holding),
        asked=amounting.of_sum(job.asking) if job.tasks else amounting.of(job.min_resources),
        priority=job.priority,
        minimum=job.min_member,
        started=min(filter(None, map(_since, job.tasks.values())), default=None),
        why=why if waits else "",
        expected=expected if waits else None,
        owner=named_by_user(owner.kind, owner.name, next(iter(job.tasks.values()), None)) if owner is not None else "",
        kind=f"{owner.api_version}/{owner.kind}" if owner is not None else "",
    )


def loose_row(tasks: list[Task], why: str, amounting: Amounting) -> JobRow:
    """The row of pods without a PodGroup, shown as one job: all of one owner, or a single pod."""
    first = tasks[0]
    pods = Counter(status.NAMES[task.status] for task in tasks)
    waiting = [task for task in tasks if task.status == status.PENDING]
    kind, _, name = _owner(first).partition("/")
    return JobRow(
        queue="",
        phase=next(iter(pods)) if len(pods) == 1 else "",
        created=min(task.created for task in tasks),
        pods=dict(sorted(pods.items())),
        held=amounting.of_requests(task for task in tasks if task.status & status.HELD),
        asked=amounting.of_requests(iter(waiting)),
        priority=first.pod_priority,
        started=min(filter(None, map(_since, tasks)), default=None),
        why=why if waiting else "",
        owner=named_by_user(kind, name, first),
        kind=kind,
    )


def no_queue_row(rows: Iterable[JobRow]) -> QueueRow:
    """What pods without a PodGroup hold and request. Volcano counts them in no queue; only the room that they take is gone."""
    held, asked, jobs, waiting = Counter[str](), Counter[str](), 0, 0
    for row in rows:
        held.update(row.held)
        asked.update(row.asked)
        jobs += 1
        waiting += bool(row.asked)
    return QueueRow(
        parent="", weight=0, state="", held={**held}, asked={**asked}, deserved={}, guarantee={}, limit={}, jobs=jobs, waiting=waiting
    )


def pod_rows(tasks: Iterator[Task], why: dict[str, str], amounting: Amounting) -> list[PodRow]:
    return [
        PodRow(
            name=task.name,
            role=task.role,
            status=status.NAMES[task.status],
            node=task.node_name,
            created=task.created,
            started=_since(task),
            asks=amounting.of(task.template.request),
            why=why.get(task.uid, "") if task.status == status.PENDING else "",
        )
        for task in tasks
    ]


def _since(task: Task) -> float | None:
    """When a pod started, or else was placed on its node; None if neither is known."""
    return task.started if task.started is not None else task.placed_at


def job_key(task: Task) -> str:
    """The key under which the job of a pod is shown. Pods without a PodGroup are shown under their owner, or alone."""
    return task.job.uid if task.job is not None else f"{LOOSE}{task.namespace}/{_owner(task) or task.name}"


def _owner(task: Task) -> str:
    """The owner under which pods without a PodGroup are shown together. A node owns the pods that its kubelet runs from files."""
    return "" if task.owner.startswith("Node/") else task.owner
