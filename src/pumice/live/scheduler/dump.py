"""The state of a scheduler as a file that `pumice cycle -f` reads: what it believes at this moment, its assumptions included, whom it has
evicted of late, and what became of forecasts."""

from __future__ import annotations

from pumice.answers.past_forecasts import forecast_events
from pumice.api.manifests import CONFIG_MAP_KEYS
from pumice.api.meta import Wire
from pumice.api.structs import API_VERSIONS, encode
from pumice.cluster import told_evictions
from pumice.cluster.recording.snapshot import Snapshot
from pumice.scheduler.model.cluster import Cluster


def dump(cluster: Cluster, configuration: str) -> bytes:
    """A List of objects as JSON, and the configuration as Volcano's ConfigMap."""
    bodies = [_body(kind, item) for kind, item in Snapshot(cluster).objects()]
    bodies += [_body("Event", event) for told in (told_evictions.as_events, forecast_events) for event in told(cluster)]
    if configuration:
        meta = {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"}
        data = {CONFIG_MAP_KEYS[0]: configuration}
        bodies.append(encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}))
    return b'{"apiVersion":"v1","kind":"List","items":[\n' + b",\n".join(bodies) + b"\n]}\n"


def _body(kind: str, item: Wire) -> bytes:
    """The object, told what it is."""
    return b'{"apiVersion":"%b","kind":"%b",%b' % (API_VERSIONS[kind].encode(), kind.encode(), encode(item)[1:])
