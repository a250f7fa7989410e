"""How far a rolling update may go in one step: never fewer available pods than allowed, never more pods than allowed.

Pure arithmetic on the sizes of ReplicaSets; `deployment` turns its answers into writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pumice.controllers.workloads.pods import share


class Size(NamedTuple):
    """A ReplicaSet as the arithmetic sees it."""

    replicas: int  #: asked for
    available: int


class Limits(NamedTuple):
    replicas: int
    max_surge: int
    max_unavailable: int

    @property
    def min_available(self) -> int:
        return max(0, self.replicas - self.max_unavailable)


def limits(replicas: int, strategy: Any) -> Limits:
    """From the fields of a Deployment; a rollout that could not move may take one pod away."""
    rolling = (strategy or {}).get("rollingUpdate") or {}
    stated = {name: "25%" if rolling.get(name) is None else rolling[name] for name in ("maxSurge", "maxUnavailable")}
    surge, unavailable = share(stated["maxSurge"], replicas, True), share(stated["maxUnavailable"], replicas, False)
    return Limits(replicas, surge, min(replicas, unavailable or (0 if surge else 1)))


def grown(new: Size, old: Sequence[Size], within: Limits) -> int:
    """The size that the new set may have now."""
    if new.replicas > within.replicas:
        return within.replicas
    room = within.replicas + within.max_surge - new.replicas - sum(size.replicas for size in old)
    return new.replicas + max(0, min(room, within.replicas - new.replicas))


def shrunk(new: Size, old: Sequence[Size], within: Limits) -> list[int]:
    """The sizes that the old sets, oldest first, may have now: pods that serve nobody go first."""
    sizes = [size.replicas for size in old]
    total = new.replicas + sum(sizes)
    spare = total - within.min_available - (new.replicas - new.available)
    for index, size in enumerate(old):
        useless = max(0, min(spare, sizes[index] - size.available))
        sizes[index] -= useless
        spare -= useless
    serving = new.available + sum(min(size.available, left) for size, left in zip(old, sizes, strict=True)) - within.min_available
    for index in range(len(sizes)):
        taken = max(0, min(spare, serving, sizes[index]))
        sizes[index] -= taken
        spare, serving = spare - taken, serving - taken
    return sizes
