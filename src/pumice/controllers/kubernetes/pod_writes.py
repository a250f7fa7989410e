"""The writes that make and end pods, together with the Events that `kubectl describe` shows about them, in Kubernetes' words."""

from collections.abc import Iterable
from itertools import islice

from pumice.api import Object, name_of
from pumice.controllers.writes import Create, Emit, Write, delete


def created(owner: Object, pods: Iterable[Object], most: int) -> list[Write]:
    """The writes that make pods, at most so many of them. The owner gets an Event for each of them."""
    writes: list[Write] = []
    for pod in islice(pods, most):
        writes += Create(pod, owner), Emit(owner, "Normal", "SuccessfulCreate", f"Created pod: {name_of(pod)}")
    return writes


def ended(owner: Object, pods: Iterable[Object]) -> list[Write]:
    """The writes that delete pods, each with an Event for the owner."""
    return [write for pod in pods for write in (delete(pod), Emit(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {name_of(pod)}"))]


def of_set(verb: str, subject: Object, owner: Object) -> Emit:
    """The Event about an object of a StatefulSet, which has other words than the above. `verb` is create or delete."""
    text = f"{verb} {subject['kind']} {name_of(subject)} in StatefulSet {name_of(owner)} successful"
    return Emit(owner, "Normal", f"Successful{verb.capitalize()}", text)
