"""What is done with pods, together with the events that `kubectl describe` shows of it, in Kubernetes' words."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from pumice.controllers.objects import Object, name_of
from pumice.controllers.writes import Create, Emit, Write, delete

BURST = 500  #: pods made at a time


def created(owner: Object, pods: Iterable[Object]) -> list[Write]:
    """Make pods, so many at a time; their coming brings the next. The owner is told, also if one is refused."""
    writes: list[Write] = []
    for pod in islice(pods, BURST):
        writes += Create(pod, owner), Emit(owner, "Normal", "SuccessfulCreate", f"Created pod: {name_of(pod)}")
    return writes


def ended(owner: Object, pods: Iterable[Object]) -> list[Write]:
    """Delete pods."""
    return [write for pod in pods for write in (delete(pod), Emit(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {name_of(pod)}"))]


def of_set(verb: str, subject: Object, owner: Object) -> Emit:
    """A StatefulSet speaks in another way: `verb` is create or delete."""
    text = f"{verb} {subject['kind']} {name_of(subject)} in StatefulSet {name_of(owner)} successful"
    return Emit(owner, "Normal", f"Successful{verb.capitalize()}", text)
