"""A cluster in one process, but for its scheduler: API server, Volcano's admission, controllers, kubelets, on one clock and one event loop.

    plane = ControlPlane(clock, server=Server(clock=clock.now, log_source=log_of), stages=read_stages())
    await plane.start()
    ... a scheduler over plane.transport("volcano") ...
    await plane.stop()

The schedulers named are those whose plain pods get PodGroups. Without an event loop, `quiet` lets everybody work until nothing is left
to do at this instant; that is how the clock is moved by hand.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from msgspec.structs import replace

from pumice.api.annotations import DEFAULT_STORAGE_CLASS
from pumice.api.json_objects import Object, field
from pumice.api.meta import SCHEDULER_NAME
from pumice.api.times import instant
from pumice.cluster.apiserver import Server, StatusError, Store, WriteOptions
from pumice.cluster.apiserver.kinds import ServedKind
from pumice.cluster.bridges import InProcess, StoreLister, StoreWrites, default_queues, volcano_rules
from pumice.cluster.clock import Alarm, AlarmClock, RunningClock
from pumice.cluster.nodes.kubelet import Kubelets
from pumice.cluster.nodes.node_agent import LEASES
from pumice.cluster.nodes.stage import Stages
from pumice.controllers.admission import Settings
from pumice.controllers.controller import Controller
from pumice.controllers.kubernetes.service_account import RootCertificates
from pumice.controllers.registry import kubernetes_controllers, volcano_controllers
from pumice.controllers.volcano.job.plugins.ssh import rsa_key_pair
from pumice.controllers.work_queue import KeyQueue, QueuedKey, Retries
from pumice.scheduler.config.volcano_conf import KUBE_BATCH_GROUP, KUBE_BATCH_NAME

# The controllers at work on a store: changes become keys, keys become writes, one at a time.
#
# A key whose writes fail is tried again as `Retries` says. The loop is a worker (see workers): `step` does a little, `wake` says that there
# is something to do, the clock wakes it for what is due later.

log = logging.getLogger(__name__)

SLICE_S = 0.005  #: of the machine's time, that a step may take


class ControllerLoop:
    """Some controllers, their queue and their failures."""

    def __init__(self, lister: StoreLister, controllers: Sequence[Controller], clock: AlarmClock, slice_s: float = SLICE_S) -> None:
        self.wake: Callable[[], None] | None = None
        self._slice_s = slice_s
        self._lister = lister
        self._clock = clock
        self._queue = KeyQueue(controllers)
        self._writes = {controller.name: StoreWrites(lister, f"{controller.name}-controller") for controller in controllers}
        self._failures = Retries(self._queue)
        self._alarm: Alarm | None = None
        lister.wake = self._wake

    def _wake(self) -> None:
        if self.wake is not None:
            self.wake()

    def step(self) -> bool:
        """Work for a moment; whether there is more."""
        ends = time.monotonic() + self._slice_s
        while time.monotonic() < ends:
            self._queue.observe(self._lister.take(), self._lister)
            work = self._queue.pop(self._clock.now())
            if work is None:
                self._set_alarm()
                return False
            self._do(work)
        return True

    def _do(self, work: QueuedKey) -> None:
        now = self._clock.now()
        try:
            outcome = work.controller.reconcile(work.key, self._lister, now)
            for write in outcome.writes:
                self._writes[work.controller.name].apply(write)
        except StatusError as error:
            log.info("%s %s: %s", work.controller.name, work.key, error)
            self._failures.failed(work, now)
            return
        except Exception:
            log.exception("%s %s failed", work.controller.name, work.key)
            self._failures.failed(work, now)
            return
        self._failures.succeeded(work)
        for when, key in outcome.later:
            self._queue.add_later(when, work.controller, key)

    def _set_alarm(self) -> None:
        when = self._queue.next_time()
        if when is None or (self._alarm is not None and self._alarm.call is not None and self._alarm.when <= when):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._clock.at(when, self._due)

    def _due(self) -> None:
        self._alarm = None
        self._wake()


# Those who live beside the API server on one thread, and take turns.
#
# A worker does a little at each `step` and says whether it has more to do; it calls `wake` when it has something after it had nothing. On
# an event loop, `WorkerTurns` gives each its steps between requests; without one, `run_quiet` steps all of them until nobody has
# anything left.


class Worker(Protocol):
    wake: Callable[[], None] | None

    def step(self) -> bool:
        """Do a little; whether there is more."""
        ...


class WorkerTurns:
    """Workers on an event loop."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._workers = workers
        self._scheduled: set[int] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        for index, worker in enumerate(self._workers):
            worker.wake = lambda index=index: self._schedule(index)
            self._schedule(index)

    def stop(self) -> None:
        self._loop = None
        for worker in self._workers:
            worker.wake = None

    def _schedule(self, index: int) -> None:
        if self._loop is not None and index not in self._scheduled:
            self._scheduled.add(index)
            self._loop.call_soon(self._turn, index)

    def _turn(self, index: int) -> None:
        self._scheduled.discard(index)
        if self._loop is not None and self._workers[index].step():
            self._schedule(index)


def run_quiet(workers: Sequence[Worker], writes: Callable[[], int]) -> None:
    """Let all work until a whole round leaves nobody busy and writes nothing. `writes` counts the writes so far."""
    while True:
        before = writes()
        busy = sum(worker.step() for worker in workers)
        if not busy and writes() == before:
            return


# kube-batch's queues and PodGroups: Volcano's under another API group, so that both see the same objects.

VERSION = "v1alpha1"


def serve_kube_batch(store: Store) -> None:
    """After Volcano's, so that these are meant where no group is named."""
    for plural in ("queues", "podgroups"):
        store.kinds.add(_of_kube_batch(store.kind(f"{plural}.scheduling.volcano.sh")))


def _of_kube_batch(kind: ServedKind) -> ServedKind:
    def to_stored(obj: Object) -> Object:
        return {**obj, "apiVersion": kind.api_version}

    return replace(kind, group=KUBE_BATCH_GROUP, version=VERSION, short_names=(), storage=kind.storage, to_stored=to_stored)


class ControlPlane:
    """Everything around one store."""

    def __init__(
        self,
        clock: AlarmClock,
        server: Server,
        stages: Stages,
        schedulers: Sequence[str] = (SCHEDULER_NAME, KUBE_BATCH_NAME),
        slice_s: float = SLICE_S,
    ) -> None:
        """`slice_s`: how long one of those around the store works before another has its turn; without end, chance has no part in it."""
        self.clock = clock
        self.server = server
        self.store = server.store
        lister = StoreLister(self.store)
        self.store.admission.add(volcano_rules(lister, Settings(scheduler_names=tuple(schedulers))))
        controllers = [*volcano_controllers(rsa_key_pair, schedulers), *kubernetes_controllers(), RootCertificates(server.certificate)]
        self._workers: list[Worker] = [Kubelets(lister, clock, stages, slice_s), ControllerLoop(lister, controllers, clock, slice_s)]
        self._turns = WorkerTurns(self._workers)
        serve_kube_batch(self.store)
        default_queues(self.store)
        _default_storage(self.store)

    def transport(self, manager: str) -> InProcess:
        return InProcess(self.store, manager)

    def add(self, objects: Iterable[Object], options: WriteOptions | None = None) -> int:
        """Create objects of any kinds that are not there yet, and say how many. Raises StatusError."""
        added = 0
        for obj in objects:
            kind = self.store.kinds.of_object(obj["apiVersion"], obj["kind"])
            namespace = obj["metadata"].get("namespace", "default") if kind is None or kind.namespaced else ""
            name = obj["metadata"].get("name", "")
            if kind is None or self.store.find(kind.resource, namespace, name) is None:
                self.store.create(kind or f"{obj['kind'].lower()}s", obj, namespace, options or WriteOptions())
                added += 1
        return added

    async def start(self) -> None:
        """Raises OSError if the address is taken."""
        await self.server.start()
        self._turns.start()
        if isinstance(self.clock, RunningClock):
            self.clock.attach()

    async def stop(self) -> None:
        if isinstance(self.clock, RunningClock):
            self.clock.detach()
        self._turns.stop()
        await self.server.stop()

    def quiet(self) -> None:
        """Without an event loop: everybody works until nothing is left to do now."""
        run_quiet([self.store.collector, *self._workers], lambda: self.store.ledger.version)


def _default_storage(store: Store) -> None:
    """The class whose volumes are made for claims that name none."""
    if store.find("storageclasses.storage.k8s.io", "", "standard") is None:
        metadata = {"name": "standard", "annotations": {DEFAULT_STORAGE_CLASS: "true"}}
        store.create("storageclasses.storage.k8s.io", {"metadata": metadata, "provisioner": "pumice.io/simulated"})


def last_instant(store: Store) -> float:
    """The newest renewal of a lease: where the time of a cluster that was stopped goes on. 0 if there is none."""
    renewals = (field(lease, "spec.renewTime") for lease in store.all(LEASES))
    return max((instant(text) for text in renewals if text), default=0.0)
