"""The live scheduler: watch the cluster, decide when something happened that could matter, and send the decisions.

The same loop serves a real API server, the embedded control plane and tests; they differ in the `Transport` and the `Clock` that they pass.
A cycle has the kept state for itself, wherever it runs (`single_writer.py`): changes that arrive meanwhile are applied after it. Writes are
sent in the background, and `Outcomes` says what the answers mean. The next cycle does not wait for them: it assumes that they succeed.
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from functools import partial
from math import inf
from typing import Any, TypeVar

from msgspec.structs import replace

from pumice.api.kinds import PODS
from pumice.client.event_correlator import EventRecord
from pumice.client.event_recorder import EventRecorder
from pumice.client.reflector import DEFAULT_PACE, Pace, Reflector
from pumice.client.transport import Transport
from pumice.live.clock import Clock, WallClock
from pumice.live.coalescing_loop import coalescing_while
from pumice.live.lifecycle import LostLead
from pumice.live.scheduler.background_tasks import BackgroundTasks
from pumice.live.scheduler.cycle_metrics import CycleTiming
from pumice.live.scheduler.cycle_timing import CycleTimer, Urgency
from pumice.live.scheduler.decisions_to_requests import pod_ref, requests_of
from pumice.live.scheduler.event_handlers import EventHandlers
from pumice.live.scheduler.event_translation import NEVER, EventTranslation
from pumice.live.scheduler.handle import Handle
from pumice.live.scheduler.metrics import LiveMetrics
from pumice.live.scheduler.node_shard import sharded
from pumice.live.scheduler.options import Options
from pumice.live.scheduler.outcomes import Outcomes
from pumice.live.scheduler.requests import ReadPod, Requests
from pumice.live.scheduler.sender import Sender
from pumice.live.scheduler.sent_status import SentStatus
from pumice.live.scheduler.single_writer import SingleWriter, Where, inline
from pumice.live.scheduler.watched_resources import all_synced, reflectors, sources
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.observer import Observer, Together
from pumice.scheduler.framework.plugin_guard import Failure
from pumice.scheduler.framework.pods_to_try import WaitingPods
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.world import NOWHERE, World
from pumice.scheduler.model import Cluster, Task, status

log = logging.getLogger(__name__)
T = TypeVar("T")
DEFAULT_OPTIONS = Options()
LONGEST_PAUSE_S = 60.0  #: between cycles that fail
GUARDED_S = 300.0  #: after a fault of ours, cycles are guarded for so long


class CycleObserver(Observer):
    """An observer that also gets the decisions of each cycle. It runs where cycles run, except `cycled`, which runs on the event loop."""

    def cycled(self, decisions: Decisions, at: float, took_s: float) -> None: ...


class Keeper(CycleObserver):
    """A cycle observer that also provides the kept state, and so sees every change of it."""

    cluster: Cluster

    def away(self) -> AbstractContextManager[None]:
        """A context in which something is tried out on the state. Afterwards the state is as it was before."""
        return nullcontext()


class Scheduler:
    """A live scheduler. Call `run` to work until cancelled, or use `async with started()` and call `step()` for each cycle."""

    def __init__(
        self,
        transport: Transport,
        policy: Policy,
        options: Options = DEFAULT_OPTIONS,
        clock: Clock | None = None,
        *,
        world: World = NOWHERE,
        recorder: EventRecorder | None = None,
        metrics: LiveMetrics | None = None,
        pace: Pace = DEFAULT_PACE,
        when_synced: Callable[[], None] = lambda: None,
        where: Where = inline,
        keeper: Keeper | None = None,
    ) -> None:
        """`where` runs the cycles, on the event loop or on a thread. `keeper` provides the kept state; None: a new `Cluster`."""
        self.options = options
        self.clock: Clock = clock or WallClock()
        self.metrics = metrics or LiveMetrics()
        self.cluster = keeper.cluster if keeper is not None else Cluster(options.schedulers, options.default_queue)
        self.synced = asyncio.Event()
        self.cycled_at = 0.0  #: when the last cycle ended
        self.deciding_since: float | None = None  #: when the current cycle began; None between cycles
        now = self.clock.now
        self.recorder = recorder or EventRecorder(transport, options.component, wall=now, clock=now, busy=self._is_binding)
        self._transport, self._world, self._when_synced = transport, world, when_synced
        self._state = SingleWriter(where)
        self._observer: Observer = CycleTiming(self.metrics)
        self._cycle_observers: list[CycleObserver] = []
        self._sent_status = SentStatus(options.period_s)
        self._cycle_timer = CycleTimer(options.period_s)
        self._stirred = asyncio.Event()
        self._event_translation = EventTranslation(self.cluster)
        self._next_try = NEVER  #: when a pod of the scheduling queue is due, held back pods may go, or an object or a write is tried again
        handle = self._handle()
        self._outcomes = Outcomes(handle, self._pod_version)
        self._event_handlers = EventHandlers(handle, options, self._outcomes)
        self._sender = Sender(transport, self._outcomes, self._outcomes.raw_objects, self.clock, options)
        self._logged_failures: set[Failure] = set()  #: failures of plugins that have been logged, without their messages
        self._faults = self._unchecked = 0  #: failed cycles in a row; cycles since the state was last held against a recount
        self._guarded_until = -inf
        self._pace = pace
        self._following: list[Reflector[Any]] = []
        self._background = BackgroundTasks()
        self._background.add(self._sender.run, self.recorder.run)
        self._keeper = keeper
        if keeper is not None:
            self.watch(keeper)
        self._adopt(policy)

    def _handle(self) -> Handle:
        return Handle(
            cluster=self.cluster,
            state=self._state,
            sent_status=self._sent_status,
            event_translation=self._event_translation,
            clock=self.clock,
            metrics=self.metrics,
            tell=self.recorder.tell,
            request_cycle=self._request_cycle,
        )

    def adopt(self, policy: Policy) -> None:
        """Decide by this policy from the next cycle on."""
        self.change(self._adopt, policy)

    def _adopt(self, policy: Policy) -> None:
        self.policy = policy
        self._acting = sharded(replace(policy, gathering_s=self.options.period_s), self.options.sharding)
        self._follow(policy)
        self.cluster.shadow_groups = policy.shadow_groups
        self._event_translation.adopt(policy)
        self.metrics.kube.queue = self._event_translation.scheduling_queue
        self._request_cycle(Urgency.SOON)

    def _follow(self, policy: Policy) -> None:
        """Start reflectors for the kinds that the policy needs and that are not watched yet."""
        followed = {reflector.scope.resource for reflector in self._following}
        wanted = [source for source in sources(self.options, policy) if source.resource not in followed]
        fresh = reflectors(wanted, self._transport, partial(self.change, self._event_handlers.take), self._pace)
        self._following += fresh
        self._background.add(*(reflector.run for reflector in fresh))

    @property
    def scheduling_queue(self) -> WaitingPods:
        """The queue in which pods of kube-scheduler's profiles wait."""
        return self._event_translation.queue

    @property
    def change(self) -> Callable[..., None]:
        """The function that applies a change to the state that cycles read: now, or after the current cycle."""
        return self._state.change

    async def look(self, at: Callable[[Cluster], T]) -> T:
        """The result of `at` for the cluster. It is called between two cycles, where cycles run."""
        async with self._state.alone() as run:
            with self._keeper.away() if self._keeper is not None else nullcontext():
                return await run(partial(at, self.cluster))

    def glance(self, at: Callable[[Cluster], T]) -> T | None:
        """The result of `at` for the cluster, called at once. None while a cycle or a `look` has the state for itself."""
        if self._state.is_taken:
            return None
        with self._keeper.away() if self._keeper is not None else nullcontext():
            return at(self.cluster)

    def notes_of(self, task: Task) -> dict[str, Any]:
        """What is remembered of a pod besides the kept state: its place in the scheduling queue, the calls about it, its record, and the
        pauses of its writes."""
        sent_status = self._sent_status
        pauses = sent_status.pauses.of(task.uid, task.key)
        record = {"condition": sent_status.marks.get(task.uid), **self._outcomes.assumed.notes_of(task.uid)}
        queue, calls = self._event_translation.place_of(task), self._sender.notes_of(task.uid)
        return {"queue": queue, "calls": calls, "record": record, "pauses": pauses}

    def watch(self, observer: CycleObserver) -> None:
        """Let an observer follow all cycles from the next one on."""
        self._cycle_observers.append(observer)
        self._observer = Together([self._observer, observer])

    def tell(self, what: EventRecord) -> None:
        self.recorder.tell(what)

    def _pod_version(self, namespace: str, name: str) -> int:
        pods = next(reflector for reflector in self._following if reflector.scope.resource == PODS)
        return pods.version(namespace, name)

    # ---- running

    async def run(self, instead: Callable[[], Awaitable[None]] | None = None) -> None:
        """Run cycles, or `instead` in their place, until cancelled. Raises LostLead as soon as the fence has held back a write."""
        async with self.started():
            await self._background.unless_broken((instead or self._cycles)())
            self._check()

    async def _cycles(self) -> None:
        while True:
            await self._until_due()
            await self.turn()

    @asynccontextmanager
    async def started(self) -> AsyncIterator[None]:
        """A context in which the cluster is watched and requests are sent, in the background. It begins once the cluster has been read."""
        async with self._background.running():
            # until the cluster has been read no change starts a cycle
            await self._background.unless_broken(all_synced(self._following, self.policy, self.options.sync_timeout_s))
            self._check()
            self.synced.set()
            self._when_synced()
            with coalescing_while(self._is_binding):
                yield

    def _is_binding(self) -> bool:
        return self._sender.binding

    def _check(self) -> None:
        self._background.check()
        if self._outcomes.lost_lead:
            raise LostLead

    async def step(self) -> Decisions:
        """Run one cycle now, and wait until all of its requests have been answered."""
        decisions = await self.turn()
        await self._sender.drained()
        return decisions

    async def turn(self) -> Decisions:
        """Run one cycle, and send its requests in the background."""
        self._check()
        async with self._state.alone() as run:
            for doubtful in self._outcomes.assumed.expired():
                self._sender.read_again(doubtful)
            self._event_handlers.turn()
            now = self.deciding_since = self.clock.now()
            self.metrics.cycle_begins()
            decided: list[Decisions] = []
            queues_are_due = self._sent_status.queues_are_due(now)
            try:
                self._send(await run(partial(self._decide, now, decided)), now)
                if not queues_are_due:
                    self._request_cycle(Urgency.LATER)
                self._faults = 0
            except Exception:
                self._on_failed_cycle(decided, now)
            decisions = decided[0] if decided else Decisions()
            self.deciding_since = None
            self._report(decisions, now)
            await self._recount(run)
        if self._faults:
            await self.clock.sleep(min(LONGEST_PAUSE_S, 2.0**self._faults))
        return decisions

    async def _recount(self, run: Where) -> None:
        """Now and then hold the kept state against a recount. Nothing more is decided by a state that is not true: AssertionError ends the
        run, and whoever starts the program again lets it read everything anew."""
        self._unchecked += 1
        if self._unchecked == self.options.check_every:
            self._unchecked = 0
            await run(self.cluster.check)
            self.metrics.state_checks.add()

    def _on_failed_cycle(self, unsent: list[Decisions], now: float) -> None:
        """Handle a cycle that failed by a fault of ours. Log the first of several in a row, and read the pods again that it decided on. For
        a while our own plugins are guarded, so that a fault of theirs spoils only what they are asked about the odd object."""
        if not self._faults:
            log.exception("a cycle came to nothing and is tried again")
        self._faults += 1
        self._guarded_until = now + GUARDED_S
        self.metrics.failed_cycles.add()
        for decisions in unsent:
            for bind in decisions.binds:
                self._sender.read_again(ReadPod(pod_ref(bind.task), status.BINDING))
            for eviction in decisions.evictions:
                self._sender.read_again(ReadPod(pod_ref(eviction.task), status.RELEASING))

    def _decide(self, now: float, decided: list[Decisions]) -> Requests:
        """Decide, where cycles run, and make the requests there, too: there may be thousands. The decisions go into `decided`."""
        guarded = now < self._guarded_until
        decisions = cycle(self.cluster, self._acting, now, self._world, self.scheduling_queue, self._observer, guarded=guarded)
        decided.append(decisions)
        for task, node in decisions.nominations.items():
            self.cluster.nominate(task, node)
        for eviction in decisions.evictions:
            self._event_translation.evicted(eviction.task)
        return requests_of(self.cluster, decisions, self._sent_status, now, str(uuid.uuid4()), self.options.sharding)

    def _send(self, requests: Requests, now: float) -> None:
        """Send what was decided at `now`. From here on it is assumed to succeed."""
        for uid in self._sent_status.pauses.over("PodGroup", now):
            if (job := self.cluster.jobs.get(uid)) is not None:
                self.cluster.report_again(job)
                self._request_cycle(Urgency.LATER)
        self._sender.send(requests)
        for event in requests.events:
            self.recorder.tell(event)

    def _report(self, decisions: Decisions, now: float) -> None:
        """Report the cycle to the log, metrics and observers, and compute when the next one is due."""
        for failure in decisions.failures:
            place = replace(failure, message="")  # which may name the pod
            if place not in self._logged_failures:
                self._logged_failures.add(place)
                log.error("%s", failure)
        self.cycled_at = self.clock.now()
        took_s = self.cycled_at - now
        self._cycle_timer.cycled(now, took_s)
        self._next_try = min(self._event_translation.next_due(), decisions.again_at, self._event_handlers.next_due())
        self._next_try = min(self._next_try, self._sent_status.pauses.next_end(now))
        self.metrics.observe_cycle(decisions, now, took_s)
        self.metrics.keep_few(self.cluster)
        for observer in self._cycle_observers:
            observer.cycled(decisions, now, took_s)
        self.metrics.events_dropped.set(self.recorder.dropped)
        if decisions.binds or decisions.evictions:
            log.debug("cycle: %d bound, %d evicted, %d waiting", len(decisions.binds), len(decisions.evictions), len(decisions.waiting))

    # ---- when cycles run

    def _request_cycle(self, urgency: Urgency) -> None:
        if self._state.is_taken or not self._cycle_timer.knows(urgency):
            self._state.change(self._note_request, urgency, self.clock.now())
        if urgency:
            self._stirred.set()

    def _note_request(self, urgency: Urgency, at: float) -> None:
        """Note a request, perhaps after work that had the state for itself: who was woken meanwhile has gone to sleep again without it."""
        self._cycle_timer.request(urgency, at)
        self._stirred.set()

    async def _until_due(self) -> None:
        """Sleep until the next cycle should begin. A change ends the sleep, and the time is computed anew."""
        while True:
            self._check()
            self._stirred.clear()
            due_at = self._cycle_timer.due_at(self._event_translation.someone_is_left, self._sender.crowded)
            left_s = min(due_at, self._next_try) - self.clock.now()
            if left_s <= 0:
                await asyncio.sleep(0)
                return
            await self._sleep_or_request(left_s)

    async def _sleep_or_request(self, seconds: float) -> None:
        sleep = asyncio.ensure_future(self.clock.sleep(seconds))
        sleep.add_done_callback(lambda over: self._stirred.set())
        try:
            await self._stirred.wait()
        finally:
            sleep.cancel()
            await asyncio.gather(sleep, return_exceptions=True)
