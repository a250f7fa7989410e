"""Pods are mostly copies of each other: what was found out about a spec is not found out again."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from pumice.api import Object

KEPT = 512  #: specs
LONGEST = 16_384  #: bytes

Known = TypeVar("Known")


@dataclass(slots=True)
class CompletedSpec:
    """What a spec becomes in a new pod."""

    json: bytes  #: of the spec with its defaults
    quality: str  #: the QoS class of the pod
    fields: Object | None = None  #: its `fieldsV1`, once they are known


class KnownSpecs(Generic[Known]):
    """What is known of specs, as they are encoded."""

    def __init__(self) -> None:
        self._known: dict[bytes, Known] = {}  #: the oldest first

    def get(self, spec: bytes) -> Known | None:
        return self._known.get(spec)

    def add(self, spec: bytes, known: Known) -> None:
        if len(spec) > LONGEST:
            return
        if len(self._known) == KEPT:
            del self._known[next(iter(self._known))]
        self._known[spec] = known
