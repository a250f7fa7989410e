"""What metrics-server would report: PodMetrics of the pods that run, and NodeMetrics as their sums.

A pod's usage is written once, when it starts. A node's usage is summed up again some seconds after one of its pods has started or ended,
as the real metrics-server looks every 15 seconds. Nothing is done while nothing changes.
"""

from pumice.api import Object, key_of, rfc3339, spec_of, uid_of
from pumice.api.annotations import CPU_USAGE, MEMORY_USAGE
from pumice.api.json_objects import annotations_of, labels_of
from pumice.api.quantity import QuantityError, quantity
from pumice.cluster.apiserver import Store
from pumice.cluster.clock import Alarm, AlarmClock
from pumice.cluster.nodes.rejection import Milli

PODS, NODES = "pods.metrics.k8s.io", "nodes.metrics.k8s.io"
API_VERSION = "metrics.k8s.io/v1beta1"
WINDOW_S = 15


class Metrics:
    """Keeps the PodMetrics and NodeMetrics of a store up to date."""

    def __init__(self, store: Store, clock: AlarmClock) -> None:
        self._store = store
        self._clock = clock
        self._used: dict[str, dict[tuple[str, str], tuple[int, int]]] = {}  #: by node and pod: thousandths of a CPU, bytes of memory
        self._changed: set[str] = set()
        self._alarm: Alarm | None = None

    def started(self, pod: Object, milli: Milli) -> None:
        key = key_of(pod)
        used = usage(pod, milli)
        names = [each["name"] for each in spec_of(pod).get("containers") or ()]
        shares = [{"name": name, "usage": {"cpu": "0", "memory": "0"} if number else used} for number, name in enumerate(names)]
        fields = {"containers": shares, "metadata": {"name": key.name, "namespace": key.namespace, "labels": dict(labels_of(pod))}}
        self._put(PODS, "PodMetrics", key, f"{uid_of(pod)}-metrics", fields)
        node = spec_of(pod)["nodeName"]
        self._used.setdefault(node, {})[key] = quantity(used["cpu"]).milli, quantity(used["memory"]).whole
        self.note(node)

    def ended(self, key: tuple[str, str], node: str) -> None:
        if self._used.get(node, {}).pop(key, None) is not None:
            self.note(node)
        if self._store.storage.get(PODS, key) is not None:
            self._store.remove_trusted(PODS, key)

    def note(self, node: str) -> None:
        """Sum up this node's usage within the next `WINDOW_S` seconds."""
        self._changed.add(node)
        if self._alarm is None:
            self._alarm = self._clock.at(self._clock.now() + WINDOW_S, self._sum_up)

    def _sum_up(self) -> None:
        self._alarm = None
        for name in sorted(self._changed):
            if self._store.storage.get("nodes", ("", name)) is None:
                self._used.pop(name, None)
                if self._store.storage.get(NODES, ("", name)) is not None:
                    self._store.remove_trusted(NODES, ("", name))
                continue
            used = self._used.get(name, {}).values()
            total = {"cpu": f"{sum(cpu for cpu, _ in used)}m", "memory": f"{sum(memory for _, memory in used) // 1024}Ki"}
            self._put(NODES, "NodeMetrics", ("", name), f"{name}-metrics", {"usage": total, "metadata": {"name": name}})
        self._changed.clear()

    def _put(self, storage: str, kind: str, key: tuple[str, str], uid: str, fields: Object) -> None:
        at = rfc3339(self._clock.now())
        metadata = {**fields.pop("metadata"), "uid": uid, "creationTimestamp": at}
        head = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "timestamp": at, "window": f"{WINDOW_S}s"}
        self._store.put_trusted(storage, key, head | fields)


def usage(pod: Object, milli: dict[str, int]) -> dict[str, str]:
    """The usage that metrics report of a pod whose requests are `milli`: as annotated, else four fifths of the requested CPU and memory."""
    notes = annotations_of(pod)
    cpu = _amount(notes.get(CPU_USAGE)) or f"{milli.get('cpu', 0) * 4 // 5}m"
    memory = _amount(notes.get(MEMORY_USAGE)) or f"{milli.get('memory', 0) // 1000 * 4 // 5 // 1024}Ki"
    return {"cpu": cpu, "memory": memory}


def _amount(text: str | None) -> str:
    """The amount that an annotation states; empty if it states none."""
    try:
        return text if text and quantity(text).milli >= 0 else ""
    except QuantityError:
        return ""
