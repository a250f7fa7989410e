"""Objects that could not be applied to the kept state: each is tried again, with growing pauses, until it can be, is changed, or is gone.

An error of an object is logged once for as long as it stays the same, and counted each time.
"""

import logging
from typing import Any

from msgspec import Struct

from pumice.client.client import Backoff
from pumice.client.known_versions import Change, Deleted
from pumice.live.scheduler.metrics import LiveMetrics

PAUSES = Backoff(2.0, 600.0)
NEVER = float("inf")
KindKey = tuple[str, str, str]
log = logging.getLogger(__name__)


class _Trouble(Struct, frozen=True):
    change: Change[Any]
    fault: str
    failures: int
    due: float


class UnappliedObjects:
    """The changes that could not be applied: the newest of each object, by kind, namespace and name."""

    def __init__(self, metrics: LiveMetrics) -> None:
        self._troubles: dict[KindKey, _Trouble] = {}
        self._metrics = metrics

    def __len__(self) -> int:
        return len(self._troubles)

    def failed(self, kind: str, change: Change[Any], error: Exception, now: float) -> None:
        key, fault = _key(kind, change), f"{type(error).__name__}: {error}"
        before = self._troubles.get(key)
        self._metrics.refused.add(kind)
        if before is None or before.fault != fault:
            name = "/".join(filter(None, key[1:])) or "without a name"
            log.error("%s %s was passed over, and is tried again: %s", kind, name, error, exc_info=not isinstance(error, ValueError))
        failures = before.failures if before is not None else 0
        self._troubles[key] = _Trouble(change, fault, failures + 1, now + PAUSES.delay_s(failures, 1.0))

    def succeeded(self, kind: str, change: Change[Any]) -> None:
        if self._troubles:
            self._troubles.pop(_key(kind, change), None)

    def due(self, now: float) -> list[tuple[str, Change[Any]]]:
        return [(kind, trouble.change) for (kind, _, _), trouble in self._troubles.items() if trouble.due <= now]

    def next_due(self) -> float:
        return min((trouble.due for trouble in self._troubles.values()), default=NEVER)


def _key(kind: str, change: Change[Any]) -> KindKey:
    if isinstance(change, Deleted):
        return kind, change.namespace, change.name
    meta = getattr(change.object, "metadata", None)
    return kind, getattr(meta, "namespace", None) or "", getattr(meta, "name", None) or ""
