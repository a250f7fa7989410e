"""Simulated kubelets: a pod bound to a node is accepted or rejected, starts, runs, ends and is removed, on the cluster's clock.

The kubelets follow every write to pods and nodes and queue the objects to look at. Nothing is polled, and a pod for which nothing is due
has no alarm, so that any number of running pods costs nothing. `next_stage` decides what happens, `pod_status` what that looks like; it is
written here, directly into the store, as a bind is. The kubelets are a `Worker` of the control plane.
"""

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from pumice.api import Key, Object, instant, key_of, kinds, name_of, spec_of, status_of, uid_of
from pumice.api.json_objects import finalizers_of
from pumice.cluster.apiserver import DeleteOptions, StatusError
from pumice.cluster.apiserver.storage.watch import WatchEvent
from pumice.cluster.clock import Alarm, AlarmClock
from pumice.cluster.nodes import next_stage, pod_status
from pumice.cluster.nodes.metrics_server import Metrics
from pumice.cluster.nodes.node_heartbeats import Addresses, NodeAgents
from pumice.cluster.nodes.rejection import Milli, Ports, host_ports_of, rejection, requests_of, unresizable
from pumice.cluster.nodes.stage import PodStage, Stages
from pumice.cluster.store_lister import StoreLister
from pumice.cluster.store_writes import StoreWrites

POD_NETWORK = "10.128.0.0/9"
SLICE_S = 0.005  #: how long a step may take, in seconds of the machine's time


class _Held:
    """A pod that a kubelet has accepted."""

    __slots__ = ("address", "alarm", "due", "generation", "needs", "node", "phase", "ports", "since", "uid", "waits_for_room")

    def __init__(self, uid: str, node: str, needs: Milli, ports: Ports) -> None:
        self.uid = uid
        self.node = node
        self.needs = needs
        self.ports = ports
        self.phase = ""
        self.generation = 0  #: the pod's generation when the kubelet looked at it last
        self.address = ""
        self.since = 0.0  #: the instant from which the delay of the next stage counts
        self.waits_for_room = False  #: to be resized
        self.alarm: Alarm | None = None
        self.due: PodStage | None = None  #: the stage whose time has come


class Kubelets:
    def __init__(self, lister: StoreLister, clock: AlarmClock, stages: Stages, slice_s: float = SLICE_S) -> None:
        self.wake: Callable[[], None] | None = None
        self._slice_s = slice_s
        self._lister = lister
        self._store = lister.store
        self._clock = clock
        self._stages = stages
        self._agents = NodeAgents(self._store, clock, self._node_is_up)
        self._metrics = Metrics(self._store)
        self._events = StoreWrites(lister, "kubelet")
        self._held: dict[Key, _Held] = {}
        self._on_node: dict[str, dict[Key, _Held]] = {}  #: by node: the pods that take up room on it
        self._ready: deque[tuple[str, Key]] = deque()  #: storage and key of the objects to look at
        self._queued: set[tuple[str, Key]] = set()
        self._writing: Object | None = None  #: the status that is written just now: what follows from it is known here
        self._addresses = Addresses(POD_NETWORK, (status_of(pod).get("podIP") or "" for pod in self._store.all("pods")))
        for storage in ("nodes", "pods"):
            for obj in self._store.all(storage):
                self._look_soon(storage, key_of(obj))
        self._store.storage.listen(self._on_write, "pods", "nodes")

    def _on_write(self, storage: str, event: WatchEvent) -> None:
        if self._writing is not None and event.object["status"] is self._writing:
            return
        if storage == "nodes" or event.object["spec"].get("nodeName"):
            self._look_soon(storage, Key(*event.key))

    def _look_soon(self, storage: str, key: Key) -> None:
        if (storage, key) not in self._queued:
            self._queued.add((storage, key))
            self._ready.append((storage, key))
            if len(self._ready) == 1 and self.wake is not None:
                self.wake()

    def _node_is_up(self, node: str) -> None:
        self._metrics.note(node)
        for pod in self._lister.by_field(kinds.POD, "spec.nodeName", node):
            self._look_soon("pods", key_of(pod))

    def step(self) -> bool:
        """Work for a moment. Return whether there is more to do."""
        ends = time.monotonic() + self._slice_s
        while self._ready:
            storage, key = self._ready.popleft()
            self._queued.discard((storage, key))
            if storage == "nodes":
                self._agents.look(key.name)
            else:
                self._look(key)
            if time.monotonic() >= ends:
                break
        return bool(self._ready)

    # One pod

    def _look(self, key: Key) -> None:
        pod = self._store.storage.get("pods", key)
        held = self._held.get(key)
        if held is not None and (pod is None or uid_of(pod) != held.uid):
            self._forget(key, held)
            held = None
        if pod is None or not spec_of(pod).get("nodeName") or not self._agents.is_up(spec_of(pod)["nodeName"]):
            return
        held = held or self._take(key, pod)
        if held is None:
            return
        phase = next_stage.phase_of(pod)
        generation = pod["metadata"].get("generation", 1)
        if phase != held.phase:
            self._enter(key, pod, held, phase)
        elif generation != held.generation and held.due is None:  # the pod's deadline may have changed
            self._plan(key, pod, held, held.since)
            if phase == next_stage.RUNNING:
                pod = self._resize(key, pod, held)
        held.generation = generation
        if held.due is not None:
            self._carry_out(key, pod, held, held.due)

    def _resize(self, key: Key, pod: Object, held: _Held) -> Object:
        """Give a running pod what its spec now asks for, if the node has it."""
        node = self._store.storage.get("nodes", ("", held.node))
        assert node is not None
        needs = requests_of(pod)
        refused, resized = None, needs != held.needs or held.waits_for_room
        if resized:
            refused = unresizable(needs, node, (each.needs for each in self._on_node[held.node].values() if each is not held))
        held.waits_for_room = refused is not None
        if refused is None:
            held.needs = needs
        return self._write(key, pod, pod_status.changed(pod, self._clock.now(), resized, refused))

    def _left(self, key: Key, held: _Held) -> None:
        """A pod takes up no room any more; those that wait to be resized are looked at again."""
        beside = self._on_node.get(held.node, {})
        beside.pop(key, None)
        for other, waiting in beside.items():
            if waiting.waits_for_room:
                waiting.generation = 0
                self._look_soon("pods", other)

    def _take(self, key: Key, pod: Object) -> _Held | None:
        """Accept the pod and give it its room on the node, or reject it and return None."""
        node = self._store.storage.get("nodes", ("", spec_of(pod)["nodeName"]))
        assert node is not None
        held = _Held(uid_of(pod), name_of(node), requests_of(pod), host_ports_of(pod))
        held.address = status_of(pod).get("podIP") or ""
        beside = self._on_node.setdefault(held.node, {})
        if next_stage.phase_of(pod) == next_stage.PENDING:
            others = beside.values()
            refused = rejection(pod, held.needs, node, (each.needs for each in others), (each.ports for each in others))
            if refused is not None:
                self._write(key, pod, pod_status.rejected(pod, self._clock.now(), *refused))
                self._events.tell(pod, "Warning", *refused)
                return None
        self._held[key] = held
        if next_stage.phase_of(pod) != next_stage.ENDED:
            beside[key] = held
        return held

    def _enter(self, key: Key, pod: Object, held: _Held, phase: str) -> None:
        """Handle that the pod is in another phase than when the kubelet looked at it last."""
        if phase == next_stage.RUNNING:
            self._metrics.started(pod, held.needs)
        elif held.phase == next_stage.RUNNING and phase == next_stage.ENDED:
            self._metrics.ended(key, held.node)
        if phase == next_stage.ENDED:
            self._left(key, held)
        known_since = (
            status_of(pod).get("startTime") if phase == next_stage.RUNNING and not held.phase else None
        )  # it ran before we started
        held.phase = phase
        self._plan(key, pod, held, instant(known_since) if known_since else self._clock.now())

    def _plan(self, key: Key, pod: Object, held: _Held, since: float) -> None:
        """Set the alarm for the pod's next stage, or note that the stage is due already."""
        held.since = since
        held.due = None
        if held.alarm is not None:
            held.alarm.cancel()
            held.alarm = None
        coming = next_stage.next_of(pod, held.phase, held.since, self._stages)
        if coming is None or coming.when == float("inf"):
            return
        if coming.when <= self._clock.now():
            held.due = coming.stage
            return
        held.alarm = self._clock.at(coming.when, lambda: self._is_due(key, held, coming.stage))

    def _is_due(self, key: Key, held: _Held, stage: PodStage) -> None:
        held.due = stage
        held.alarm = None
        self._look_soon("pods", key)

    def _carry_out(self, key: Key, pod: Object, held: _Held, stage: PodStage) -> None:
        held.due = None
        status = pod_status.status_after(pod, stage, self._clock.now(), partial(self._place, pod, held))
        if status == "gone":
            if finalizers_of(pod):  # whatever set the finalizers needs to see how the pod ended
                self._write(key, pod, pod_status.ended(pod, self._clock.now(), pod_status.KILLED, "", ""))
            self._end(key, held)
            return
        assert isinstance(status, dict)
        self._writing = status
        written = self._write(key, pod, status)
        self._writing = None
        phase = next_stage.phase_of(written)
        if phase != held.phase:
            self._enter(key, written, held, phase)
        elif phase == next_stage.RUNNING:
            self._plan(key, written, held, self._clock.now())
        if held.due is not None:
            self._look_soon("pods", key)

    def _end(self, key: Key, held: _Held) -> None:
        with suppress(StatusError):  # the pod was deleted already
            self._store.delete("pods", key.name, key.namespace, DeleteOptions(grace_s=0, uid=held.uid))

    def _forget(self, key: Key, held: _Held) -> None:
        del self._held[key]
        self._left(key, held)
        self._addresses.give_back(held.address)
        if held.alarm is not None:
            held.alarm.cancel()
        self._metrics.ended(key, held.node)

    def _place(self, pod: Object, held: _Held) -> pod_status.PodAddresses:
        status = status_of(pod)
        node = self._store.storage.get("nodes", ("", held.node)) or {}
        addresses = status_of(node).get("addresses") or ()
        host = next((each["address"] for each in addresses if each.get("type") == "InternalIP"), "127.0.0.1")
        if spec_of(pod).get("hostNetwork"):
            return pod_status.PodAddresses(host, host)
        held.address = status.get("podIP") or held.address or self._addresses.take()
        return pod_status.PodAddresses(held.address, host)

    def _write(self, key: Key, pod: Object, status: Object) -> Object:
        return self._store.put_trusted("pods", key, pod | {"metadata": dict(pod["metadata"]), "status": status})
