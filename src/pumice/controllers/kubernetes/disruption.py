"""PodDisruptionBudgets: how many of their pods may be evicted at this moment.

A budget in per cent refers to the pods that the workloads want, not to the pods that exist. An eviction that was granted
is remembered in `disruptedPods` until its pod is seen to be deleted.
"""

from collections.abc import Hashable, Iterable

from pumice.api import Key, Object, instant, key_of, kinds, name_of, namespace_of, rfc3339, spec_of, status_of, uid_of
from pumice.api.json_objects import condition, controller_of, labels_of, terminating
from pumice.api.kinds import kind_of
from pumice.api.selectors import label_selector, matches
from pumice.controllers.controller import NOTHING, Among, KeysOf, Lister, ObjectChange, Result, itself, result
from pumice.controllers.kubernetes.owned_pods import ENDED, phase, ready, share
from pumice.controllers.writes import status_change

FORGOTTEN_AFTER_S = 120.0  #: a granted eviction whose pod was not deleted within this time is forgotten
SCALED = (kinds.REPLICA_SET, kinds.STATEFUL_SET, kinds.REPLICATION_CONTROLLER, kinds.DEPLOYMENT)


class DisruptionBudgets:
    name = "disruption"

    def __init__(self) -> None:
        self.watches: dict[str, KeysOf] = {kinds.DISRUPTION_BUDGET: itself, kinds.POD: Among(kinds.DISRUPTION_BUDGET, _budgets_over)}

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, Key)
        budget = lister.get(kinds.DISRUPTION_BUDGET, *key)
        if budget is None or terminating(budget):
            return NOTHING
        selector = label_selector(spec_of(budget).get("selector"))
        everyone = lister.all(kinds.POD, key.namespace) if selector is not None else ()
        pods = [pod for pod in everyone if matches(selector or (), labels_of(pod)) and phase(pod) not in ENDED]
        disrupted, forget_at = _disrupted(budget, pods, now)
        expected, desired = _wanted(budget, pods, lister)
        healthy = sum(ready(pod) and not terminating(pod) and name_of(pod) not in disrupted for pod in pods)
        allowed = max(0, healthy - desired) if expected else 0
        status = {
            **status_of(budget),
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "disruptionsAllowed": allowed,
            "expectedPods": expected,
            "disruptedPods": disrupted or None,
            "observedGeneration": budget["metadata"].get("generation", 1),
            "conditions": [_condition(budget, allowed, now)],
        }
        return result(status_change(budget, status), [(forget_at, key)] if forget_at is not None else [])


def _wanted(budget: Object, pods: list[Object], lister: Lister) -> tuple[int, int]:
    """The number of pods that there should be, and the number that must stay healthy."""
    spec = spec_of(budget)
    least, most_gone = spec.get("minAvailable"), spec.get("maxUnavailable")
    if most_gone is not None:
        expected = _asked_for(pods, lister)
        return expected, max(0, expected - share(most_gone, expected, True))
    if isinstance(least, str):
        expected = _asked_for(pods, lister)
        return expected, share(least, expected, True)
    return len(pods), int(least or 0)


def _asked_for(pods: list[Object], lister: Lister) -> int:
    """The number of pods that the workloads of these pods want; other pods count as they are."""
    wanted: dict[str, int] = {}
    for pod in pods:
        workload = _scaled_by(pod, lister)
        if workload is not None:
            wanted[uid_of(workload)] = int(spec_of(workload).get("replicas", 1))
        else:
            wanted[uid_of(pod)] = 1
    return sum(wanted.values())


def _scaled_by(subject: Object, lister: Lister) -> Object | None:
    """The workload that says how many pods there shall be: of several ReplicaSets of a Deployment, that is the Deployment."""
    owner = controller_of(subject)
    found = lister.get(kind_of(owner), namespace_of(subject), owner["name"]) if owner is not None and kind_of(owner) in SCALED else None
    return None if found is None else _scaled_by(found, lister) or found


def _disrupted(budget: Object, pods: list[Object], now: float) -> tuple[dict[str, str], float | None]:
    """The granted evictions whose pods are still there, and when the first of them is forgotten."""
    there = {name_of(pod) for pod in pods if not terminating(pod)}
    granted: dict[str, str] = status_of(budget).get("disruptedPods") or {}
    waiting = {name: since for name, since in granted.items() if name in there and now < instant(since) + FORGOTTEN_AFTER_S}
    return waiting, min((instant(since) + FORGOTTEN_AFTER_S for since in waiting.values()), default=None)


def _condition(budget: Object, allowed: int, now: float) -> Object:
    values = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    before = condition(budget, "DisruptionAllowed") or {}
    since = before.get("lastTransitionTime") if before.get("status") == values[0] else None
    generation = budget["metadata"].get("generation", 1)
    entry = {"type": "DisruptionAllowed", "status": values[0], "reason": values[1], "message": "", "observedGeneration": generation}
    return {**entry, "lastTransitionTime": since or rfc3339(now)}


def _budgets_over(change: ObjectChange, lister: Lister) -> Iterable[Key]:
    for budget in lister.all(kinds.DISRUPTION_BUDGET, namespace_of(change.object)):
        selector = label_selector(spec_of(budget).get("selector"))
        if selector is not None and any(matches(selector, labels_of(state)) for state in change.states):
            yield key_of(budget)
