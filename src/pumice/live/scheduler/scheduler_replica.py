"""One replica of the scheduler, from its first request to its last: queues, the election, the scheduler, probes, signals.

Replicas that do not lead wait without reading the cluster. A new leader reads it afresh, so that it knows everything that its predecessor
wrote. Every write of the scheduler asks the fence of the election. A replica that loses the lead ends, and is started again from outside.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pumice import __version__, garbage_collection
from pumice.api import InputError
from pumice.api.kinds import LEASES, ObjectRef
from pumice.api.plural import counted
from pumice.client.access import Access
from pumice.client.client import Client
from pumice.client.event_correlator import EventRecord, InvolvedObject
from pumice.client.failures import KubeError
from pumice.client.leader_election import Election, LeaseCandidate, Term, new_identity
from pumice.client.rate_limit import ClientLimits
from pumice.client.transport import as_dict
from pumice.http.listener import Handler, Listener
from pumice.http.messages import Request, Response, Stream
from pumice.inputs.recording.state_file import dump
from pumice.live.clock import WallClock
from pumice.live.health_and_metrics import insights, listeners, probes
from pumice.live.lifecycle import ReplicaSettings, end_signal, first, while_leading
from pumice.live.scheduler.background_answers import PATH, FitQuestions, Forecasts, Headlines
from pumice.live.scheduler.config_reloader import Reloader
from pumice.live.scheduler.debug_pod import POD_PATH, pod_memory
from pumice.live.scheduler.http_world import HttpWorld
from pumice.live.scheduler.live_world import LiveWorld
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.metrics import SCHEDULER, LiveMetrics
from pumice.live.scheduler.options import UNSHARDED, Options
from pumice.live.scheduler.required_queues import awaited, is_lacking, keep_queues, make_queues
from pumice.live.scheduler.single_writer import on_a_thread
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import Cluster

if TYPE_CHECKING:
    from pumice.live.scheduler.black_box import BlackBox
    from pumice.live.scheduler.shadow import Shadow
    from pumice.live.scheduler.shadow_comparison import Comparison

PATIENCE_S = 5.0  #: how long the start waits for them
log = logging.getLogger(__name__)
SCRAPES_WAIT_S = 2.0  #: how long a scrape waits for the end of a cycle; after that, gauges of jobs and queues show their last values
HUNG_S = 600.0  #: a cycle that takes longer than this counts as hung
Beside = Callable[[Scheduler, Client], AbstractAsyncContextManager[object]]
WhileWaiting = Callable[[Client, Callable[[], str]], AbstractAsyncContextManager[object]]


def sizes_in_words(cluster: Cluster) -> str:
    sizes = {"node": len(cluster.nodes), "pod": len(cluster.tasks), "job": len(cluster.jobs), "queue": len(cluster.queues)}
    return ", ".join(counted(size, word) for word, size in sizes.items())


class SchedulerSettings(ReplicaSettings):
    """All settings that come from flags."""

    options: Options
    load: Callable[[], Policy]  #: reads the configuration. Raises InputError
    configuration: Callable[[], str]  #: returns the text of the configuration
    met: Callable[[str], bool] = lambda version: False  #: gets the version of the API server; whether the configuration is to be read anew
    conf_path: str = ""
    lock: ObjectRef = ObjectRef("volcano", "volcano-system")
    dump_folder: str = ""  #: where SIGUSR1 and SIGUSR2 write the state; empty: nowhere
    record: str = ""  #: the folder of the black box; empty: none
    record_bytes: int = 256 << 20  #: the most that the black box may take
    beside: Beside | None = None  #: makes a context that is open for as long as the scheduler works
    waiting: WhileWaiting | None = None  #: makes one that is open for as long as another replica leads; it is given who leads


class Replica:
    """One replica of the scheduler, as a process. `serve` returns after SIGTERM or SIGINT, and raises LostLead."""

    def __init__(self, access: Access, settings: SchedulerSettings) -> None:
        self._access = access
        self._settings = settings
        self._clock = WallClock()
        self._metrics = LiveMetrics()
        self._scheduler: Scheduler | None = None
        self._questions: FitQuestions | None = None
        self._shadow: Shadow | None = None
        self._election: Election | None = None
        self._making: asyncio.Task[bool] | None = None  #: makes the first queues
        self._queues: asyncio.Task[None] | None = None  #: ends when readiness has waited for the first queues
        self._writing: asyncio.Future[None] | None = None  #: the task that writes the state into a file

    async def serve(self) -> None:
        policy, options = self._settings.load(), self._settings.options
        log.info(
            "pumice %s schedules the pods of %s at %s, by %s%s",
            __version__,
            ", ".join(options.schedulers),
            self._access.server,
            self._settings.conf_path or "the built-in configuration",
            f", of {options.sharding.share} alone; the rest is compared" if options.sharding.share else "",
        )
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(Client(self._access, limits=ClientLimits(self._settings.qps, self._settings.burst)))
            for server in self._servers():
                await stack.enter_async_context(server)
            dumping = dict.fromkeys((signal.SIGUSR1, signal.SIGUSR2), self._begin_state) if self._settings.dump_folder else {}
            ended = stack.enter_context(end_signal(dumping))
            await first(self._work(client, policy), ended.wait())

    async def _work(self, client: Client, policy: Policy) -> None:
        async with AsyncExitStack() as stack:
            if policy.reads_volcano:
                making = self._making = asyncio.create_task(make_queues(client, self._settings.options.default_queue, self._clock))
                self._queues = asyncio.create_task(awaited(making))
                stack.callback(making.cancel)
                stack.callback(self._queues.cancel)
                await asyncio.wait([making], timeout=PATIENCE_S)
            if self._settings.term is None:
                return await self._schedule(client, policy)
            lease_client = await stack.enter_async_context(Client(self._access, user_agent="pumice/leader-election"))
            return await self._lead(client, lease_client, policy, self._settings.term)

    async def _lead(self, client: Client, lease_client: Client, policy: Policy, term: Term) -> None:
        election = self._election = Election(lease_client, LeaseCandidate(new_identity(), self._settings.lock, term))
        fenced = client.fenced(election.leading)
        async with AsyncExitStack() as waiting:
            if self._settings.waiting is not None:
                await waiting.enter_async_context(self._settings.waiting(lease_client, lambda: election.candidate.leader))

            async def work() -> None:
                await waiting.aclose()
                await self._schedule(fenced, policy, election.candidate.identity)

            await while_leading(election, work)

    async def _schedule(self, client: Client, policy: Policy, identity: str = "") -> None:
        settings = self._settings
        if not settings.record:
            await self._decide(client, policy, identity, None)
            return
        from pumice.inputs.recording.file_format import Retention  # loaded only where a recording is kept
        from pumice.live.scheduler.black_box import black_box

        with black_box(settings.record, settings.options, self._clock.now, Retention.of_folder(settings.record_bytes)) as box:
            await self._decide(client, policy, identity, box)

    async def _by_the_rules_of(self, client: Client, policy: Policy) -> Policy:
        """The policy by the rules of the server's release, unless a release is named."""
        if policy.profiles is None:
            return policy
        try:
            version = str(as_dict(await client.get_path("/version"))["gitVersion"])
            if not self._settings.met(version):
                return policy
            policy = self._settings.load()
        except (KubeError, KeyError, InputError) as error:
            log.warning("the release of the API server is not known, or its rules cannot be followed: %s", error)
            return policy
        assert policy.profiles is not None
        log.info("the API server is %s: profiles follow the rules of Kubernetes %s", version, policy.profiles.release.text)
        return policy

    async def _decide(self, client: Client, policy: Policy, identity: str, box: BlackBox | None) -> None:
        settings, policy = self._settings, await self._by_the_rules_of(client, policy)
        call = asyncio.get_running_loop().call_soon_threadsafe
        garbage_collection.reads()
        world = LiveWorld(self._clock, lambda name, why: call(self._extender, name, why))
        scheduler = self._scheduler = Scheduler(
            client,
            policy,
            settings.options,
            self._clock,
            world=world,
            metrics=self._metrics,
            when_synced=self._read,
            where=on_a_thread,
            keeper=box,
        )
        self._questions = FitQuestions(scheduler)
        self._shadow = shadow = self._shadow_beside(client, scheduler)
        self._metrics.leading.set(1, SCHEDULER)
        if identity:
            scheduler.tell(EventRecord(self._regarding(), "Normal", "LeaderElection", f"{identity} became leader"))
        work = [scheduler.run(), world.run(lambda: scheduler.policy.metrics, scheduler.change)]
        work += [Headlines(scheduler).run(), Forecasts(scheduler).run()]
        if self._making is not None:
            default = settings.options.default_queue
            make = partial(make_queues, client, default, self._clock)
            work.append(keep_queues(self._making, make, lambda: bool(scheduler.glance(partial(is_lacking, default))), self._clock))
        if shadow is not None:
            work.append(shadow.run())
        if settings.conf_path:
            reloader = Reloader(Path(settings.conf_path), settings.load, self._adopt, self._refused, self._clock)
            work.append(reloader.run())
        try:
            async with settings.beside(scheduler, client) if settings.beside is not None else nullcontext():
                await first(*work)
        finally:
            self._metrics.leading.set(0, SCHEDULER)

    def _shadow_beside(self, client: Client, scheduler: Scheduler) -> Shadow | None:
        """The shadow that a canary runs for the pods outside of its share. None without a canary."""
        share = self._settings.options.sharding.share
        if share is None:
            return None
        from pumice.live.scheduler.shadow import Canary, Shadow

        readonly, options = client.fenced(lambda: False), msgspec.structs.replace(self._settings.options, sharding=UNSHARDED)
        shadow = Shadow(readonly, scheduler.policy, options, self._clock, canary=share, world=HttpWorld(), where=on_a_thread)
        scheduler.watch(Canary(shadow.comparison))
        return shadow

    @property
    def comparison(self) -> Comparison | None:
        """What the shadow of a canary has seen so far. None without a canary."""
        return self._shadow.comparison if self._shadow is not None else None

    def _read(self) -> None:
        """Log the size of the cluster, which has been read by now. From here on garbage is collected seldom."""
        garbage_collection.collect_seldom()
        assert self._scheduler is not None
        log.info("the cluster was read: %s; scheduling begins", sizes_in_words(self._scheduler.cluster))

    def _extender(self, name: str, why: str) -> None:
        """Report that an extender does not answer, and why, or, with an empty `why`, that it answers again."""
        assert self._scheduler is not None
        self._metrics.silent_extenders.set(1.0 if why else 0.0, name)
        if why:
            message = f"{name} does not answer and counts as failed: {why}"
            self._scheduler.tell(EventRecord(self._regarding(), "Warning", "ExtenderUnavailable", message))
        else:
            self._scheduler.tell(EventRecord(self._regarding(), "Normal", "ExtenderAvailable", f"{name} answers again"))

    # ---- configuration

    def _regarding(self) -> InvolvedObject:
        """The object that events about the scheduler itself refer to: its lease."""
        lock = self._settings.lock
        return InvolvedObject(LEASES.kind, lock.name, lock.namespace, "", LEASES.api_version)

    def _adopt(self, policy: Policy) -> None:
        assert self._scheduler is not None
        self._scheduler.adopt(policy)
        if self._shadow is not None:
            self._shadow.adopt(policy)
        self._metrics.config_ok.set(1)
        self._metrics.config_at.set(self._clock.now())
        self._scheduler.tell(EventRecord(self._regarding(), "Normal", "ConfigurationReloaded", f"{self._settings.conf_path} is in force"))

    def _refused(self, error: InputError) -> None:
        assert self._scheduler is not None
        self._metrics.config_ok.set(0)
        self._scheduler.tell(EventRecord(self._regarding(), "Warning", "ConfigurationRefused", str(error)))

    # ---- HTTP endpoints

    def _servers(self) -> list[Listener]:
        settings = self._settings
        shown = dict(insights(self))
        known = {"/debug/state": shown["/debug/state"], PATH: self._fits, POD_PATH: self._remembered}
        shown |= {path: self._of_who_decides(each) for path, each in known.items()}
        shown["/debug/shadow"] = self._compared
        return listeners(settings.metrics_address, shown, settings.healthz_address, probes(self), settings.tls)

    def _compared(self, request: Request) -> Response:
        return self._shadow.served(request) if self._shadow is not None else Response.text("there is no shadow here; see --canary", 404)

    def _of_who_decides(self, asked: Handler) -> Handler:
        def answer(request: Request) -> Response | Stream | Awaitable[Response | Stream]:
            return Response.text(f"{waits}: ask it", 503) if (waits := self._waits()) else asked(request)

        return answer

    def _waits(self) -> str:
        """Who decides, if this replica waits; else nothing."""
        leader = self._election.candidate.leader if self._election is not None else ""
        return "" if self._scheduler is not None else f"{leader or 'another replica'} leads, and this replica knows nothing of the cluster"

    async def _remembered(self, request: Request) -> Response:
        assert self._scheduler is not None
        return await pod_memory(self._scheduler, request)

    async def _fits(self, request: Request) -> Response:
        assert self._questions is not None
        return await self._questions.answer(request)

    def alive(self) -> str:
        if self._election is not None and self._election.candidate.lost:
            return "the lead was lost"
        return f"a cycle has not ended for {HUNG_S:.0f} s" if self._deciding_s() > HUNG_S else ""

    def _deciding_s(self) -> float:
        """For how many seconds the current cycle has been deciding; 0 between cycles."""
        since = self._scheduler.deciding_since if self._scheduler is not None else None
        return self._clock.now() - since if since is not None else 0.0

    def ready(self) -> str:
        reading = self._scheduler is not None and not self._scheduler.synced.is_set()
        making = self._queues is not None and not self._queues.done()
        return self.alive() or ("the cluster is being read" if reading else "the first queues are being made" if making else "")

    async def metrics(self) -> str:
        self._metrics.deciding.set(self._deciding_s())
        self._metrics.clock.set(self._clock.now(), SCHEDULER)
        if self._scheduler is None:
            self._metrics.measure(Cluster())
        else:
            await asyncio.wait([asyncio.ensure_future(self._scheduler.look(self._metrics.measure))], timeout=SCRAPES_WAIT_S)
        return self._metrics.page() + (self._shadow.compared() if self._shadow is not None else "")

    async def state(self) -> bytes:
        assert self._scheduler is not None
        configuration = self._settings.configuration()
        from pumice.answers.forecast_events import forecast_events  # loaded only when the state is asked for

        return await self._scheduler.look(lambda cluster: dump(cluster, configuration, forecast_events(cluster)))

    def _begin_state(self) -> None:
        if waits := self._waits():
            log.warning("no state is written: %s", waits)
        else:
            self._writing = asyncio.ensure_future(self._write_state())

    async def _write_state(self) -> None:
        path = Path(self._settings.dump_folder, f"pumice-state-{int(self._clock.now())}.json")
        state = await self.state()
        try:
            path.write_bytes(state)
            log.info("the state was written to %s; replay it with: pumice cycle -f %s", path, path)
        except OSError as error:
            log.error("the state cannot be written to %s: %s", path, error.strerror)
