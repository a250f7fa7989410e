"""The rules on a live cluster, as HTTP handlers.

A refusal may come from a cache that lags behind: a queue that was created a moment ago, a child that was just deleted. So before anything
is refused, what the rules look up is read from the API server itself, and the question asked once more. What the role lets us list but not
watch is read before every answer. What it does not let us read at all, the rules do without.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import msgspec

from pumice.api.json_objects import key_of, uid_of
from pumice.client.transport import ApiError, KubeError, ListScope, Transport
from pumice.controllers import admission
from pumice.http.listener import Handler
from pumice.http.messages import Request, Response
from pumice.http.pool import fetch
from pumice.live.object_cache import ADMISSION, ObjectCache, decode, followed, scopes, whole
from pumice.live.webhooks import review
from pumice.live.webhooks.hooks import Webhook
from pumice.live.webhooks.review import AdmissionReview

log = logging.getLogger(__name__)
FITS = "/fits"  #: where a scheduler is asked
PATIENCE_S = 1.0


class AdmissionAnswers:
    """`rules` may be changed at any time."""

    def __init__(self, transport: Transport, rules: admission.Settings, scheduler: str = "") -> None:
        """`scheduler`: the URL at which it tells what can never run; empty: nobody is asked."""
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
                asked = review.read(request.body)
            except review.NotAReview as error:
                return Response.text(str(error), 400)
            self.cache.take()  # nobody here waits for changes
            if self._is_stale():
                await self._read_anew()
            body = review.mutated(asked, review.patch(asked, self.cache, self.rules)) if hook.mutating else await self._judge(asked)
            return Response.json(body)

        return answer

    def _is_stale(self) -> bool:
        """Whether the cache does not follow what could be read."""
        return any(reflector.forbidden and kind not in self._unreadable for kind, reflector in self.following.items())

    async def _judge(self, asked: AdmissionReview) -> dict[str, object]:
        found = review.problems(asked, self.cache, self.rules)
        if found:
            await self._read_anew()
            found = review.problems(asked, self.cache, self.rules)
        return review.judged(asked, found, [] if found else await self._warnings(asked))

    async def _warnings(self, asked: AdmissionReview) -> list[str]:
        """What the scheduler says can never run. It is not waited for."""
        submitted = review.submitted(asked) if self._scheduler else None
        if submitted is None:
            return []
        try:
            told = await fetch(f"{self._scheduler}{FITS}", body=msgspec.json.encode(submitted), timeout_s=PATIENCE_S)
        except (OSError, ValueError) as error:
            log.debug("the scheduler does not say whether it can run: %s", error)
            return []
        text = bytes(told.body).decode(errors="replace").strip()
        return [text] if told.status == 200 and text else []

    async def _read_anew(self) -> None:
        """Bring the cache up to date; several refusals at once share a reading that began after them."""
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
                subject = whole(decode(raw), scope.resource)
                there.add(uid_of(subject))
                self.cache.put(kind, subject)
        for subject in list(self.cache.all(kind)):
            if uid_of(subject) not in there:
                self.cache.removed(kind, key_of(subject), uid_of(subject))
