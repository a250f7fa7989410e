"""A cluster in one process, but for its scheduler: API server, Volcano's admission, controllers, kubelets, on one clock and one event loop.

    plane = ControlPlane(clock, server=Server(clock=clock.now, log_source=log_of), stages=read_stages())
    await plane.start()
    ... a scheduler over plane.transport("volcano") ...
    await plane.stop()

The schedulers named are those whose plain pods get PodGroups. Without an event loop, `quiet` lets everybody work until nothing is left
to do at this instant; that is how the clock is moved by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pumice.api.annotations import DEFAULT_STORAGE_CLASS
from pumice.api.names import SCHEDULER_NAME
from pumice.api.times import instant
from pumice.apiserver import Options, Server, Store
from pumice.config.volcano import KUBE_BATCH_NAME
from pumice.controllers.admission import Settings
from pumice.controllers.keys import rsa_key_pair
from pumice.controllers.objects import Object, field
from pumice.controllers.registry import kubernetes_controllers, volcano_controllers
from pumice.controllers.root_certificate import RootCertificates
from pumice.sim.clock import Clock, RunningClock
from pumice.sim.controller_loop import ControllerLoop
from pumice.sim.in_process import InProcess
from pumice.sim.kube_batch_kinds import serve_kube_batch
from pumice.sim.kubelet import Kubelets
from pumice.sim.node_agent import LEASES
from pumice.sim.stage import Stages
from pumice.sim.store_world import StoreWorld
from pumice.sim.volcano_admission import default_queues, volcano_rules
from pumice.sim.workers import Turns, Worker, run_quiet


class ControlPlane:
    """Everything around one store."""

    def __init__(self, clock: Clock, server: Server, stages: Stages, schedulers: Sequence[str] = (SCHEDULER_NAME, KUBE_BATCH_NAME)) -> None:
        self.clock = clock
        self.server = server
        self.store = server.store
        world = StoreWorld(self.store)
        self.store.admission.add(volcano_rules(world, Settings(scheduler_names=tuple(schedulers))))
        controllers = [*volcano_controllers(rsa_key_pair, schedulers), *kubernetes_controllers(), RootCertificates(server.certificate)]
        self._workers: list[Worker] = [Kubelets(world, clock, stages), ControllerLoop(world, controllers, clock)]
        self._turns = Turns(self._workers)
        serve_kube_batch(self.store)
        default_queues(self.store)
        _default_storage(self.store)

    def transport(self, manager: str) -> InProcess:
        return InProcess(self.store, manager)

    def add(self, objects: Iterable[Object], options: Options | None = None) -> int:
        """Create objects of any kinds that are not there yet, and say how many. Raises ApiError."""
        added = 0
        for obj in objects:
            kind = self.store.kinds.of_object(obj["apiVersion"], obj["kind"])
            namespace = obj["metadata"].get("namespace", "default") if kind is None or kind.namespaced else ""
            name = obj["metadata"].get("name", "")
            if kind is None or self.store.find(kind.resource, namespace, name) is None:
                self.store.create(kind or f"{obj['kind'].lower()}s", obj, namespace, options or Options())
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
