"""One replica of the controllers, from its first request to its last: the election, the controllers, probes, signals.

Replicas that do not lead wait without reading the cluster, as with the scheduler.
"""

from __future__ import annotations

import logging
import ssl
from contextlib import AsyncExitStack

import msgspec

from pumice import __version__
from pumice.api.kinds import LEASES, ObjectRef
from pumice.controllers.controller import Controller
from pumice.controllers.flow.progress import Reachable
from pumice.controllers.hypernode_discovery import HyperNodeDiscovery
from pumice.controllers.job.controller import MAX_FAILURES
from pumice.controllers.keys import rsa_key_pair
from pumice.controllers.registry import volcano_controllers
from pumice.kube.access import Access
from pumice.kube.client import Client, Limits
from pumice.kube.election import Election, new_identity
from pumice.kube.events import Occurrence, Regarding
from pumice.kube.lease import Candidate, Term
from pumice.live.clock import WallClock
from pumice.live.controller_metrics import ControllerMetrics
from pumice.live.controllers import Controllers
from pumice.live.health import listeners, measures, probes
from pumice.live.reach import Reach
from pumice.live.running import first, told_to_end, while_leading
from pumice.web.listener import Listener

log = logging.getLogger(__name__)


class Settings(msgspec.Struct):
    """Everything that flags say."""

    scheduler_names: tuple[str, ...] = ("volcano",)
    chosen: frozenset[str] | None = None  #: names of the controllers to run; None: all
    inherit_owner_annotations: bool = True
    max_failures: int = MAX_FAILURES  #: of a job's writes in a row; -1 for as many as there are
    discovery: HyperNodeDiscovery = msgspec.field(default_factory=HyperNodeDiscovery)
    qps: float = 2000.0
    burst: float = 2000.0
    term: Term | None = None  #: None: no election
    lock: ObjectRef = ObjectRef("vc-controller-manager", "volcano-system")
    metrics_address: str = ""
    healthz_address: str = ""
    tls: ssl.SSLContext | None = None  #: of the health address


def chosen_controllers(settings: Settings, reachable: Reachable) -> list[Controller]:
    """Those that the settings name, of what Volcano's controller manager runs."""
    inherit, failures = settings.inherit_owner_annotations, settings.max_failures
    found = volcano_controllers(rsa_key_pair, settings.scheduler_names, settings.discovery, reachable, inherit, failures)
    return [each for each in found if settings.chosen is None or each.name in settings.chosen]


class ControllerReplica:
    """`serve` returns when it was told to end, and raises LostLead."""

    def __init__(self, access: Access, settings: Settings) -> None:
        self._access = access
        self._settings = settings
        self._clock = WallClock()
        self._controllers: Controllers | None = None
        self._election: Election | None = None
        self._metrics = ControllerMetrics()

    async def serve(self) -> None:
        log.info("pumice %s controls %s for the schedulers %s", __version__, self._access.server, ", ".join(self._settings.scheduler_names))
        async with AsyncExitStack() as stack:
            limits = Limits(self._settings.qps, self._settings.burst)
            client = await stack.enter_async_context(Client(self._access, limits=limits))
            for server in self._servers():
                await stack.enter_async_context(server)
            ended = stack.enter_context(told_to_end())
            await first(self._work(client), ended.wait())

    async def _work(self, client: Client) -> None:
        term = self._settings.term
        if term is None:
            return await self._control(client)
        async with Client(self._access, user_agent="pumice/leader-election") as lease_client:
            election = self._election = Election(lease_client, Candidate(new_identity(), self._settings.lock, term))
            fenced = client.fenced(election.leading)
            return await while_leading(election, lambda: self._control(fenced, election.candidate.identity))

    async def _control(self, client: Client, identity: str = "") -> None:
        async with Reach(self._clock) as reach:
            controllers = self._controllers = Controllers(client, chosen_controllers(self._settings, reach), self._clock)
            self._metrics.leading.set(1)
            if identity:
                lock = self._settings.lock
                regarding = Regarding(LEASES.kind, lock.name, lock.namespace, "", LEASES.api_version)
                controllers.recorder.tell(Occurrence(regarding, "Normal", "LeaderElection", f"{identity} became leader"))
            try:
                await controllers.run()
            finally:
                self._metrics.leading.set(0)

    # ---- what is asked over HTTP

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
        return self._metrics.page(self._controllers)
