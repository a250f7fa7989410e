"""All that the scheduler remembers of one pod, in one place: `/debug/pod?name=NAMESPACE/NAME`, as JSON.

The kept state, the scheduling queue, what is assumed and what was sent have keepers of their own. Whoever asks why a pod is treated as it
is need not know them.
"""

from typing import Any

import msgspec

from pumice.http.messages import Request, Response
from pumice.live.scheduler.loop import Scheduler
from pumice.scheduler.model import Cluster, Task, status

POD_PATH = "/debug/pod"
STATED = ("uid", "node_name", "nominated", "priority", "gated", "deleting", "disrupted", "evicted", "started", "placed_at")


async def pod_memory(scheduler: Scheduler, request: Request) -> Response:
    """The HTTP answer, to requests from this machine only: a pod of any user may be asked about."""
    if not request.local:
        return Response.text("pods are told over loopback only: kubectl port-forward leads there", 403)
    key, notes_of = request.query.get("name", ""), scheduler.notes_of

    def asked(cluster: Cluster) -> dict[str, Any] | None:
        task = cluster.tasks.get(key)
        return {"state": _state_of(task), **notes_of(task)} if task is not None else None

    found = await scheduler.look(asked)
    if found is None:
        return Response.text(f"there is no pod {key!r}; ask with ?name=NAMESPACE/NAME", 404)
    return Response(msgspec.json.format(msgspec.json.encode(found)) + b"\n")


def _state_of(task: Task) -> dict[str, Any]:
    stated = {name: getattr(task, name) for name in STATED}
    return {"status": status.NAMES[task.status], "job": task.job.uid if task.job is not None else None, **stated}
