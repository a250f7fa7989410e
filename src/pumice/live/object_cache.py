"""A live cluster as controllers and admission rules see it: their `Lister`, kept by reflectors and by the answers to our own writes.

Answers go in at once, so that a decision always sees the writes made before it; what a watch tells later of the same version is no news,
and what it tells of an older one is dropped. An object that was seen to go does not come back by a late answer. The server's bookkeeping
(managedFields) and the images of nodes are left out: nobody here reads them, and they are half of the memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping

from pumice.api import kinds
from pumice.api.annotations import JOB_NAME
from pumice.api.json_objects import Key, Object, key_of, labels_of, uid_of
from pumice.api.kinds import Kind
from pumice.client.reflector import DEFAULT_PACE, Change, Deleted, Pace, Reflector, dict_metadata
from pumice.client.transport import ListScope, Transport, as_dict
from pumice.controllers.controller import IndexKey, KeyIndex, ObjectChange

BURIED = 10_000  #: uids of objects that went, remembered for late answers


class ObjectCache:
    """A Lister. `wake` is called when there is something to `take` after there was nothing."""

    def __init__(self) -> None:
        self.wake: Callable[[], None] = lambda: None
        self._followers: dict[str, Callable[[Object], bool]] = {}
        self._objects: dict[str, dict[str, dict[str, Object]]] = {}  #: by kind, namespace, name
        self._index = KeyIndex()
        self._changes: list[ObjectChange] = []
        self._buried: OrderedDict[str, None] = OrderedDict()

    # What controllers look up

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        return self._objects.get(kind, {}).get(namespace, {}).get(name)

    def all(self, kind: str, namespace: str | None = None) -> Iterator[Object]:
        namespaces = self._objects.get(kind, {})
        for each in sorted(namespaces) if namespace is None else (namespace,):
            found = namespaces.get(each, {})
            yield from [found[name] for name in sorted(found)]

    def by_field(self, kind: str, path: str, value: str) -> Iterator[Object]:
        return self._found(self._index.with_value(kind, path, value))

    def dependents(self, uid: str, kind: str | None = None) -> Iterator[Object]:
        return self._found(self._index.owned_by(uid, kind))

    def strays(self, kind: str, namespace: str) -> Iterator[Object]:
        return self._found(self._index.strays(kind, namespace))

    def kinds(self) -> Iterator[str]:
        return iter(sorted(self._objects))

    def count(self, kind: str) -> int:
        return sum(map(len, self._objects.get(kind, {}).values()))

    def _found(self, places: Iterable[IndexKey]) -> Iterator[Object]:
        found = (self.get(kind, *key) for kind, key in places)
        return (subject for subject in found if subject is not None)

    # What keeps it

    def take(self) -> list[ObjectChange]:
        """What has changed since the last time, in order."""
        taken, self._changes = self._changes, []
        return taken

    def delivery(self, kind: str, resource: Kind) -> Callable[[Change[Object]], None]:
        """Where the reflector of a kind delivers."""

        def deliver(change: Change[Object]) -> None:
            if isinstance(change, Deleted):
                self.removed(kind, Key(change.namespace, change.name), change.uid)
            else:
                self.put(kind, whole(change.object, resource))

        return deliver

    def follow(self, kind: str, heard: Callable[[Object], bool]) -> None:
        """Who delivers a kind is told of answers: where the watch never showed an object, it has to tell of its end all the same."""
        self._followers[kind] = heard

    def answered(self, kind: str, subject: Object) -> None:
        """An object as the answer to a call has it."""
        if kind not in self._followers or self._followers[kind](subject):
            self.put(kind, subject)

    def put(self, kind: str, subject: Object) -> None:
        """An object as the server has it, unless something newer is known."""
        key = key_of(subject)
        old = self.get(kind, *key)
        if uid_of(subject) in self._buried or (old is not None and uid_of(old) == uid_of(subject) and _version(old) >= _version(subject)):
            return
        if old is not None and uid_of(old) != uid_of(subject):
            self.removed(kind, key, uid_of(old))
            old = None
        self._objects.setdefault(kind, {}).setdefault(key.namespace, {})[key.name] = subject
        self._heard(kind, key, old, subject)

    def assume(self, kind: str, subject: Object) -> None:
        """What a known object will be, until the server tells something newer."""
        key = key_of(subject)
        old = self.get(kind, *key)
        self._objects[kind][key.namespace][key.name] = subject
        self._heard(kind, key, old, subject)

    def removed(self, kind: str, key: Key, uid: str) -> None:
        """An object is gone; another of its name stays."""
        self._buried[uid] = None
        if len(self._buried) > BURIED:
            self._buried.popitem(last=False)
        old = self.get(kind, *key)
        if old is not None and uid_of(old) in ("", uid):
            del self._objects[kind][key.namespace][key.name]
            self._heard(kind, key, old, None)

    def _heard(self, kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        self._index.changed(kind, key, old, new)
        self._changes.append(ObjectChange(old, new))
        if len(self._changes) == 1:
            self.wake()


def whole(item: Object, resource: Kind) -> Object:
    """An item of a list or an answer with its kind in it, and without what nobody reads."""
    item["apiVersion"], item["kind"] = resource.api_version, resource.kind
    item["metadata"].pop("managedFields", None)
    if resource.kind == "Node":
        (item.get("status") or {}).pop("images", None)
    return item


def _version(subject: Object) -> int:
    return int(subject["metadata"].get("resourceVersion") or 0)


# Where controllers' kinds live on an API server, and which objects of each are read.
#
# Of the kinds that hold everybody's secrets and settings, only what job plugins made is read: it carries a label. What they made before
# they labelled it is met again when its creation finds it there.

RESOURCES: dict[str, Kind] = {
    each.name: each
    for each in (
        kinds.PODS,
        kinds.NODES,
        kinds.NAMESPACES,
        kinds.SERVICES,
        kinds.SECRETS,
        kinds.CONFIG_MAPS,
        kinds.VOLUME_CLAIMS,
        kinds.NETWORK_POLICIES,
        kinds.PRIORITY_CLASSES,
        kinds.REPLICA_SETS,
        kinds.STATEFUL_SETS,
        kinds.DAEMON_SETS,
        kinds.BATCH_JOBS,
        kinds.QUEUES,
        kinds.POD_GROUPS,
        kinds.JOBS,
        kinds.CRON_JOBS,
        kinds.COMMANDS,
        kinds.JOB_TEMPLATES,
        kinds.JOB_FLOWS,
        kinds.HYPER_NODES,
    )
}

LABELLED = frozenset({kinds.SERVICE, kinds.SECRET, kinds.CONFIG_MAP, kinds.NETWORK_POLICY})
REQUIRED = frozenset({kinds.POD, kinds.QUEUE, kinds.POD_GROUP, kinds.JOB, kinds.COMMAND})  #: the others a server may be without
ADMISSION = (kinds.QUEUE, kinds.NAMESPACE)  #: what admission rules look up


def single_scopes(wanted: Iterable[tuple[str, Key]]) -> dict[str, ListScope]:
    """By kind and name: one object each."""
    return {
        f"{kind} {key.namespace}/{key.name}": ListScope(RESOURCES[kind], key.namespace, field_selector=f"metadata.name={key.name}")
        for kind, key in wanted
    }


def is_shown(subject: Object, scope: ListScope) -> bool:
    """Whether a scope of these has the object."""
    return not scope.label_selector or scope.label_selector in labels_of(subject)


def scopes(wanted: Iterable[str]) -> dict[str, ListScope]:
    return {kind: ListScope(RESOURCES[kind], label_selector=JOB_NAME if kind in LABELLED else "") for kind in wanted}


def followed(
    transport: Transport, cache: ObjectCache, wanted: Mapping[str, ListScope], pace: Pace = DEFAULT_PACE
) -> dict[str, Reflector[Object]]:
    """A reflector for each scope, delivering into the cache."""

    def reflector(name: str, scope: ListScope) -> Reflector[Object]:
        kind = scope.resource.name
        deliver = cache.delivery(kind, scope.resource)
        made = Reflector(transport, scope, as_dict, deliver, metadata=dict_metadata, pace=pace, optional=name not in REQUIRED)
        if not scope.field_selector:
            cache.follow(kind, lambda subject: not is_shown(subject, scope) or made.heard(dict_metadata(subject)))
        return made

    return {name: reflector(name, scope) for name, scope in wanted.items()}
