"""Rules for PodGroups: a PodGroup without a queue, or in the default queue, gets its namespace's queue; and the queue must be open."""

from collections.abc import Iterator

from pumice.api import Object, annotations as key, kinds, namespace_of, spec_of, status_of
from pumice.api.defaults import DEFAULT_QUEUE
from pumice.api.json_objects import annotations_of, copied
from pumice.controllers.admission.problem import Problem, Settings
from pumice.controllers.controller import Lister
from pumice.controllers.volcano.queue import OPEN


def mutate(group: Object, lister: Lister, settings: Settings) -> Object:
    if spec_of(group).get("queue") not in (None, "", DEFAULT_QUEUE):
        return group
    namespace = lister.get(kinds.NAMESPACE, "", namespace_of(group))
    result: Object = copied(group)
    named = annotations_of(namespace).get(key.QUEUE_NAME) if namespace else None
    result.setdefault("spec", {})["queue"] = named or DEFAULT_QUEUE
    return result


def validate(operation: str, new: Object | None, old: Object | None, lister: Lister, settings: Settings) -> list[Problem]:
    assert new is not None
    spec = spec_of(new)
    problems = [
        *open_queue(spec.get("queue") or DEFAULT_QUEUE, lister, "PodGroup"),
        *topology(spec.get("networkTopology"), "spec.networkTopology"),
    ]
    for index, policy in enumerate(spec.get("subGroupPolicy") or ()):
        problems.extend(topology(policy.get("networkTopology"), f"spec.subGroupPolicy[{index}].networkTopology"))
    return problems


def open_queue(name: str, lister: Lister, what: str) -> Iterator[Problem]:
    """The problems with the queue of new work: it must exist and be open."""
    queue = lister.get(kinds.QUEUE, "", name)
    if queue is None:
        yield Problem("spec.queue", f"unable to find queue: `{name}` does not exist; create it or name another")
    elif status_of(queue).get("state") != OPEN:
        state = f"status is `{status_of(queue)['state']}`" if status_of(queue).get("state") else "is not open yet"
        message = f"can only submit {what} to queue with state `{OPEN}`, queue `{name}` {state}"
        yield Problem("spec.queue", f"{message}; open it or name another")


def topology(network: Object | None, field: str) -> Iterator[Problem]:
    if network and network.get("highestTierAllowed") is not None and network.get("highestTierName"):
        yield Problem(field, "highestTierAllowed and highestTierName say the same; write one of them")
