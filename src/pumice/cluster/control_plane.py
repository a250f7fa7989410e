"""A cluster in one process, except its scheduler: API server, Volcano's admission, controllers, kubelets, on one clock and one event loop.

    plane = ControlPlane(clock, server=Server(clock=clock.now, containers=SimulatedContainers(clock.now)), stages=read_stages())
    await plane.start()
    ... a scheduler over plane.transport("volcano") ...
    await plane.stop()

`schedulers` names the schedulers whose plain pods get PodGroups. Without an event loop, `quiet` lets all workers run until nothing is left
to do at this instant; call it whenever the clock has been moved by hand.
"""

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress

from pumice.api import Object, instant, name_of, namespace_of
from pumice.api.annotations import DEFAULT_STORAGE_CLASS, HOSTNAME, NODE_POOL
from pumice.api.defaults import KUBE_BATCH_NAME, SCHEDULER_NAME
from pumice.api.json_objects import clone, field
from pumice.cluster.apiserver import Server, StatusError, Store, WriteOptions
from pumice.cluster.apiserver.metadata import set_identity
from pumice.cluster.clock import AlarmClock, RunningClock
from pumice.cluster.controller_loop import SLICE_S, ControllerLoop
from pumice.cluster.in_process import InProcess
from pumice.cluster.kube_batch import serve_kube_batch
from pumice.cluster.nodes.kubelet import Kubelets
from pumice.cluster.nodes.node_heartbeats import LEASES
from pumice.cluster.nodes.stage import Stages
from pumice.cluster.required_queues import default_queues
from pumice.cluster.store_lister import StoreLister
from pumice.cluster.volcano_admission import serve_volcano_admission
from pumice.cluster.worker_turns import Worker, WorkerTurns, run_quiet
from pumice.controllers.admission import Settings
from pumice.controllers.kubernetes.root_certificates import ROOT_CERTIFICATE, RootCertificates
from pumice.controllers.registry import kubernetes_controllers, volcano_controllers
from pumice.controllers.volcano.job.plugins.ssh import rsa_key_pair

log = logging.getLogger(__name__)


class ControlPlane:
    """The API server, admission, controllers and kubelets around one store."""

    def __init__(
        self,
        clock: AlarmClock,
        server: Server,
        stages: Stages,
        schedulers: Sequence[str] = (SCHEDULER_NAME, KUBE_BATCH_NAME),
        slice_s: float = SLICE_S,
    ) -> None:
        """`slice_s`: how many seconds a worker runs before the next has its turn. If it is infinite, the order of work is deterministic."""
        self.clock = clock
        self.server = server
        self.store = server.store
        lister = StoreLister(self.store)
        serve_volcano_admission(lister, Settings(scheduler_names=tuple(schedulers)))
        of_kubernetes = [*kubernetes_controllers(gates=server.gates), RootCertificates(lambda: server.certificate)]
        controllers = [*volcano_controllers(rsa_key_pair, schedulers), *of_kubernetes]
        self._workers: list[Worker] = [Kubelets(lister, clock, stages, slice_s), ControllerLoop(lister, controllers, clock, slice_s)]
        self._turns = WorkerTurns(self._workers)
        server.renewed.append(self._publish_certificate)
        serve_kube_batch(self.store)
        default_queues(self.store)
        _default_storage(self.store)

    def _publish_certificate(self) -> None:
        """Remove the ConfigMaps with the certificate that pods trust: their controller makes them with the present one."""
        for namespace in [namespace_of(each) for each in self.store.all("configmaps") if name_of(each) == ROOT_CERTIFICATE]:
            with suppress(StatusError):  # an admission rule may refuse it
                self.store.delete("configmaps", ROOT_CERTIFICATE, namespace)

    def transport(self, manager: str) -> InProcess:
        return InProcess(self.store, manager)

    def add(self, objects: Iterable[Object], options: WriteOptions | None = None) -> int:
        """Create those of the objects, of any kinds, that do not exist yet. Return their number. Raises StatusError."""
        added = 0
        for obj in objects:
            kind = self.store.kinds.of_object(obj["apiVersion"], obj["kind"])
            namespace = obj["metadata"].get("namespace", "default") if kind is None or kind.namespaced else ""
            name = obj["metadata"].get("name", "")
            if kind is None or self.store.find(kind.resource, namespace, name) is None:
                self.store.create(kind or f"{obj['kind'].lower()}s", obj, namespace, options or WriteOptions())
                added += 1
        return added

    def add_nodes(self, nodes: Iterable[Object]) -> None:
        """Create those nodes of pools that do not exist yet. Nodes of a pool are equal but for their names: the first is written as any
        object is, the others are made of it, unless a policy or a webhook is to see each of them. Raises StatusError."""
        store = self.store
        kind = store.kind("nodes")
        each = store.policies.exist or store.webhooks.sees(kind, "", "CREATE")
        written: dict[str, Object] = {}  #: a node of each pool
        for node in nodes:
            metadata = node["metadata"]
            name, pool = metadata["name"], metadata["labels"][NODE_POOL]
            if store.find("nodes", "", name) is not None:
                continue
            if each or pool not in written:
                written[pool] = store.create(kind, node)
                continue
            first = written[pool]
            own = clone(first["metadata"]) | {"name": name}
            own["labels"][HOSTNAME] = name
            made = first | {"metadata": own}
            set_identity(kind, made, "", store.new_uid(), store.now())
            store.put_trusted("nodes", ("", name), made)

    async def start(self) -> None:
        """Start the server, the workers and the clock. Raises OSError if the address is taken."""
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
        """Without an event loop: let all workers and the garbage collector run until nothing is left to do at this instant."""
        run_quiet([self.store.collector, *self._workers], lambda: self.store.storage.version)


def _default_storage(store: Store) -> None:
    """Create the default StorageClass, whose volumes are made for claims that name no class, if it is missing."""
    if store.find("storageclasses.storage.k8s.io", "", "standard") is None:
        metadata = {"name": "standard", "annotations": {DEFAULT_STORAGE_CLASS: "true"}}
        store.create("storageclasses.storage.k8s.io", {"metadata": metadata, "provisioner": "pumice.io/simulated"})


def last_instant(store: Store) -> float:
    """The instant of the newest renewal of any lease; 0 if there is none. The clock of a cluster that was stopped continues from there."""
    renewals = (field(lease, "spec.renewTime") for lease in store.all(LEASES))
    return max((instant(text) for text in renewals if text), default=0.0)
