"""A whole cluster in virtual time: the control plane, the live scheduler over its store, and the users who submit jobs.

At each instant the control plane works until it is quiet, then the users look at what has changed, then the scheduler decides, until no
part has anything left to do; only then time passes. Everything is decided by what is in the store, in the same order each time.

`InstantScheduler` is the live scheduler where time stands still while any part has work: it runs a cycle when all changes of an instant
have arrived. In real time a cycle waits a moment for more changes, and waiting pods are looked at now and then without any change; neither
makes sense here. Faults between it and the server are simulated: calls are slow or fail, watches are late or cut off, the link is
clogged and heals, a clock is ahead.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from math import inf

from pumice.api import InputError
from pumice.api.core import Node
from pumice.api.structs import document
from pumice.client.transport import Transport
from pumice.cluster.apiserver import Server
from pumice.cluster.apiserver.server import EventExpiry
from pumice.cluster.clock import VirtualClock, VirtualLoop
from pumice.cluster.control_plane import ControlPlane
from pumice.live.scheduler.loop import CycleObserver
from pumice.live.scheduler.options import Options
from pumice.live.whole.faulty_transport import FaultyTransport, Link, SkewedClock
from pumice.live.whole.instant_scheduler import InstantScheduler
from pumice.live.whole.jobs import WholeJobs, stages
from pumice.scheduler.config import schedulers_of
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.model import Cluster
from pumice.simulate.fault_injection import Lose, NodeLosses, accidents_of, disturbed, random_of
from pumice.simulate.policy_comparison import ComparedRun
from pumice.simulate.record import Record
from pumice.simulate.scenario import Player, Scenario
from pumice.simulate.simulated_cluster import not_in_order
from pumice.simulate.workload import Work, Workload

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
    needs_full_cycles, reads_all = False, True

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
