"""ReplicaSets: as many active pods as their spec requests. ReplicationControllers are the same with a simpler selector."""

from collections.abc import Hashable

from pumice.api import Key, Object, kinds, spec_of, status_of
from pumice.api.json_objects import labels_of, terminating
from pumice.controllers.controller import NOTHING, Lister, Result, itself, result
from pumice.controllers.kubernetes.owned_pods import (
    active,
    available,
    claim,
    dispensable_first,
    free_names,
    from_template,
    its_claimants,
    ready,
)
from pumice.controllers.kubernetes.pod_writes import created, ended
from pumice.controllers.pod_bursts import MOST_WAITING, burst, complete, note, room
from pumice.controllers.writes import Write, status_change


class ReplicaSets:
    def __init__(self, kind: str = kinds.REPLICA_SET, most_waiting: int = MOST_WAITING) -> None:
        self.kind = kind
        self._most_waiting = most_waiting
        self.name = kind.partition(".")[0].lower()
        self.watches = {kind: itself, kinds.POD: its_claimants(kind)}

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, Key)
        owner = lister.get(self.kind, *key)
        if owner is None:
            return NOTHING
        pods, claims = claim(owner, kinds.POD, lister, active)
        free = room(owner, pods, self._most_waiting)
        status, next_ready = _status(owner, pods, now)
        missing = int(spec_of(owner).get("replicas", 1)) - len(pods)
        note(status, free == 0 and missing > 0, self._most_waiting, now)
        if missing <= 0:
            complete(status)
        writes = status_change(owner, status)  # first, as the creation of a pod may be refused
        if not terminating(owner):
            writes += [*claims, *_scale(owner, pods, free, lister)]
        return result(writes, [(next_ready, key)] if next_ready is not None else [])


def _scale(owner: Object, pods: list[Object], free: int, lister: Lister) -> list[Write]:
    missing = int(spec_of(owner).get("replicas", 1)) - len(pods)
    if missing == 0:
        return []
    if missing < 0:
        return ended(owner, dispensable_first(pods)[:-missing])
    template = spec_of(owner).get("template") or {}
    made = (from_template(owner, template, name) for name in free_names(owner, missing, lister))
    return created(owner, made, min(burst(len(pods)), free))


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
