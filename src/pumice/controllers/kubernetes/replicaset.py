"""ReplicaSets: as many active pods as asked for. ReplicationControllers are the same with a simpler selector."""

from __future__ import annotations

from collections.abc import Hashable

from pumice.controllers import kinds
from pumice.controllers.controller import NOTHING, Result, itself, result
from pumice.controllers.kubernetes.adoption import claim, its_claimants
from pumice.controllers.kubernetes.pods import active, available, created, dispensable_first, ended, free_names, from_template, ready
from pumice.controllers.objects import Key, Object, labels_of, spec_of, status_of, terminating
from pumice.controllers.world import World
from pumice.controllers.writes import Write, status_change


class ReplicaSets:
    """Keeps the number of pods of one kind of set."""

    def __init__(self, kind: str = kinds.REPLICA_SET) -> None:
        self.kind = kind
        self.name = kind.partition(".")[0].lower()
        self.watches = {kind: itself, kinds.POD: its_claimants(kind)}

    def reconcile(self, key: Hashable, world: World, now: float) -> Result:
        assert isinstance(key, Key)
        owner = world.get(self.kind, *key)
        if owner is None:
            return NOTHING
        pods, claims = claim(owner, kinds.POD, world, active)
        status, next_ready = _status(owner, pods, now)
        writes = [] if terminating(owner) else [*claims, *_scale(owner, pods, world)]
        later = [(next_ready, key)] if next_ready is not None else []
        return result([*writes, *status_change(owner, status)], later)


def _scale(owner: Object, pods: list[Object], world: World) -> list[Write]:
    missing = int(spec_of(owner).get("replicas", 1)) - len(pods)
    if missing <= 0:
        return ended(owner, dispensable_first(pods)[: -missing or 0])
    template = spec_of(owner).get("template") or {}
    return created(owner, (from_template(owner, template, name) for name in free_names(owner, missing, world)))


def _status(owner: Object, pods: list[Object], now: float) -> tuple[Object, float | None]:
    wanted = (spec_of(owner).get("template") or {}).get("metadata", {}).get("labels") or {}
    count, next_ready = available(pods, float(spec_of(owner).get("minReadySeconds") or 0), now)
    counts = {
        "replicas": len(pods),
        "fullyLabeledReplicas": sum(wanted.items() <= labels_of(pod).items() for pod in pods),
        "readyReplicas": sum(map(ready, pods)),
        "availableReplicas": count,
    }
    stored = status_of(owner)
    stated = {name: value for name, value in counts.items() if value or name in stored or name == "replicas"}
    return {**stored, **stated, "observedGeneration": owner["metadata"].get("generation", 1)}, next_ready
