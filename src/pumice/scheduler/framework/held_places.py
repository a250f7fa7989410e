"""Places that are held for pods that are to come, as they are noted on the PodGroup of their job (annotation pumice.io/held-places)."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from pumice.scheduler.model import PODS, Dimensions, Job, Task

MOVED, GIVEN_BACK = "Moved", "HeldPlaceGivenBack"  #: reasons of events: about a pod that makes room, and a place that nobody took in time


class HeldPlace(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A place for a pod of a job."""

    node: str
    until: float
    whole: int  #: how many pods of the role have a place when all have come
    requests: dict[str, str]
    role: str = ""

    @classmethod
    def of(cls, task: Task, node: str, until: float, whole: int, dimensions: Dimensions) -> HeldPlace:
        asked = {dimensions.names[column]: dimensions.format(column, amount) for column, amount in task.template.needs if column != PODS}
        return cls(node, until, whole, asked, task.role)


_places = msgspec.json.Decoder(list[HeldPlace])


def held_places(job: Job) -> list[HeldPlace]:
    """The places that are held for pods of the job; none if its annotation has been changed by others so that it cannot be read."""
    try:
        return _places.decode(job.held_places) if job.held_places else []
    except msgspec.DecodeError:
        return []
