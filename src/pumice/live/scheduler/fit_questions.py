"""Can it ever run? Asked by whoever admits what users submit, who does not wait: an answer at once, or none.

A question costs a rehearsed cycle, and the next cycle cannot recall the last one: so questions have a part of the time, and those that come
too soon after another are not answered.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from math import inf
from typing import Any

import msgspec

from pumice.api.errors import InputError
from pumice.api.kinds import JOBS, group_of
from pumice.api.manifests import Manifest
from pumice.api.meta import Wire
from pumice.api.pod import Pod
from pumice.api.structs import convert
from pumice.http.messages import Request, Response
from pumice.live.scheduler.loop import Scheduler
from pumice.scheduler.model.cluster import Cluster

log = logging.getLogger(__name__)
PATH = "/fits"
PART = 0.05  #: of the time
LATER_S = 1.0
MOST_PODS = 1000  #: of a workload that is answered for: more would hold up the cycles


class FitQuestions:
    """Answers to whoever asks whether a job can ever run."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._free_at = 0.0

    def glance(self, obj: dict[str, Any]) -> str:
        """Why it can never run; empty if it can, or if that is not told now."""
        return (self._scheduler.glance(partial(self._asked, obj)) or "") if self._is_free else ""

    async def answer(self, request: Request) -> Response:
        """The same over HTTP; the object is posted as JSON."""
        try:
            obj = msgspec.json.decode(request.body, type=dict[str, Any])
        except msgspec.DecodeError as error:
            return Response.text(str(error), 400)
        if not self._is_free:
            return Response.text("ask later", 503)
        self._free_at = inf
        try:
            return Response.text(await self._scheduler.look(partial(self._asked, obj)))
        finally:
            self._free_at = min(self._free_at, time.monotonic() + LATER_S)

    @property
    def _is_free(self) -> bool:
        return time.monotonic() >= self._free_at and self._scheduler.synced.is_set()

    def _asked(self, obj: dict[str, Any], cluster: Cluster) -> str:
        from pumice.answers.fits import never_fits  # answers are loaded once somebody asks

        began, now = time.monotonic(), self._scheduler.clock.now()
        try:
            why = never_fits(_pods_of(obj, cluster, now), cluster, self._scheduler.policy, now)
            return f"{obj['kind'].lower()} {obj['metadata']['name']} can never run here: {why}" if why else ""
        except (InputError, AttributeError, KeyError, TypeError, ValueError):
            return ""  # no object that a server would take
        except Exception:
            log.exception("whether a %s can ever run could not be found out", obj.get("kind"))
            return ""  # nobody is kept from submitting by a fault of ours
        finally:
            ended = time.monotonic()
            self._free_at = ended + (ended - began) / PART


def _pods_of(obj: dict[str, Any], cluster: Cluster, now: float) -> list[tuple[str, Wire]]:
    """Itself, or those that its controller will make, and their group."""
    if obj["kind"] == "Pod":
        return [("Pod", convert(obj, Pod))]
    if (group_of(obj["apiVersion"]), obj["kind"]) != (JOBS.group, JOBS.kind):
        return []  # what a server has filled in of other workloads names them by the uid that it gave
    from pumice.cluster.workloads import expanded, pods_asked  # controllers are for those who are asked

    if pods_asked(obj) > MOST_PODS:
        return []
    queues = [("Queue", queue.wire) for queue in cluster.queues.values() if queue.wire is not None]
    return expanded([Manifest({**obj, "metadata": {**obj["metadata"], "uid": ""}}, "")], queues, now)
