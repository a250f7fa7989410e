"""How far a rolling update may go in one step: never fewer available pods than allowed, never more pods than allowed.

This is pure arithmetic on the sizes of ReplicaSets; the controller of Deployments turns its results into writes.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pumice.controllers.kubernetes.owned_pods import share


class Size(NamedTuple):
    """The size of a ReplicaSet: its replicas, and how many pods are available."""

    replicas: int  #: the replicas in its spec
    available: int


class RolloutLimits(NamedTuple):
    replicas: int
    max_surge: int
    max_unavailable: int

    @property
    def min_available(self) -> int:
        return max(0, self.replicas - self.max_unavailable)


def limits(replicas: int, strategy: Any) -> RolloutLimits:
    """The limits of a Deployment's rollout, from its fields. If both surge and unavailable pods are 0, one pod may be unavailable."""
    rolling = (strategy or {}).get("rollingUpdate") or {}
    stated = {name: "25%" if rolling.get(name) is None else rolling[name] for name in ("maxSurge", "maxUnavailable")}
    surge, unavailable = share(stated["maxSurge"], replicas, True), share(stated["maxUnavailable"], replicas, False)
    return RolloutLimits(replicas, surge, min(replicas, unavailable or (0 if surge else 1)))


def grown(new: Size, old: Sequence[Size], within: RolloutLimits) -> int:
    """The size that the new ReplicaSet may have now."""
    if new.replicas > within.replicas:
        return within.replicas
    room = within.replicas + within.max_surge - new.replicas - sum(size.replicas for size in old)
    return new.replicas + max(0, min(room, within.replicas - new.replicas))


def shrunk(new: Size, old: Sequence[Size], within: RolloutLimits) -> list[int]:
    """The sizes that the old ReplicaSets, oldest first, may have now: pods that are not available go first."""
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
