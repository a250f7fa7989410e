"""One replica of the controllers, from its first request to its last: the election, the controllers, probes, signals.

Replicas that do not lead wait without reading the cluster, as with the scheduler.
"""

import logging
from contextlib import AsyncExitStack

import msgspec

from pumice import __version__
from pumice.api.kinds import LEASES, ObjectRef
from pumice.client.access import Access
from pumice.client.client import Client
from pumice.client.event_correlator import EventRecord, InvolvedObject
from pumice.client.leader_election import Election, LeaseCandidate, new_identity
from pumice.client.rate_limit import ClientLimits
from pumice.controllers.controller import Controller
from pumice.controllers.registry import volcano_controllers
from pumice.controllers.volcano.hypernode_discovery import HyperNodeDiscovery
from pumice.controllers.volcano.job.controller import MAX_FAILURES
from pumice.controllers.volcano.job.plugins.ssh import rsa_key_pair
from pumice.controllers.volcano.jobflow import Reachable
from pumice.controllers.volcano.sharding import NodeShards
from pumice.http.listener import Listener
from pumice.live.clock import WallClock
from pumice.live.controllers.loop import Controllers
from pumice.live.controllers.metrics import CONTROLLERS, ControllerMetrics
from pumice.live.controllers.prober import Prober
from pumice.live.health_and_metrics import listeners, measures, probes
from pumice.live.lifecycle import ReplicaSettings, end_signal, first, while_leading

log = logging.getLogger(__name__)


class ControllerSettings(ReplicaSettings):
    """All settings that come from flags."""

    scheduler_names: tuple[str, ...] = ("volcano",)
    chosen: frozenset[str] | None = None  #: names of the controllers to run; None: all
    inherit_owner_annotations: bool = True
    gangs_of_others: bool = True
    max_failures: int = MAX_FAILURES  #: the most refused writes of a job in a row, then it is given up; -1: no limit
    discovery: HyperNodeDiscovery = msgspec.field(default_factory=HyperNodeDiscovery)
    sharding: NodeShards | None = None  #: None: nobody keeps NodeShards
    lock: ObjectRef = ObjectRef("vc-controller-manager", "volcano-system")


def chosen_controllers(settings: ControllerSettings, reachable: Reachable) -> list[Controller]:
    """The controllers of Volcano's controller manager that the settings choose."""
    groups = settings.inherit_owner_annotations, settings.gangs_of_others
    named = settings.scheduler_names, settings.discovery
    found = volcano_controllers(rsa_key_pair, *named, reachable, *groups, settings.max_failures, settings.sharding)
    return [each for each in found if settings.chosen is None or each.name in settings.chosen]


class ControllerReplica:
    """One replica of the controllers, as a process. `serve` returns after SIGTERM or SIGINT, and raises LostLead."""

    def __init__(self, access: Access, settings: ControllerSettings) -> None:
        self._access = access
        self._settings = settings
        self._clock = WallClock()
        self._controllers: Controllers | None = None
        self._election: Election | None = None
        self._metrics = ControllerMetrics()

    async def serve(self) -> None:
        log.info("pumice %s controls %s for the schedulers %s", __version__, self._access.server, ", ".join(self._settings.scheduler_names))
        async with AsyncExitStack() as stack:
            limits = ClientLimits(self._settings.qps, self._settings.burst)
            client = await stack.enter_async_context(Client(self._access, limits=limits))
            for server in self._servers():
                await stack.enter_async_context(server)
            ended = stack.enter_context(end_signal())
            await first(self._work(client), ended.wait())

    async def _work(self, client: Client) -> None:
        term = self._settings.term
        if term is None:
            return await self._control(client)
        async with Client(self._access, user_agent="pumice/leader-election") as lease_client:
            election = self._election = Election(lease_client, LeaseCandidate(new_identity(), self._settings.lock, term))
            fenced = client.fenced(election.leading)
            return await while_leading(election, lambda: self._control(fenced, election.candidate.identity))

    async def _control(self, client: Client, identity: str = "") -> None:
        async with Prober(self._clock) as reach:
            chosen = chosen_controllers(self._settings, reach)
            controllers = self._controllers = Controllers(client, chosen, self._clock, made=self._metrics.note_made)
            self._metrics.leading.set(1, CONTROLLERS)
            if identity:
                lock = self._settings.lock
                regarding = InvolvedObject(LEASES.kind, lock.name, lock.namespace, "", LEASES.api_version)
                controllers.recorder.tell(EventRecord(regarding, "Normal", "LeaderElection", f"{identity} became leader"))
            try:
                await controllers.run()
            finally:
                self._metrics.leading.set(0, CONTROLLERS)

    # ---- HTTP endpoints

    def _servers(self) -> list[Listener]:
        settings = self._settings
        return listeners(settings.metrics_address, measures(self), settings.healthz_address, probes(self), settings.tls)

    def alive(self) -> str:
        lost = self._election is not None and self._election.candidate.lost
        return "the lead was lost" if lost else ""

    def ready(self) -> str:
        reading = self._controllers is not None and not self._controllers.synced.is_set()
        return self.alive() or ("the cluster is being read" if reading else "")

    def metrics(self) -> str:
        self._metrics.clock.set(self._clock.now(), CONTROLLERS)
        return self._metrics.page(self._controllers)
