"""The rows that readers have, and the rows that have changed since: all queues are looked at, but only nodes and jobs that were touched.

Rows are kept as the JSON that was sent, so a row that has its old value again is not sent again. What queues held in the last hour is kept,
for tabs that are opened later.
"""

from collections.abc import Callable, Iterable, Iterator

import msgspec
import numpy as np

from pumice.api.core import Node
from pumice.page.recorder import Recorder
from pumice.page.rows import (
    LOOSE,
    NO_QUEUE,
    Amounting,
    Amounts,
    JobRow,
    Moments,
    QueueRow,
    job_key,
    job_row,
    loose_row,
    no_queue_row,
    node_row,
    queue_row,
)
from pumice.scheduler.model import Cluster, Index, Task, status
from pumice.scheduler.model.hypernodes import hypernodes_of

KINDS = ("nodes", "jobs", "queues")
Rows = dict[str, bytes | None]  #: rows as JSON, by name; None: the row is gone
ON_NODE = {name for bit, name in status.NAMES.items() if bit & status.ON_NODE}
_encode = msgspec.json.encode
KEPT_S = 600.0
KEPT_BYTES = 16 * 1024 * 1024


class Touched(Index):
    """The nodes and jobs whose pods came or went since the last `begin`, and all pods without a PodGroup that came to a node or waited."""

    def recount(self) -> None:
        self._loose: dict[str, dict[str, Task]] = {}  #: by key of the job under which they are shown, and by key; some may be gone
        super().recount()
        for task in self.cluster.tasks.values():
            self._note(task)

    def begin(self) -> None:
        self.rows: set[int] = set()
        self.jobs: set[str] = set()

    def change(self, row: int, task: Task, sign: int) -> None:
        self.rows.add(row)
        self.jobs.add(job_key(task))
        self._note(task)

    def refresh(self) -> None:
        for task in self.cluster.without_job.values():
            self._note(task)

    def _note(self, task: Task) -> None:
        if task.job is None:
            self._loose.setdefault(job_key(task), {})[task.key] = task

    def loose(self, key: str) -> list[Task]:
        """The pods without a PodGroup that are shown under this key: those on known nodes, those that wait for us, and those that ended."""
        noted = self._loose.get(key, {})
        for name, task in list(noted.items()):
            if self.cluster.tasks.get(name) is not task or task.job is not None or job_key(task) != key:
                del noted[name]
        if not noted:
            self._loose.pop(key, None)
        waiting = self.cluster.without_job
        return [task for task in noted.values() if task.node >= 0 or task.status & status.FINISHED or task.uid in waiting]


class SentRows:
    """The rows that readers have, and the rows that have changed since. `changes` is called between two cycles."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._index: Touched | None = None
        self._wire: list[Node] = []
        self._hypernodes = 0  #: the version of all HyperNodes
        self.rows: dict[str, dict[str, bytes]] = {kind: {} for kind in KINDS}
        self._loose: dict[str, JobRow] = {}  #: the rows of pods without a PodGroup
        self._loose_changed = False
        self.expected: dict[str, Moments] = {}  #: when each waiting job is expected to start, by its key
        self.cycles = 0  #: the number of the last cycle that was sent

    def changes(self, cluster: Cluster) -> dict[str, Rows]:
        amounting = Amounting(cluster)
        touched = self._touched(cluster)
        touched.refresh()
        fresh = {
            "nodes": self._changed("nodes", self._nodes(cluster, touched.rows, amounting)),
            "jobs": self._changed("jobs", self._jobs(cluster, touched, amounting)),
            "queues": self._changed("queues", self._queues(cluster, amounting)),
        }
        touched.begin()
        return {kind: rows for kind, rows in fresh.items() if rows}

    def expect(self, expected: dict[str, Moments]) -> None:
        self._recorder.stirred.update(self.expected, expected)
        self.expected = expected

    def fresh_cycles(self) -> list[bytes]:
        found = [_encode(cycle) for cycle in self._recorder.cycles if cycle.number > self.cycles]
        self.cycles = self._recorder.count
        return found

    def _touched(self, cluster: Cluster) -> Touched:
        if self._index is None or self._index.cluster is not cluster:
            self._index = cluster.index(Touched)
        return self._index

    def _changed(self, kind: str, rows: Iterable[tuple[str, bytes | None]]) -> Rows:
        known = self.rows[kind]
        changed: Rows = {}
        for name, row in rows:
            if row is None:
                if known.pop(name, None) is not None:
                    changed[name] = row
            elif known.get(name) != row:
                known[name] = row
                changed[name] = row
        return changed

    def _nodes(self, cluster: Cluster, touched: set[int], amounting: Amounting) -> Iterator[tuple[str, bytes | None]]:
        nodes = cluster.nodes
        before, self._wire = self._wire, list(nodes.wire)
        other = [row for row, (old, new) in enumerate(zip(before, self._wire, strict=False)) if old is not new]
        homes, moved = self._homes(cluster)
        if moved:
            other = list(range(len(before)))
        for gone in self.rows["nodes"].keys() - nodes.rows.keys():
            yield gone, None
        for row in sorted(touched.union(other, range(len(before), len(self._wire)))):
            if nodes.alive[row]:
                yield nodes.names[row], _encode(node_row(cluster, row, homes(row), amounting))

    def _homes(self, cluster: Cluster) -> tuple[Callable[[int], str], bool]:
        """A function that returns the name of the lowest HyperNode of a node's row, and whether HyperNodes have changed."""
        before, self._hypernodes = self._hypernodes, cluster.versions.get("HyperNode", 0)
        tree = hypernodes_of(cluster) if cluster.of("HyperNode") else None

        def home(row: int) -> str:
            lowest = tree.all[tree.homes[row]] if tree is not None else None
            return lowest.name if lowest is not None and lowest.parent is not None else ""

        return home, before != self._hypernodes

    def _jobs(self, cluster: Cluster, touched: Touched, amounting: Amounting) -> Iterator[tuple[str, bytes | None]]:
        stirred, self._recorder.stirred = self._recorder.stirred, set()
        known = self.rows["jobs"].keys()
        for key in [key for key in known - cluster.jobs.keys() if not key.startswith(LOOSE)]:
            yield key, None
        loose = {job_key(task) for task in cluster.without_job.values()}
        loose.update(key for key, row in self._loose.items() if not row.pods.keys() <= ON_NODE)  # no index hears of the end of such pods
        untold = cluster.jobs.keys() - known
        orphaned = (key for key, job in cluster.jobs.items() if job.group is None)  # the cluster's list of changes leaves out this change
        for key in sorted(stirred.union(touched.jobs, cluster.changed, loose, untold, orphaned)):
            why = self._recorder.jobs_why.get(key, "")
            row = self._loose_job(key, touched, why, amounting) if key.startswith(LOOSE) else self._job(cluster, key, why, amounting)
            yield key, _encode(row) if row is not None else None

    def _job(self, cluster: Cluster, key: str, why: str, amounting: Amounting) -> JobRow | None:
        job = cluster.jobs.get(key)
        return job_row(job, why, self.expected.get(key), amounting) if job is not None else None

    def _loose_job(self, key: str, touched: Touched, why: str, amounting: Amounting) -> JobRow | None:
        tasks, before = touched.loose(key), self._loose.pop(key, None)
        row = loose_row(tasks, why, amounting) if tasks else None
        if row is not None:
            self._loose[key] = row
        self._loose_changed |= row != before
        return row

    def _queues(self, cluster: Cluster, amounting: Amounting) -> Iterator[tuple[str, bytes | None]]:
        existing = {name: queue for name, queue in cluster.queues.items() if queue.exists}
        for gone in self.rows["queues"].keys() - existing.keys() - {NO_QUEUE}:
            yield gone, None
        nothing = np.zeros(cluster.dimensions.width)
        for name, queue in existing.items():
            deserved = self._recorder.deserved.get(name, queue.deserved if queue.deserves.any() else nothing)
            yield name, _encode(queue_row(queue, deserved, amounting))
        if self._loose_changed:
            self._loose_changed = False
            yield NO_QUEUE, _encode(no_queue_row(self._loose.values())) if self._loose else None


HISTORY_S = 3600.0
HISTORY_KEPT = 120  #: points; with many changes, a point stands for up to a minute


class Point(msgspec.Struct):
    at: float
    held: dict[str, Amounts]  #: by queue, from this moment until the next point


class History:
    """What queues held in the last hour: a point for each change, as long as there are few. Times are those of the cluster's clock. In the
    browser `history.js` goes on by the same rules."""

    def __init__(self) -> None:
        self.points: list[Point] = []

    def note(self, at: float, queues: dict[str, bytes]) -> None:
        held = {name: msgspec.json.decode(row, type=QueueRow).held for name, row in queues.items()}
        points = self.points
        if points and points[-1].held == held:
            return
        points.append(Point(at, held))
        while len(points) > 1 and points[1].at <= at - HISTORY_S:
            del points[0]
        if len(points) > HISTORY_KEPT:  # the two intervals that are the shortest together become one
            del points[min(range(1, len(points) - 1), key=lambda index: points[index + 1].at - points[index - 1].at)]

    def encoded(self) -> bytes:
        return _encode(self.points)
