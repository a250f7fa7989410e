"""AdmissionReviews (v1): the questions and their answers, pure, given the rules' view of the cluster; and the rules on a live cluster, as
HTTP handlers.

An object that the API server sends may lack its name (generateName) and its namespace. The rules see both, and the patch leaves both alone.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from pumice.api import kinds
from pumice.api.json_objects import Object, controller_of, key_of, uid_of
from pumice.api.kinds import kind_of
from pumice.client.transport import ApiError, KubeError, ListScope, Transport, as_dict, decode
from pumice.controllers import admission
from pumice.controllers.admission.webhooks import Webhook
from pumice.controllers.controller import Lister
from pumice.http.listener import Handler
from pumice.http.messages import Request, Response
from pumice.http.pool import fetch
from pumice.live.object_cache import ADMISSION, ObjectCache, followed, scopes, whole

# The JSON patch (RFC 6902) that turns one JSON value into another: the answer of a mutating webhook.

Operation = dict[str, Any]


def difference(old: Any, new: Any, path: str = "") -> Iterator[Operation]:
    """The operations that turn `old` into `new`, to be applied in order. Lists that changed their length are replaced whole."""
    if old == new and type(old) is type(new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _of_objects(old, new, path)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from difference(before, after, f"{path}/{index}")
    else:
        yield {"op": "replace", "path": path, "value": new}


def _of_objects(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Operation]:
    for key in sorted(old.keys() - new.keys()):
        yield {"op": "remove", "path": _below(path, key)}
    for key in sorted(new):
        if key in old:
            yield from difference(old[key], new[key], _below(path, key))
        else:
            yield {"op": "add", "path": _below(path, key), "value": new[key]}


def _below(path: str, key: str) -> str:
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"


_GENERATED = "xxxxx"  #: stands for what the server will add to a generateName


class NotAReview(ValueError):
    """A body that no API server sends."""


class AdmissionRequest(msgspec.Struct):
    uid: str
    operation: str
    name: str = ""
    namespace: str = ""
    object: dict[str, Any] | None = None
    oldObject: dict[str, Any] | None = None


class AdmissionReview(msgspec.Struct):
    request: AdmissionRequest
    apiVersion: str = ""
    kind: str = ""


_review = msgspec.json.Decoder(AdmissionReview)


def read(body: bytes) -> AdmissionReview:
    """The AdmissionReview in a request body. Raises NotAReview."""
    try:
        review = decode(_review, body)
    except msgspec.DecodeError as error:
        raise NotAReview(f"the body is not an AdmissionReview: {error}") from None
    if review.apiVersion != "admission.k8s.io/v1" or review.kind != "AdmissionReview":
        raise NotAReview(f"{review.apiVersion} {review.kind} is not admission.k8s.io/v1 AdmissionReview")
    return review


def problems(review: AdmissionReview, lister: Lister, settings: admission.Settings) -> list[admission.Problem]:
    """The problems that a validating webhook finds."""
    request = review.request
    new, old = _complete(request.object, request), _complete(request.oldObject, request)
    if new is None and old is None:
        return []  # a server too old to send what it deletes
    return admission.validate(request.operation, new, old, lister, settings)


def patch(review: AdmissionReview, lister: Lister, settings: admission.Settings) -> list[dict[str, Any]]:
    """The JSON patch of a mutating webhook."""
    subject = _complete(review.request.object, review.request)
    if subject is None:
        return []
    return list(difference(subject, admission.mutate(review.request.operation, subject, lister, settings)))


def submitted(review: AdmissionReview) -> Object | None:
    """The object, if the request creates a job or a pod without a controller. None for all other requests."""
    made = _complete(review.request.object, review.request) if review.request.operation == admission.CREATE else None
    return made if made is not None and kind_of(made) in (kinds.JOB, kinds.POD) and controller_of(made) is None else None


def judged(review: AdmissionReview, found: list[admission.Problem], warnings: Sequence[str] = ()) -> dict[str, Any]:
    verdict: dict[str, Any] = {"allowed": not found, **({"warnings": list(warnings)} if warnings else {})}
    if found:
        verdict["status"] = {"code": 400, "message": "; ".join(map(str, found))}
    return _response(review, verdict)


def mutated(review: AdmissionReview, operations: list[dict[str, Any]]) -> dict[str, Any]:
    verdict: dict[str, Any] = {"allowed": True}
    if operations:
        verdict |= {"patchType": "JSONPatch", "patch": base64.b64encode(msgspec.json.encode(operations)).decode()}
    return _response(review, verdict)


def _response(review: AdmissionReview, verdict: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": review.apiVersion, "kind": review.kind, "response": {"uid": review.request.uid, **verdict}}


def _complete(subject: Object | None, request: AdmissionRequest) -> Object | None:
    if subject is None:
        return None
    metadata = subject.get("metadata") or {}
    name = metadata.get("name") or request.name or (metadata.get("generateName") or "") + _GENERATED
    place = {"namespace": metadata.get("namespace") or request.namespace} if request.namespace else {}
    return {**subject, "metadata": {**metadata, "name": name, **place}}


# The rules on a live cluster.
#
# A refusal may come from a cache that lags behind: a queue that was created a moment ago, a child that was just deleted. So before a
# request is refused, the kinds that the rules look up are read from the API server itself, and the request is judged once more. Kinds that
# our role may list but not watch are read before every answer. The rules do without kinds that it may not read at all.

log = logging.getLogger(__name__)
FITS = "/fits"  #: the path at which a scheduler answers whether a job can ever run
PATIENCE_S = 1.0


class AdmissionAnswers:
    """Answers AdmissionReviews by the rules, as HTTP handlers. `rules` may be replaced at any time."""

    def __init__(self, transport: Transport, rules: admission.Settings, scheduler: str = "") -> None:
        """`scheduler`: the URL of the scheduler that says which jobs can never run; empty: none is asked."""
        self.rules = rules
        self._scheduler = scheduler
        self.cache = ObjectCache()
        self._transport = transport
        self._reading: asyncio.Task[None] | None = None
        self._unreadable: set[str] = set()  #: kinds that may not even be listed
        self.following = followed(transport, self.cache, scopes(ADMISSION))

    def routes(self, hooks: Sequence[Webhook]) -> dict[str, Handler]:
        return {hook.path: self._handler(hook) for hook in hooks}

    def _handler(self, hook: Webhook) -> Handler:
        async def answer(request: Request) -> Response:
            try:
                asked = read(request.body)
            except NotAReview as error:
                return Response.text(str(error), 400)
            self.cache.take()  # drops the changes, which are not used here
            if self._is_stale():
                await self._read_anew()
            body = mutated(asked, patch(asked, self.cache, self.rules)) if hook.mutating else await self._judge(asked)
            return Response.json(body)

        return answer

    def _is_stale(self) -> bool:
        """Whether the cache may be out of date, because there is a kind that we may list but not watch."""
        return any(reflector.forbidden and kind not in self._unreadable for kind, reflector in self.following.items())

    async def _judge(self, asked: AdmissionReview) -> dict[str, object]:
        found = problems(asked, self.cache, self.rules)
        if found:
            await self._read_anew()
            found = problems(asked, self.cache, self.rules)
        return judged(asked, found, [] if found else await self._warnings(asked))

    async def _warnings(self, asked: AdmissionReview) -> list[str]:
        """The scheduler's warning if the submitted object can never run. A scheduler that does not answer soon is not waited for."""
        what = submitted(asked) if self._scheduler else None
        if what is None:
            return []
        try:
            answer = await fetch(f"{self._scheduler}{FITS}", body=msgspec.json.encode(what), timeout_s=PATIENCE_S)
        except (OSError, ValueError) as error:
            log.debug("the scheduler does not say whether it can run: %s", error)
            return []
        text = bytes(answer.body).decode(errors="replace").strip()
        return [text] if answer.status == 200 and text else []

    async def _read_anew(self) -> None:
        """Bring the cache up to date. Several refusals at the same time share one read, which begins after them."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        else:
            await asyncio.wait([self._reading])
            if self._reading.done():
                self._reading = asyncio.create_task(self._read())
        await asyncio.shield(self._reading)

    async def _read(self) -> None:
        for kind, scope in scopes(ADMISSION).items():
            if kind in self._unreadable and self.following[kind].forbidden:
                continue
            try:
                await self._read_kind(kind, scope)
                self._unreadable.discard(kind)
            except KubeError as error:
                if isinstance(error, ApiError) and error.code == 403:
                    self._unreadable.add(kind)
                else:
                    log.warning("%s, which the rules look up, cannot be read: %s", scope.resource.plural, error)

    async def _read_kind(self, kind: str, scope: ListScope) -> None:
        there = set()
        async for page in self._transport.pages(scope):
            for raw in page.items:
                subject = whole(as_dict(raw), scope.resource)
                there.add(uid_of(subject))
                self.cache.put(kind, subject)
        for subject in list(self.cache.all(kind)):
            if uid_of(subject) not in there:
                self.cache.removed(kind, key_of(subject), uid_of(subject))
