"""The two queues that must exist before any job is scheduled: `root`, and the queue of PodGroups that name none.

Every replica creates them. Webhooks of queues that do not answer yet may keep them away for minutes: everything else starts meanwhile.
A replica is not ready before, so that whoever waits for an installation finds the queues; but webhooks that never answer must not hold it
back for good.
"""

import asyncio
import logging
from itertools import count

from pumice.api.defaults import required_queues
from pumice.api.kinds import QUEUES, ObjectRef
from pumice.client.client import Backoff
from pumice.client.failures import ApiError, KubeError, despite
from pumice.client.transport import Transport
from pumice.live.clock import Clock

RETRY = Backoff(1.0, 5.0)
UNTOLD = 4  #: tries of which nothing is told: webhooks that are installed with us answer a little later
READY_WITHOUT_S = 120.0  #: how long readiness waits for them
log = logging.getLogger(__name__)


async def make_queues(transport: Transport, default_queue: str, clock: Clock) -> None:
    """Create the two queues if they do not exist, however often that fails. A server without the kind Queue is logged, and the scheduler
    goes on without queues."""
    for name, reclaimable in required_queues(default_queue).items():
        for tries in count():
            try:
                await _make(transport, name, reclaimable)
                if tries > UNTOLD:
                    log.info("queue %s is there", name)
                break
            except KubeError as error:
                if isinstance(error, ApiError) and error.code == 404:
                    log.warning("this server has no queues (scheduling.volcano.sh is not installed)")
                    return
                if isinstance(error, ApiError) and error.code == 403:
                    log.warning("our role does not let us make queue %s, so it must be there: %s", name, error)
                    break
                level = logging.WARNING if tries == UNTOLD else logging.DEBUG
                log.log(level, "queue %s was not made, and is tried again and again: %s", name, error)
                await clock.sleep(RETRY.delay_s(tries, 1.0))


async def awaited(making: asyncio.Task[None]) -> None:
    """Wait for the queues for as long as readiness does."""
    done, _ = await asyncio.wait([making], timeout=READY_WITHOUT_S)
    if not done:
        log.warning("the first queues could not be made for %.0f s: this replica is ready without them", READY_WITHOUT_S)


async def _make(transport: Transport, name: str, reclaimable: bool) -> None:
    with despite(404):
        await transport.get(QUEUES, ObjectRef(name))
        return
    with despite("AlreadyExists"):
        await transport.create(QUEUES, queue_object(name, reclaimable), repeatable=True)


def queue_object(name: str, reclaimable: bool) -> dict[str, object]:
    return {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": reclaimable, "dequeueStrategy": "traverse", "guarantee": {}},
        "status": {"reservation": {}},
    }
