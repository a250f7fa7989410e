"""The two queues that must exist before anything else: `root`, and the one for PodGroups that name none. Every replica makes them."""

from __future__ import annotations

import logging

from pumice.api.kinds import QUEUES, ObjectRef
from pumice.api.names import ROOT_QUEUE
from pumice.kube.errors import ApiError, KubeError
from pumice.kube.transport import Transport
from pumice.live.clock import Clock

TRIES = 60
log = logging.getLogger(__name__)


async def make_queues(transport: Transport, default_queue: str, clock: Clock) -> None:
    """Create them if they are not there. A server that has no queues at all is told of and done without."""
    for name, reclaimable in ((ROOT_QUEUE, False), (default_queue, True)):
        for left in reversed(range(TRIES)):
            try:
                await _make(transport, name, reclaimable)
                break
            except KubeError as error:
                log.log(logging.DEBUG if left else logging.ERROR, "queue %s was not made: %s", name, error)
                if isinstance(error, ApiError) and error.code == 404:
                    log.warning("this server has no queues (scheduling.volcano.sh is not installed)")
                    return
                if isinstance(error, ApiError) and error.code == 403:
                    log.warning("our role does not let us make queue %s, so it must be there: %s", name, error)
                    break
            await clock.sleep(1.0)


async def _make(transport: Transport, name: str, reclaimable: bool) -> None:
    try:
        await transport.get(QUEUES, ObjectRef(name))
        return
    except ApiError as error:
        if error.code != 404:
            raise
    try:
        await transport.create(QUEUES, queue_object(name, reclaimable), repeatable=True)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise


def queue_object(name: str, reclaimable: bool) -> dict[str, object]:
    return {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": reclaimable, "dequeueStrategy": "traverse", "guarantee": {}},
        "status": {"reservation": {}},
    }
