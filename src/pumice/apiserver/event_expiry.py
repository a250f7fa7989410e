"""Events are kept for an hour after they were last written, as in every cluster: nobody deletes them, and they must not fill the memory."""

from __future__ import annotations

from collections import deque

from pumice.apiserver.status import ApiError
from pumice.apiserver.store import Store
from pumice.apiserver.watching import Event, Key

KEPT_S = 3600.0
EVENTS = "events"
AT_ONCE = 1000  #: deleted by one call at most


class EventExpiry:
    """Remembers when each event was written last. The clock may be any, as long as it does not go back."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._storage = store.kind(EVENTS).storage
        self._written: deque[tuple[float, Key, str]] = deque()  #: when, what, and the version that it had then; oldest first
        for obj in store.all(EVENTS):
            self._note((obj["metadata"]["namespace"], obj["metadata"]["name"]), obj["metadata"]["resourceVersion"])
        store.ledger.listeners.append(self._heard)

    def _heard(self, storage: str, event: Event) -> None:
        if storage == self._storage and event.type != "DELETED":
            self._note(event.key, event.object["metadata"]["resourceVersion"])

    def _note(self, key: Key, version: str) -> None:
        self._written.append((self._store.now(), key, version))

    def sweep(self) -> None:
        """Delete what is too old and was not written again."""
        too_old = self._store.now() - KEPT_S
        for _ in range(AT_ONCE):
            if not self._written or self._written[0][0] > too_old:
                return
            _, (namespace, name), version = self._written.popleft()
            obj = self._store.find(EVENTS, namespace, name)
            if obj is not None and obj["metadata"]["resourceVersion"] == version:
                try:
                    self._store.delete(EVENTS, name, namespace)
                except ApiError:
                    continue  # a finalizer of somebody's, who will write it again
