"""The queues that must exist before any job is scheduled, in an embedded cluster."""

from pumice.api import Object
from pumice.api.defaults import required_queues
from pumice.cluster.apiserver import Store


def default_queues(store: Store) -> None:
    """Create the queues that Volcano creates when it starts, if they are missing."""
    for name, reclaimable in required_queues().items():
        if store.find("queues.scheduling.volcano.sh", "", name) is None:
            queue: Object = {"metadata": {"name": name}, "spec": {"weight": 1, "reclaimable": reclaimable}}
            store.create("queues.scheduling.volcano.sh", queue)
