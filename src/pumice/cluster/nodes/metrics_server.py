"""What metrics-server would report: PodMetrics of the pods that run, and NodeMetrics as their sums.

Nobody but their readers needs them, so they are written when they are read: those of the pods and nodes on which something has started or
ended since.
"""

from pumice.api import Object, key_of, rfc3339, spec_of, uid_of
from pumice.api.annotations import CPU_USAGE, MEMORY_USAGE
from pumice.api.json_objects import annotations_of, labels_of
from pumice.api.quantity import QuantityError, quantity
from pumice.cluster.apiserver import Store
from pumice.cluster.nodes.rejection import Milli

PODS, NODES = "pods.metrics.k8s.io", "nodes.metrics.k8s.io"
API_VERSION = "metrics.k8s.io/v1beta1"
WINDOW_S = 15


class Metrics:
    """Keeps the PodMetrics and NodeMetrics of a store up to date for their readers."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._used: dict[str, dict[tuple[str, str], dict[str, str]]] = {}  #: by node and pod
        self._changed_nodes = {name for _, name in store.storage.kind_storage(NODES).keys}  #: of a server before this one
        self._changed_pods = dict.fromkeys(store.storage.kind_storage(PODS).keys, "")  #: each with its node
        store.before_read |= dict.fromkeys((PODS, NODES), self._write)

    def started(self, pod: Object, milli: Milli) -> None:
        key, node = key_of(pod), spec_of(pod)["nodeName"]
        self._used.setdefault(node, {})[key] = usage(pod, milli)
        self._changed_pods[key] = node
        self.note(node)

    def ended(self, key: tuple[str, str], node: str) -> None:
        if self._used.get(node, {}).pop(key, None) is not None:
            if self._store.storage.get(PODS, key) is not None:
                self._changed_pods[key] = node
            else:  # nobody has read of it
                self._changed_pods.pop(key, None)
            self.note(node)

    def note(self, node: str) -> None:
        self._changed_nodes.add(node)

    def _write(self) -> None:
        storage = self._store.storage
        for key, node in self._changed_pods.items():
            pod, used = storage.get("pods", key), self._used.get(node, {}).get(key)
            if pod is not None and used is not None:
                self._write_pod(key, pod, used)
            elif storage.get(PODS, key) is not None:
                self._store.remove_trusted(PODS, key)
        for name in sorted(self._changed_nodes):
            if storage.get("nodes", ("", name)) is not None:
                self._write_node(name)
                continue
            self._used.pop(name, None)
            if storage.get(NODES, ("", name)) is not None:
                self._store.remove_trusted(NODES, ("", name))
        self._changed_pods.clear()
        self._changed_nodes.clear()

    def _write_pod(self, key: tuple[str, str], pod: Object, used: dict[str, str]) -> None:
        names = [each["name"] for each in spec_of(pod).get("containers") or ()]
        shares = [{"name": name, "usage": {"cpu": "0", "memory": "0"} if number else used} for number, name in enumerate(names)]
        fields = {"containers": shares, "metadata": {"name": key[1], "namespace": key[0], "labels": dict(labels_of(pod))}}
        self._put(PODS, "PodMetrics", key, f"{uid_of(pod)}-metrics", fields)

    def _write_node(self, name: str) -> None:
        used = [(quantity(each["cpu"]).milli, quantity(each["memory"]).whole) for each in self._used.get(name, {}).values()]
        total = {"cpu": f"{sum(cpu for cpu, _ in used)}m", "memory": f"{sum(memory for _, memory in used) // 1024}Ki"}
        self._put(NODES, "NodeMetrics", ("", name), f"{name}-metrics", {"usage": total, "metadata": {"name": name}})

    def _put(self, storage: str, kind: str, key: tuple[str, str], uid: str, fields: Object) -> None:
        at = rfc3339(self._store.now())
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
