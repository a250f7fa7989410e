"""What is read off the cluster at each step of the series: fragments of its GPUs, and how far its queues are from what they deserve.

Both hold from the last event before the step. Typical pods are the most frequent kinds among the jobs that have come so far. A queue
deserves what its `deserved` says; where no queue says anything, its part by weight of what the cluster has, and what others do not ask for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.resources import CPU, MEMORY, Vector
from pumice.scheduler.plugins.packing.cards import GPU_MILLI, WHOLE, Ask, Cards, Column, Lefts, PodShape, TypicalPods
from pumice.simulate.objects import Amounts, amounts_of
from pumice.simulate.series import Series, SeriesKey
from pumice.simulate.work import Role


class Gauges:
    """Fragments and fairness, read at each step of the series."""

    def __init__(self, cluster: Cluster, series: Series, now: float) -> None:
        self.cluster, self._series = cluster, series
        self._kinds: Counter[PodShape] = Counter()
        self._typical: TypicalPods | None = None
        self._queues: dict[str, None] = {}  #: of the jobs that have come
        series.signal(SeriesKey("fairness"), now).set(now, 1.0)
        series.signal(SeriesKey("fragmentation", "gpu"), now)

    def came(self, queue: str, roles: Iterable[Role]) -> None:
        """A job came to the queue, with these pods."""
        self._queues[queue] = self._typical = None
        for role in roles:
            self._kinds[kind_of(role)] += role.count

    def read(self, now: float) -> None:
        """How it has been since `now`."""
        self._read_fragments(now)
        self._read_queues(now)

    def _read_fragments(self, now: float) -> None:
        left = left_on_cards(self.cluster)
        if left.any():
            if self._typical is None:
                self._typical = TypicalPods(self._kinds)
            fragments = self._typical.fragments(self.cluster.nodes.idle[CPU], left)
            self._series.signal(SeriesKey("fragmentation", "gpu"), now).set(now, float(fragments.sum()) / WHOLE)
        else:
            self._series.signal(SeriesKey("fragmentation", "gpu"), now).set(now, 0.0)

    def _read_queues(self, now: float) -> None:
        """Of GPUs if there are any, else of CPUs."""
        value = self._series.value
        resource = "gpu" if value(SeriesKey("capacity", "gpu")) else "cpu"
        names = list(self._queues)
        asked, held = (np.array([value(SeriesKey(series, resource, name)) for name in names]) for series in ("asked", "held"))
        deserved = self._deserved(resource, names, value(SeriesKey("capacity", resource)), asked)
        for name, amount in zip(names, deserved.tolist(), strict=True):
            self._series.signal(SeriesKey("deserved", resource, name), now).set(now, amount)
        more = (held - np.minimum(deserved, asked))[asked > 0]
        self._series.signal(SeriesKey("fairness"), now).set(now, jains_index(more))
        for name, amount in zip(names, (held - np.minimum(deserved, asked)).tolist(), strict=True):
            self._series.signal(SeriesKey("fairness", resource, name), now).set(now, amount)

    def _deserved(self, resource: str, names: list[str], capacity: float, asked: Column) -> Column:
        queues = [self.cluster.queue(name) for name in names]
        if any(queue.deserves.any() for queue in queues):
            return np.array([getattr(counted(self.cluster, queue.deserved), resource) for queue in queues])
        return by_weight(capacity, asked, [queue.weight for queue in queues])


@lru_cache(maxsize=4096)
def kind_of(role: Role) -> PodShape:
    """What tells its pods apart where fragments are counted."""
    amounts = amounts_of(role)
    milli = round(amounts.gpu * WHOLE)
    ask = Ask() if not milli else Ask(1, float(milli)) if milli < WHOLE else Ask(int(milli // WHOLE), WHOLE)
    return PodShape(amounts.cpu * 1000, ask)


def left_on_cards(cluster: Cluster) -> Lefts:
    """Thousandths left [n, card]: of cards in parts where the cluster has such, else of whole ones."""
    if GPU_MILLI in cluster.dimensions.columns:
        return cluster.index(Cards).left
    whole = [cluster.nodes.idle[column] / 1000 for name, column in cluster.dimensions.columns.items() if name.endswith("/gpu")]
    idle: Column = np.sum(whole, axis=0) if whole else np.zeros(len(cluster.nodes))
    return np.where(np.arange(int(idle.max(initial=0))) < idle[:, None], WHOLE, 0.0)


def counted(cluster: Cluster, amounts: Vector) -> Amounts:
    """Whole CPUs, bytes and whole GPUs of a vector."""
    columns = cluster.dimensions.columns
    gpus = sum(float(amounts[column]) for name, column in columns.items() if name.endswith("/gpu"))
    gpus += float(amounts[columns[GPU_MILLI]]) / 1000 if GPU_MILLI in columns else 0.0
    return Amounts(float(amounts[CPU]) / 1000, float(amounts[MEMORY]), gpus / 1000)


def by_weight(capacity: float, asked: Column, weights: list[int]) -> Column:
    """The part of each by weight, none more than it asks for: what one does not want is for the others."""
    shares, left, weight = np.zeros(len(asked)), capacity, sum(weights)
    for index in sorted(range(len(asked)), key=lambda index: asked[index] / max(weights[index], 1)):
        shares[index] = min(asked[index], left * weights[index] / max(weight, 1))
        left, weight = left - shares[index], weight - weights[index]
    return shares


def jains_index(values: Column) -> float:
    """1 if all are equal, 1/n if only one of n is not 0."""
    squares = float((values**2).sum())
    return float(values.sum()) ** 2 / (len(values) * squares) if squares else 1.0
