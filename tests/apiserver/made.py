"""Stores and objects for the tests of this room."""

from __future__ import annotations

import itertools
from collections.abc import Set
from typing import Any

from pumice.cluster.apiserver import AdmissionRule, Store
from pumice.cluster.apiserver.storage import StoreJournal

EPOCH_S = 1_800_000_000.0


class Clock:
    """Time that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = EPOCH_S

    def __call__(self) -> float:
        return self.now


def store(
    clock: Clock | None = None, rules: tuple[AdmissionRule, ...] = (), journal: StoreJournal | None = None, gates: Set[str] = frozenset()
) -> Store:
    """A store with a namespace, and uids that are the same in every run."""
    numbers = itertools.count()
    uids = {"new_uid": lambda: f"00000000-0000-0000-0000-{next(numbers):012x}"}
    made = Store(clock=clock or Clock(), rules=rules, journal=journal, gates=frozenset(gates), **uids)
    made.create("namespaces", {"metadata": {"name": "default"}})
    return made


def pod(name: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox"}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": {"containers": [container]} | spec}
