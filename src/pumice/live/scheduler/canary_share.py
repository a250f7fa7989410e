"""A `CanaryShare` is some queues and namespaces: what is in them is decided and written, the rest is left to another scheduler.

Pods outside of the share belong to that scheduler: they hold their room, and are neither placed nor evicted. PodGroups outside of it are
ignored, and the other scheduler writes the status of queues.
"""

from collections.abc import Iterable

import msgspec

from pumice.api import InputError
from pumice.api.annotations import GROUP_NAME
from pumice.api.pod import Pod
from pumice.api.volcano import PodGroup


class CanaryShare(msgspec.Struct, frozen=True):
    queues: frozenset[str]
    namespaces: frozenset[str]

    def has(self, namespace: str, queue: str) -> bool:
        return namespace in self.namespaces or queue in self.queues

    def __str__(self) -> str:
        return ", ".join([*(f"queue/{each}" for each in sorted(self.queues)), *(f"namespace/{each}" for each in sorted(self.namespaces))])


def share_of(texts: Iterable[str]) -> CanaryShare | None:
    """The share that texts like queue/NAME and namespace/NAME name. None if there are none. Raises InputError."""
    named: dict[str, set[str]] = {"queue": set(), "namespace": set()}
    for text in texts:
        kind, _, name = text.partition("/")
        if kind not in named or not name:
            raise InputError(f'"{text}" is no share; write queue/NAME or namespace/NAME', where="--canary")
        named[kind].add(name)
    return CanaryShare(*map(frozenset, named.values())) if any(named.values()) else None


class ShareFilter:
    """Decides which pods are in the share. That depends on the queue of their PodGroup, which may come after them."""

    def __init__(self, share: CanaryShare, default_queue: str) -> None:
        self._share = share
        self._default_queue = default_queue
        self._queues: dict[str, str] = {}  #: the queue of each PodGroup
        self._early: dict[str, dict[str, Pod]] = {}  #: pods whose PodGroup has not come yet, by its key and their name

    def has_pod(self, pod: Pod) -> bool:
        namespace, named = pod.metadata.namespace or "default", (pod.metadata.annotations or {}).get(GROUP_NAME)
        group = f"{namespace}/{named}"
        if named and group not in self._queues:
            self._early.setdefault(group, {})[pod.metadata.name] = pod
        return self._share.has(namespace, self._queues.get(group, ""))

    def has_group(self, group: PodGroup) -> bool:
        queue = group.spec.queue or self._default_queue
        self._queues[f"{group.metadata.namespace}/{group.metadata.name}"] = queue
        return self._share.has(group.metadata.namespace or "default", queue)

    def early(self, key: str) -> Iterable[Pod]:
        """The pods of a PodGroup that came before it."""
        return self._early.pop(key, {}).values()

    def gone(self, kind: str, key: str) -> None:
        if kind == "PodGroup":
            self._queues.pop(key, None)
        elif kind == "Pod":
            namespace, _, name = key.partition("/")
            for group in [group for group, pods in self._early.items() if name in pods and group.startswith(f"{namespace}/")]:
                self._early[group].pop(name)
                if not self._early[group]:
                    del self._early[group]
