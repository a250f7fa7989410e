"""The state of a scheduler as a file that `pumice cycle -f` reads.

It has what the scheduler believes at this moment, including its assumptions, the pods that it has evicted recently, and the outcomes of
forecasts.
"""

from collections.abc import Iterable

from pumice.api.core import Event
from pumice.api.manifests import CONFIG_MAP_KEYS
from pumice.api.meta import Wire
from pumice.api.structs import KEPT, encode
from pumice.inputs.recording.snapshot import Snapshot
from pumice.scheduler.framework.eviction_events import eviction_events
from pumice.scheduler.model import Cluster


def dump(cluster: Cluster, configuration: str, events: Iterable[Event] = ()) -> bytes:
    """A List of objects as JSON, with recent evictions as events, these other events, and the configuration as Volcano's ConfigMap."""
    bodies = [_body(kind, item) for kind, item in Snapshot(cluster).objects()]
    bodies += [_body("Event", event) for event in (*eviction_events(cluster), *events)]
    if configuration:
        meta = {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"}
        data = {CONFIG_MAP_KEYS[0]: configuration}
        bodies.append(encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}))
    return b'{"apiVersion":"v1","kind":"List","items":[\n' + b",\n".join(bodies) + b"\n]}\n"


def _body(kind: str, item: Wire) -> bytes:
    """The object as JSON, with its apiVersion and kind."""
    named = KEPT[kind]
    return b'{"apiVersion":"%b","kind":"%b",%b' % (named.api_version.encode(), named.kind.encode(), encode(item)[1:])
