"""Whether admission allows a changed queue: advice that Volcano's webhooks refuse is no advice."""

from collections.abc import Iterable, Iterator
from typing import cast

from pumice.answers.trial_cluster import TrialCluster
from pumice.api import InputError, Object
from pumice.api.json_objects import field
from pumice.api.structs import document
from pumice.api.volcano import Queue
from pumice.controllers import admission
from pumice.controllers.controller import Lister
from pumice.scheduler.model import Cluster


def is_allowed(cluster: Cluster, before: Queue, after: Queue) -> bool:
    """Whether admission lets a queue become like `after`, beside the other queues as they are now."""
    return not _problems(cluster, before, after)


def _problems(cluster: Cluster, before: Queue, after: Queue) -> list[str]:
    queues = (queue.wire for queue in cluster.queues.values() if queue.wire is not None)
    lister = _Queues(document("Queue", after if queue.metadata.name == after.metadata.name else queue) for queue in queues)
    found = admission.validate(admission.UPDATE, document("Queue", after), document("Queue", before), cast("Lister", lister))
    return [f"queue {after.metadata.name}: {each}" for each in found]


def _changed(trial: TrialCluster) -> list[tuple[Queue, Queue]]:
    """The queues that were changed, before and after."""
    queues = trial.cluster.queues
    changed = ((before, queues[name].wire) for name, before in trial.queues_before.items() if name in queues)
    return [(before, after) for before, after in changed if after is not None]


def all_allowed(trial: TrialCluster) -> bool:
    """Whether admission allows all changes that were made to queues."""
    return all(is_allowed(trial.cluster, before, after) for before, after in _changed(trial))


def refuse_wrong_queues(trial: TrialCluster) -> None:
    """Raise InputError if admission refuses a change that was made to a queue, other than for what was wrong with the queue before."""
    for before, after in _changed(trial):
        known = _problems(trial.cluster, before, before)
        if new := [each for each in _problems(trial.cluster, before, after) if each not in known]:
            raise InputError("; ".join(new), where="--queue")


class _Queues:
    """As much of a Lister as the admission of queues needs."""

    def __init__(self, queues: Iterable[Object]) -> None:
        self._queues = {queue["metadata"]["name"]: queue for queue in queues}

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        return self._queues.get(name)

    def all(self, kind: str, namespace: str | None = None) -> Iterator[Object]:
        return iter(self._queues.values())

    def by_field(self, kind: str, path: str, value: str) -> Iterator[Object]:
        return (queue for queue in self._queues.values() if (field(queue, path) or "") == value)
