"""A whole cluster in virtual time: the control plane, the live scheduler over its store, and the users who submit jobs.

At each instant the control plane works until it is quiet, then the users look at what has changed, then the scheduler decides, until no
part has anything left to do; only then time passes. Everything is decided by what is in the store, in the same order each time.

`InstantScheduler` is the live scheduler where time stands still while any part has work: it runs a cycle when all changes of an instant
have arrived. In real time a cycle waits a moment for more changes, and waiting pods are looked at now and then without any change; neither
makes sense here. Faults between it and the server are simulated: calls are slow or fail, watches are late or cut off, the link is
clogged and heals, a clock is ahead.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from math import inf
from random import Random
from typing import Any, TypeVar

from pumice.api import InputError
from pumice.api.core import Node
from pumice.api.kinds import Kind, ObjectRef
from pumice.api.structs import document
from pumice.client.failures import ApiError, NoAnswer
from pumice.client.transport import ListScope, Page, PatchType, Transport
from pumice.cluster.apiserver import Server
from pumice.cluster.apiserver.server import EventExpiry
from pumice.cluster.clock import AlarmClock, VirtualClock, VirtualLoop
from pumice.cluster.control_plane import ControlPlane
from pumice.live.clock import Clock
from pumice.live.scheduler.cycle_timing import CycleTimer, Urgency
from pumice.live.scheduler.loop import CycleObserver, Scheduler
from pumice.live.scheduler.options import Options
from pumice.live.whole.jobs import WholeJobs, stages
from pumice.scheduler.config import schedulers_of
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import Cluster
from pumice.simulate.accidents import Lose, NodeLosses, accidents_of, disturbed, random_of
from pumice.simulate.compare import ComparedRun
from pumice.simulate.faults import Faults
from pumice.simulate.record import Record
from pumice.simulate.run import Player, Scenario
from pumice.simulate.simulated_cluster import PERIOD_S, has_more_to_do, not_in_order
from pumice.simulate.work import Work, Workload


class InstantTimer(CycleTimer):
    """Starts a cycle at once after a change. A change that only affects reports waits while pods wait, which are looked at again anyway."""

    def __init__(self) -> None:
        super().__init__(PERIOD_S)
        self.again_at = inf  #: when to decide again, for policies that do not come to rest in a cycle

    def due_at(self, waiting: bool, crowded: bool = False) -> float:
        if self._request_cycle is Urgency.SOON or (self._request_cycle is Urgency.LATER and not waiting):
            return self._since
        return self.again_at if waiting else inf


class InstantScheduler(Scheduler):
    """A scheduler that decides last at each instant: `quiet` returns when nothing is left to do except to decide."""

    def __init__(
        self,
        transport: Transport,
        policy: Policy,
        options: Options,
        clock: Clock,
        quiet: Callable[[], Awaitable[None]],
        observer: CycleObserver,
        when_synced: Callable[[], None],
    ) -> None:
        super().__init__(transport, policy, options, clock, when_synced=when_synced)
        self._quiet = quiet
        self._cycle_timer = self._timer = InstantTimer()
        self.watch(observer)

    async def _until_due(self) -> None:
        await super()._until_due()
        await self._quiet()

    def _report(self, decisions: Decisions, now: float) -> None:
        super()._report(decisions, now)
        self._timer.again_at = now + PERIOD_S if has_more_to_do(self.policy, decisions) else inf


REQUEST_TIMEOUT_S = 30.0  #: as that of the client of a real API server
T = TypeVar("T")


class SkewedClock:
    """A clock that is `skew_s` seconds ahead of another clock."""

    def __init__(self, clock: AlarmClock, skew_s: float) -> None:
        self._clock, self._skew_s = clock, skew_s

    def now(self) -> float:
        return self._clock.now() + self._skew_s

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


class Link:
    """What calls and watches pass between the scheduler and the API server. While it is clogged, nothing does."""

    def __init__(self) -> None:
        self._clear = asyncio.Event()
        self._clear.set()

    def clog(self) -> Callable[[], None] | None:
        """Let nothing pass until the returned function is called. None if nothing passes already."""
        if self.is_clogged:
            return None
        self._clear.clear()
        return self._clear.set

    @property
    def is_clogged(self) -> bool:
        return not self._clear.is_set()

    async def passes(self, within_s: float, *, sent: bool) -> None:
        """Wait until something passes. Raises NoAnswer if that takes too long. `sent`: whether the server may have been asked by then."""
        try:
            async with asyncio.timeout(within_s if self.is_clogged else None):
                await self._clear.wait()
        except TimeoutError:
            raise NoAnswer("timed out", sent=sent) from None


class FaultyTransport:
    """A Transport with faults in front of another one. Faults are drawn in the order of calls, which is the same each time."""

    def __init__(self, transport: Transport, faults: Faults, random: Random, clock: AlarmClock, link: Link) -> None:
        self._transport, self._faults, self._random, self._clock, self._link = transport, faults, random, clock, link

    async def _call(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call, slowly or with a failure if the faults say so. A call that fails is not carried out. While the link is clogged, half
        of the calls are carried out at once, and their answers come late or never."""
        is_asked = not self._link.is_clogged or self._random.random() < 0.5
        if not is_asked:
            await self._link.passes(REQUEST_TIMEOUT_S, sent=False)
        answer = await self._make(call)
        await self._link.passes(REQUEST_TIMEOUT_S, sent=True)
        return answer

    async def _make(self, call: Callable[[], Awaitable[T]]) -> T:
        api = self._faults.api
        if api is not None:
            if api.slow is not None:
                await self._clock.sleep(api.slow(self._random))
            if self._random.random() < api.errors:
                raise ApiError(500, "InternalError", "made to fail")
        return await call()

    async def get(self, resource: Kind, ref: ObjectRef) -> bytes:
        return await self._call(lambda: self._transport.get(resource, ref))

    async def pages(self, scope: ListScope, *, limit: int = 500, not_older: int = 0) -> AsyncIterator[Page]:
        async for page in self._transport.pages(scope, limit=limit, not_older=not_older):
            await self._link.passes(REQUEST_TIMEOUT_S, sent=False)
            yield page

    async def watch(self, scope: ListScope, *, resource_version: str, timeout_s: int, idle_s: float) -> AsyncIterator[list[bytes]]:
        watching = self._transport.watch(scope, resource_version=resource_version, timeout_s=timeout_s, idle_s=idle_s)
        breaks = self._faults.events
        async for lines in watching:
            await self._link.passes(idle_s, sent=True)
            if breaks is not None:
                if self._random.random() < breaks.lost:
                    raise NoAnswer("cut off", sent=True)
                if self._random.random() < breaks.late:
                    await self._clock.sleep(breaks.late_s)
            yield lines

    async def create(
        self, resource: Kind, body: Any, namespace: str = "", *, name: str = "", subresource: str = "", repeatable: bool = False
    ) -> bytes:
        return await self._call(
            lambda: self._transport.create(resource, body, namespace, name=name, subresource=subresource, repeatable=repeatable)
        )

    async def update(self, resource: Kind, ref: ObjectRef, body: Any, *, subresource: str = "", repeatable: bool = False) -> bytes:
        return await self._call(lambda: self._transport.update(resource, ref, body, subresource=subresource, repeatable=repeatable))

    async def patch(
        self, resource: Kind, ref: ObjectRef, body: Any, patch_type: PatchType, *, subresource: str = "", repeatable: bool = False
    ) -> bytes:
        return await self._call(
            lambda: self._transport.patch(resource, ref, body, patch_type, subresource=subresource, repeatable=repeatable)
        )

    async def delete(self, resource: Kind, ref: ObjectRef, *, propagation: str = "", grace_s: int | None = None) -> None:
        await self._call(lambda: self._transport.delete(resource, ref, propagation=propagation, grace_s=grace_s))


PATIENCE_S = 600.0  #: without any change of a job; then it is over if no job runs and none will come


def play(scenario: Scenario, workload: Workload, record: Record) -> None:
    """Play a workload in a whole cluster: a player for `simulate`. Raises InputError."""
    if not workload.nodes:
        raise InputError("there are no nodes", where=workload.name)
    faults = workload.faults
    if faults.stragglers or faults.estimates:
        workload = replace(workload, jobs=disturbed(workload.jobs, faults, scenario.seed or 0))
    first = next(workload.jobs, None)
    if first is None:
        return
    clock = VirtualClock((workload.began or 0.0) + first.submit)
    state = random.getstate()
    random.seed(f"{scenario.seed or 0}/retries")  # clients vary their pauses with this generator
    try:
        with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
            runner.run(WholeCluster(scenario, workload, record, clock, first).play())
    finally:
        random.setstate(state)


@dataclass(frozen=True)
class ComparedWholeRun(ComparedRun):
    """A simulation of a comparison in which every object is real."""

    @property
    def player(self) -> Player:
        return play


class WholeCluster(CycleObserver):
    """The simulation of a whole cluster."""

    def __init__(self, scenario: Scenario, workload: Workload, record: Record, clock: VirtualClock, first: Work) -> None:
        self._scenario, self._record, self._clock = scenario, record, clock
        self._origin = workload.began or 0.0
        self._workload, self._faults = workload, workload.faults
        self._random = random_of(workload.faults, scenario.seed or 0, "calls")
        self._coming = workload.jobs
        self._next: Work | None = first  #: the next job that will come
        numbers = count(1)
        server = Server(clock=clock.now, new_uid=lambda: f"00000000-0000-0000-0000-{next(numbers):012d}", plain=True)
        schedulers = schedulers_of(scenario.policy)
        self._plane = ControlPlane(clock, server, stages(scenario.habits.grace_s), schedulers, slice_s=inf)
        self._store = self._plane.store
        self._expiry = EventExpiry(self._store)
        self._jobs = WholeJobs(self._store, scenario.policy, record, scenario.habits, self._now)
        self._options = Options(schedulers=tuple(schedulers), period_s=0.0, check_every=1000)
        self._waits: asyncio.Future[None] | None = None  #: what the scheduler awaits, until nothing is left to do except to decide
        self._over = asyncio.Event()
        self._failure: Exception | None = None
        self._link = Link()
        self._due: list[Callable[[], None]] = []  #: calls that begin or end a fault at this instant
        self._nodes = Cluster(schedulers)  #: holds the present nodes, and nothing else
        self._is_up = False  #: whether a scheduler has read the cluster
        self._moved_at = self._now()  #: when something last happened to a job
        for node in workload.nodes:
            self._nodes.put("Node", node)
        objects = (*workload.objects, *(("Node", node) for node in workload.nodes))
        self._plane.quiet()
        self._plane.add(document(kind, item) for kind, item in objects)
        self._plane.quiet()

    def _now(self) -> float:
        return self._clock.now() - self._origin

    async def play(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.may_pass = self._may_pass
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            self._begin_to_decide()
            await self._over.wait()
            loop.may_pass = lambda until: True
            self._deciding.cancel()
        if self._failure is not None:
            raise self._failure
        self._record.close(sorted(self._jobs.lives.values(), key=lambda life: life.number))

    # -- the scheduler

    def _begin_to_decide(self) -> None:
        """Start a scheduler that knows nothing yet."""
        transport: Transport = self._plane.transport("pumice")
        if self._faults.of_objects:
            transport = FaultyTransport(transport, self._faults, self._random, self._clock, self._link)
        scheduler = InstantScheduler(
            transport,
            self._scenario.policy,
            self._options,
            SkewedClock(self._clock, self._faults.skew_s) if self._faults.skew_s else self._clock,
            self._all_quiet,
            observer=self,
            when_synced=lambda: self._knows(scheduler.cluster),
        )
        self._deciding = self._tasks.create_task(scheduler.run())

    def _knows(self, cluster: Cluster) -> None:
        """Take note that a scheduler has read the cluster. The first time, the record and the accidents begin."""
        if self._is_up:
            self._record.gauges.cluster = cluster
            return
        self._is_up = True
        self._record.begin(self._now(), cluster)
        nodes = NodeLosses(self._workload.nodes, self._fail, self._join)
        losable: dict[str, Lose] = {
            "nodes": nodes.lose,
            "scheduler": lambda random: self._end_work(),
            "link": lambda random: self._link.clog(),
        }
        for accidents in accidents_of(self._faults, self._scenario.seed or 0, self._at, losable):
            accidents.begin(self._now(), lambda: self._next is not None or self._jobs.active)

    # -- faults

    def _at(self, when: float, call: Callable[[], None]) -> None:
        self._clock.at(self._origin + when, partial(self._due.append, call))

    def _end_work(self) -> Callable[[], None] | None:
        """Stop the scheduler, and return the function that starts one again. None if it is stopped already."""
        if self._deciding.cancelling():
            return None
        self._deciding.cancel()
        return self._begin_to_decide

    def _fail(self, name: str) -> None:
        self._record.move_on(self._now())
        self._store.delete("nodes", name)
        self._nodes.remove("Node", name)
        self._record.node("node-fail", name, self._nodes)

    def _join(self, node: Node) -> None:
        self._record.move_on(self._now())
        self._plane.add([document("Node", node)])
        self._nodes.put("Node", node)
        self._record.node("node-join", node.metadata.name, self._nodes)

    # -- jobs come

    def _arrive(self) -> None:
        """Submit the next job, and all jobs that come at the same instant."""
        self._expiry.sweep()
        now, work = self._now(), self._next
        self._record.move_on(now)
        while work is not None and work.submit <= now:
            self._jobs.submit(work)
            before, work = work, next(self._coming, None)
            if work is not None and work.submit < before.submit:
                raise not_in_order(work)
        if work is not None:
            self._clock.at(self._origin + work.submit, _nothing)
        self._next, self._moved_at = work, now

    # -- time passes

    def _may_pass(self, until: float) -> bool:
        try:
            if self._has_worked():
                return False
            if self._is_over(until):
                self._over.set()
                return False
            self._record.look(until - self._origin)
        except Exception as error:
            self._failure = error
            self._over.set()
            return False
        return True

    def _has_worked(self) -> bool:
        """Give each part a turn at this instant, and return whether any part had something to do."""
        before = self._store.storage.version
        self._plane.quiet()
        if self._jobs.digest():
            self._moved_at = self._now()
        if self._store.storage.version != before:
            return True
        if self._due:
            self._due.pop(0)()
            return True
        if self._next is not None and self._next.submit <= self._now() and self._is_up:
            self._arrive()
            return True
        waits, self._waits = self._waits, None
        if waits is None or waits.done():
            return False
        waits.set_result(None)
        return True

    async def _all_quiet(self) -> None:
        self._waits = asyncio.get_running_loop().create_future()
        await self._waits

    def _is_over(self, until: float) -> bool:
        until -= self._origin
        if until > self._scenario.habits.until:
            return True
        if self._next is not None or (self._jobs.lives and until <= self._moved_at + PATIENCE_S):
            return False
        return not self._jobs.active

    # -- what the scheduler decided

    def cycled(self, decisions: Decisions, at: float, took_s: float) -> None:
        self._jobs.decided(decisions)


def _nothing() -> None:
    """Do nothing: it is enough that time stops at this instant."""
