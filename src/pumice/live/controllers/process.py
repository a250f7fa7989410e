"""One replica of the controllers, from its first request to its last: the election, the controllers, probes, signals.

Replicas that do not lead wait without reading the cluster, as with the scheduler.

Whether an endpoint answers, for the probes of JobFlows. It is called in the background; a controller gets the last result from memory.
A controller asks again every few seconds, so a result may be that old. The first result is no.
"""

import asyncio
import logging
import ssl
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import msgspec

from pumice import __version__
from pumice.api.kinds import LEASES, ObjectRef
from pumice.client.access import Access
from pumice.client.client import Client
from pumice.client.events import EventRecord, InvolvedObject
from pumice.client.leader_election import Election, LeaseCandidate, Term, new_identity
from pumice.client.rate_limit import ClientLimits
from pumice.controllers.controller import Controller
from pumice.controllers.registry import volcano_controllers
from pumice.controllers.volcano.hypernode import HyperNodeDiscovery
from pumice.controllers.volcano.job.controller import MAX_FAILURES
from pumice.controllers.volcano.job.plugins.ssh import rsa_key_pair
from pumice.controllers.volcano.jobflow import Probe, Reachable
from pumice.controllers.volcano.sharding import NodeShards
from pumice.http.listener import Listener
from pumice.http.pool import fetch
from pumice.live.clock import Clock, WallClock
from pumice.live.controllers.loop import Controllers
from pumice.live.controllers.metrics import CONTROLLERS, ControllerMetrics
from pumice.live.lifecycle import end_signal, first, while_leading
from pumice.live.pages import listeners, measures, probes

FRESH_S = 3.0
TIMEOUT_S = 3.0
REMEMBERED = 1000


class Prober:
    """Says whether the endpoint of a `Probe` answers. Enter it as an async context: it needs the running event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[Probe, tuple[bool, float]] = {}  #: the answer, and when it came
        self._asking: dict[Probe, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    def __call__(self, probe: Probe) -> bool:
        answered, at = self._known.get(probe, (False, float("-inf")))
        if self._clock.now() - at > FRESH_S and probe not in self._asking:
            self._asking[probe] = asyncio.get_running_loop().create_task(self._ask(probe))
        return answered

    async def _ask(self, probe: Probe) -> None:
        try:
            answered = await (self._connects(probe.url) if probe.url.startswith("tcp:") else self._answers(probe))
        finally:
            del self._asking[probe]
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[probe] = answered, self._clock.now()

    @staticmethod
    async def _answers(probe: Probe) -> bool:
        try:
            answer = await fetch(probe.url, headers=dict([probe.header]) if probe.header else None, timeout_s=TIMEOUT_S)
        except (OSError, ValueError):
            return False
        return 200 <= answer.status < 400

    @staticmethod
    async def _connects(url: str) -> bool:
        try:
            parts = urlsplit(url)
            async with asyncio.timeout(TIMEOUT_S):
                _, writer = await asyncio.open_connection(parts.hostname, parts.port)
        except (TimeoutError, OSError, ValueError):
            return False
        writer.close()
        return True


log = logging.getLogger(__name__)


class ControllerSettings(msgspec.Struct):
    """All settings that come from flags."""

    scheduler_names: tuple[str, ...] = ("volcano",)
    chosen: frozenset[str] | None = None  #: names of the controllers to run; None: all
    inherit_owner_annotations: bool = True
    gangs_of_others: bool = True
    max_failures: int = MAX_FAILURES  #: the most refused writes of a job in a row, then it is given up; -1: no limit
    discovery: HyperNodeDiscovery = msgspec.field(default_factory=HyperNodeDiscovery)
    sharding: NodeShards | None = None  #: None: nobody keeps NodeShards
    qps: float = 2000.0
    burst: float = 2000.0
    term: Term | None = None  #: None: no election
    lock: ObjectRef = ObjectRef("vc-controller-manager", "volcano-system")
    metrics_address: str = ""
    healthz_address: str = ""
    tls: ssl.SSLContext | None = None  #: of the health address


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
            controllers = self._controllers = Controllers(client, chosen_controllers(self._settings, reach), self._clock)
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
