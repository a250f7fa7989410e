"""The two queues that must exist before any job is scheduled: `root`, and the queue of PodGroups that name none.

Every replica creates them. Webhooks of queues that do not answer yet, or definitions that are installed after us, may keep them away for
minutes: everything else starts meanwhile. A replica is not ready before, so that whoever waits for an installation finds the queues; but
webhooks that never answer must not hold it back for good. Who leads makes them again if they vanish, as when the definitions are replaced.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import count

from pumice.api.defaults import required_queues
from pumice.api.kinds import QUEUES, ObjectRef
from pumice.client.client import Backoff
from pumice.client.failures import ApiError, KubeError, despite
from pumice.client.transport import Transport
from pumice.live.clock import Clock
from pumice.scheduler.model import Cluster

RETRY = Backoff(1.0, 5.0)
UNTOLD = 4  #: tries of which nothing is told: webhooks that are installed with us answer a little later
READY_WITHOUT_S = 120.0  #: how long readiness waits for them
LOOKED_FOR_EVERY_S = 30.0
log = logging.getLogger(__name__)


async def make_queues(transport: Transport, default_queue: str, clock: Clock) -> bool:
    """Create the two queues if they do not exist, however often that fails. Whether our role lets us."""
    allowed = True
    for name, reclaimable in required_queues(default_queue).items():
        for tries in count():
            try:
                await _make(transport, name, reclaimable)
                if tries > UNTOLD:
                    log.info("queue %s is there", name)
                break
            except KubeError as error:
                if isinstance(error, ApiError) and error.code == 403:
                    log.warning("our role does not let us make queue %s, so it must be there: %s", name, error)
                    allowed = False
                    break
                level = logging.WARNING if tries == UNTOLD else logging.DEBUG
                log.log(level, "queue %s was not made, and is tried again and again: %s", name, error)
                await clock.sleep(RETRY.delay_s(tries, 1.0))
    return allowed


async def awaited(making: asyncio.Task[bool]) -> None:
    """Wait for the queues for as long as readiness does."""
    done, _ = await asyncio.wait([making], timeout=READY_WITHOUT_S)
    if not done:
        log.warning("the first queues could not be made for %.0f s: this replica is ready without them", READY_WITHOUT_S)


def is_lacking(default_queue: str, cluster: Cluster) -> bool:
    return any(name not in cluster.queues or not cluster.queues[name].exists for name in required_queues(default_queue))


async def keep_queues(making: asyncio.Task[bool], make: Callable[[], Awaitable[bool]], lacking: Callable[[], bool], clock: Clock) -> None:
    """Once the two queues have been made, make them again whenever one is gone."""
    allowed = await making
    while True:
        await clock.sleep(LOOKED_FOR_EVERY_S)
        if allowed and lacking():
            allowed = await make()


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
