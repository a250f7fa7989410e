"""The work queue: which controller has to reconcile which key, and when.

Namespaces take turns, so that one with many keys does not keep the others waiting, nor does a key with many writes, which is put back after
some of them. Within a namespace: first come, first served. A key that is queued already is not queued twice. Keys for a later time are in
a heap by time.
The queue has no clock and carries out nothing: its owner passes changes to it and takes the next key from it.
If a controller fails on a changed object, the error is logged and the object is skipped: it must not stop work on other objects.
"""

import heapq
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from pumice.api.kinds import POD, kind_of
from pumice.controllers.controller import EVERY, Among, Controller, KeysOf, Lister, ObjectChange


class QueuedKey(NamedTuple):
    controller: Controller
    key: Hashable

    @property
    def place(self) -> Hashable:
        """The same for all keys of one controller about one object. Keys are named tuples with the object's name."""
        names = tuple(getattr(self.key, field, "") for field in ("kind", "namespace", "job", "name"))
        return self.controller.name, names if any(names) else self.key


class KeyQueue:
    """The queue of keys for several controllers."""

    def __init__(self, controllers: Sequence[Controller]) -> None:
        self._watchers: dict[str, list[tuple[Controller, KeysOf]]] = {}
        for controller in controllers:
            for kind, keys_of in controller.watches.items():
                self._watchers.setdefault(kind, []).append((controller, keys_of))
        self._ready: dict[str, deque[QueuedKey]] = {}  #: by namespace, the one whose turn is next first
        self._waiting: set[tuple[str, Hashable]] = set()  #: all keys in `_ready`
        self._begun: dict[
            str, deque[QueuedKey]
        ] = {}  #: by namespace: keys that are gone on with before others; all of these namespaces are in `_ready`
        self._later: list[tuple[float, int, QueuedKey]] = []  #: heap
        self._due: dict[tuple[str, Hashable], float] = {}  #: the earliest time of each key in `_later`
        self._serial = 0

    def __len__(self) -> int:
        """The number of keys that can be reconciled at once."""
        return len(self._waiting)

    def observe(self, changes: Iterable[ObjectChange], lister: Lister) -> None:
        """Queue the keys that these changes touch."""
        asked: dict[tuple[str, bool], list[tuple[Controller, KeysOf]]] = {}  #: by kind, and whether the change concerns owners
        for change in changes:
            concerns_owners, kind = change.concerns_owners, kind_of(change.object)
            if kind == POD and not concerns_owners and not change.is_of_interest:
                kind = EVERY
            if (kind, concerns_owners) not in asked:
                asked[kind, concerns_owners] = self._asked(kind, concerns_owners, lister)
            for controller, keys_of in asked[kind, concerns_owners]:
                try:
                    keys = tuple(keys_of(change, lister))
                except Exception:
                    _log_fault(controller, change)
                    continue
                for key in keys:
                    self.add(controller, key)

    def _asked(self, kind: str, concerns_owners: bool, lister: Lister) -> list[tuple[Controller, KeysOf]]:
        """Who is asked about changes of a kind; of the kind EVERY, those who are asked about all changes."""
        return [
            (controller, keys_of)
            for each in dict.fromkeys((kind, EVERY))
            for controller, keys_of in self._watchers.get(each, ())
            if not isinstance(keys_of, Among) or keys_of.is_asked(lister, concerns_owners)
        ]

    def add(self, controller: Controller, key: Hashable) -> None:
        if (controller.name, key) not in self._waiting:
            self._waiting.add((controller.name, key))
            self._ready.setdefault(getattr(key, "namespace", ""), deque()).append(QueuedKey(controller, key))

    def put_back(self, work: QueuedKey) -> None:
        """Queue a key that was begun, for the next turn of its namespace. No other key of the namespace has its turn before it is done."""
        namespace = getattr(work.key, "namespace", "")
        self._begun.setdefault(namespace, deque()).append(work)
        self._ready.setdefault(namespace, deque())

    def add_later(self, when: float, controller: Controller, key: Hashable) -> None:
        """Queue a key for a later time, unless it is queued for an earlier time already."""
        identity = (controller.name, key)
        if self._due.get(identity, float("inf")) <= when:
            return
        self._due[identity] = when
        self._serial += 1
        heapq.heappush(self._later, (when, self._serial, QueuedKey(controller, key)))

    def next_time(self) -> float | None:
        """The time at which the earliest of the later keys is due; None if there is none."""
        return self._later[0][0] if self._later else None

    def pop(self, now: float) -> QueuedKey | None:
        """Take the next key that is due from the queue; None if no key is due."""
        while self._later and self._later[0][0] <= now:
            when, _, work = heapq.heappop(self._later)
            identity = (work.controller.name, work.key)
            if self._due.get(identity) == when:
                del self._due[identity]
                self.add(*work)
        if not self._ready:
            return None
        namespace = next(iter(self._ready))
        keys = self._ready.pop(namespace)
        begun = self._begun.get(namespace)
        if begun:
            work = begun.popleft()
            if not begun:
                del self._begun[namespace]
        else:
            work = keys.popleft()
            self._waiting.discard((work.controller.name, work.key))
        if keys or namespace in self._begun:
            self._ready[namespace] = keys
        return work


def _log_fault(controller: Controller, change: ObjectChange) -> None:
    import logging  # imported only if there is an error to log

    logging.getLogger(__name__).exception("%s passes over %s %s", controller.name, kind_of(change.object), change.object["metadata"])
