"""Volcano's metrics of queues, computed when somebody scrapes.

What a queue deserves and may hold at most is computed by the plugin that shares out the cluster (proportion, capacity) at the opening of
each session (`entitlements`). Without such a plugin it is what the Queue object says.
"""

from collections.abc import Mapping

import numpy as np

from pumice.http.metrics import Family, Gauge
from pumice.scheduler.model import CPU, EPSILON, MEMORY, PODS, Cluster, Dimensions, Queue, Vector, dominant_share

PHASES = ("Inqueue", "Pending", "Running", "Unknown")
AMOUNTS = ("allocated", "request", "deserved", "capacity", "real_capacity", "inqueue")
UNITS = (("milli_cpu", CPU), ("memory_bytes", MEMORY))


class QueueMetrics:
    """The gauges of queues, by queue name."""

    def __init__(self) -> None:
        self.entitlements: Mapping[str, tuple[Vector, Vector]] = {}  #: by queue: what it deserves, and the most that it may hold
        self.families: list[Family] = []
        self._amounts = {(what, unit): self._named(f"{what}_{unit}", _label(what, unit)) for what in AMOUNTS for unit, _ in UNITS}
        self._scalars = {what: self._named(f"{what}_scalar_resources", _label(what, "of other resources"), "resource") for what in AMOUNTS}
        self._weight, self._share = self._named("weight", "Weight."), self._named("share", "Dominant share of what it deserves.")
        self._overused = self._named("overused", "1 if it holds all that it deserves, or more.")
        self._phases = {phase: self._named(f"pod_group_{phase.lower()}_count", f"PodGroups that are {phase}.") for phase in PHASES}

    def _named(self, what: str, text: str, *more: str) -> Gauge:
        gauge = Gauge(f"volcano_queue_{what}", text, ("queue_name", *more))
        self.families.append(gauge)
        return gauge

    def measure(self, cluster: Cluster) -> None:
        cluster.refresh_sums()
        queues = [queue for queue in cluster.queues.values() if queue.exists]
        amounts = {queue.name: self._of(queue, cluster.dimensions) for queue in queues}
        names = cluster.dimensions.names
        for number, what in enumerate(AMOUNTS):
            vectors = {name: amount[number] for name, amount in amounts.items()}
            for unit, column in UNITS:
                self._amounts[what, unit].replace({(name,): float(v[column]) for name, v in vectors.items() if v[column] < np.inf})
            others = [column for column in range(len(names)) if column not in (CPU, MEMORY, PODS)]
            values: dict[tuple[str, ...], float] = {
                (name, names[column]): float(v[column]) for name, v in vectors.items() for column in others if 0 < v[column] < np.inf
            }
            self._scalars[what].replace(values)
        self._weight.replace({(queue.name,): float(queue.weight) for queue in queues})
        self._share.replace({(name,): dominant_share(held, deserved) for name, (held, _, deserved, *_) in amounts.items()})
        self._overused.replace({(name,): float(_is_overused(held, deserved)) for name, (held, _, deserved, *_) in amounts.items()})
        for phase, gauge in self._phases.items():
            gauge.replace({(q.name,): float(sum(job.phase == phase for job in q.jobs.values())) for q in queues})

    def _of(self, queue: Queue, dimensions: Dimensions) -> tuple[Vector, ...]:
        """The amounts of a queue, in the order of AMOUNTS. A new resource may have made vectors longer since the session."""
        deserved, limit = self.entitlements.get(queue.name, (queue.deserved, queue.capability))
        return (
            queue.held,
            queue.held + queue.pending,
            dimensions.fitted(deserved),
            queue.capability,
            dimensions.fitted(limit, missing=np.inf),
            queue.inqueue,
        )


def _is_overused(held: Vector, deserved: Vector) -> bool:
    wanted = deserved >= EPSILON
    wanted[PODS] = False
    return bool(wanted.any() and (held[wanted] >= deserved[wanted] - EPSILON).all())


def _label(what: str, unit: str) -> str:
    return f"{what.capitalize().replace('_', ' ')} {unit.replace('_', ' ')}."
