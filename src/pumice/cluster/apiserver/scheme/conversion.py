"""Objects as a version of their kind shows them (`seen`), and objects of custom kinds as the webhook of their definition converts them.

What has been converted is kept by uid, version and resourceVersion: a list asks about the objects that it lacks in one call, and a watch
asks about an object once. A write in a version that is not stored is converted before it is checked, and its answer before it is stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from pumice.api import Object
from pumice.cluster.apiserver.pending_calls import OutsideCall, Pending, Unanswered
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.status import StatusError

if TYPE_CHECKING:
    from pumice.cluster.apiserver.store import Store

MOST_KEPT = 50_000
TIMEOUT_S = 30.0
Key = tuple[str, str, str]


class Converter:
    def __init__(self, store: Store, definition: Object) -> None:
        self._store = store
        self._webhook: Object = definition["spec"]["conversion"].get("webhook") or {}
        self._kind = definition["spec"]["names"]["kind"]
        self._kept: dict[Key, Object] = {}

    def seen(self, api_version: str, obj: Object) -> Object:
        """A stored object in this version. Raises Pending, StatusError."""
        self.prepare(api_version, (obj,))
        return self._kept[_key(api_version, obj)] if obj["apiVersion"] != api_version else obj

    def prepare(self, api_version: str, objects: Iterable[Object]) -> None:
        """Have stored objects converted. Raises Pending if some are not yet, StatusError."""
        missing = [obj for obj in objects if obj["apiVersion"] != api_version and _key(api_version, obj) not in self._kept]
        if missing:
            raise Pending(OutsideCall(("conversion", api_version), partial(self._keep, api_version, missing)))

    async def _keep(self, api_version: str, objects: list[Object]) -> None:
        if len(self._kept) + len(objects) > MOST_KEPT:
            self._kept.clear()
        for obj, converted in zip(objects, await self._convert(api_version, objects), strict=True):
            self._kept[_key(api_version, obj)] = converted

    def converted(self, api_version: str, obj: Object) -> Object:
        """An object of a write in this version. Raises Pending, StatusError."""
        if obj["apiVersion"] == api_version:
            return obj
        metadata = obj["metadata"]
        about = ("conversion", api_version, metadata.get("namespace"), metadata.get("name"), metadata.get("resourceVersion"))
        found: list[Object] = self._store.answer(OutsideCall(about, partial(self._convert, api_version, [obj])))
        return found[0]

    async def _convert(self, api_version: str, objects: list[Object]) -> list[Object]:
        """Raises StatusError."""
        uid = self._store.new_uid()
        request = {"uid": uid, "desiredAPIVersion": api_version, "objects": objects}
        body = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request}
        try:
            answer = await self._store.caller.post(self._webhook.get("clientConfig") or {}, "timeout=30s", body, TIMEOUT_S)
            return [_same(obj, one) for obj, one in zip(objects, _objects(answer, uid), strict=True)]
        except (Unanswered, ValueError, KeyError, TypeError) as error:
            group, version = objects[0]["apiVersion"].split("/")
            text = f"conversion webhook for {group}/{version}, Kind={self._kind} failed: {error}"
            raise StatusError(500, "InternalError", text) from None


def _key(api_version: str, obj: Object) -> Key:
    return api_version, obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]


def _objects(answer: Object, uid: str) -> list[Any]:
    """Raises Unanswered."""
    response = answer.get("response") or {}
    result = response.get("result") or {}
    if response.get("uid") != uid or result.get("status") != "Success":
        raise Unanswered(result.get("message") or "the answer is not a successful ConversionReview with the uid of the request")
    found: list[Any] = response.get("convertedObjects") or []
    return found


def _same(obj: Object, converted: Object) -> Object:
    """The converted object, with the metadata that a conversion may not change."""
    own, metadata = obj["metadata"], converted["metadata"]
    changeable = {key: metadata[key] for key in ("labels", "annotations") if key in metadata}
    return converted | {"metadata": {key: value for key, value in own.items() if key not in ("labels", "annotations")} | changeable}


def seen(kind: ServedKind, obj: Object) -> Object:
    """A stored object as this version of its kind shows it."""
    if obj["apiVersion"] == kind.api_version:
        return obj
    if kind.convert is not None:
        return kind.convert.seen(kind.api_version, obj)
    if kind.from_stored is not None:
        return kind.from_stored(obj)
    return obj | {"apiVersion": kind.api_version}


def seen_early(kind: ServedKind, obj: Object) -> Object:
    """An object that is about to be stored, as this version of its kind shows it: a conversion must be there before the write is done."""
    return seen(kind, obj) if kind.convert is None else kind.convert.converted(kind.api_version, obj)


def seen_late(kind: ServedKind, shown: Object, obj: Object) -> Object:
    """The same object, once it is stored."""
    if kind.convert is None:
        return seen(kind, obj)
    return obj if obj["apiVersion"] == kind.api_version else shown | {"metadata": obj["metadata"]}


def stored(kind: ServedKind, obj: Object) -> Object:
    if kind.stored_as is not None and kind.convert is not None:
        return kind.convert.converted(kind.stored_as.api_version, obj)
    return obj if kind.to_stored is None else kind.to_stored(obj)
