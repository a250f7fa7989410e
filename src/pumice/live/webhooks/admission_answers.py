"""The answers of our webhooks: the rules of `controllers/admission/` on the objects of a live cluster.

A refusal may come from a cache that lags behind: a queue that was created a moment ago, a child that was just deleted. So before a
request is refused, the kinds that the rules look up are read from the API server itself, and the request is judged once more. Kinds that
our role may list but not watch are read before every answer. The rules do without kinds that it may not read at all.
"""

import asyncio
import logging
from collections.abc import Sequence

import msgspec

from pumice.api import key_of, uid_of
from pumice.client.failures import ApiError, KubeError
from pumice.client.transport import ListScope, Transport, as_dict
from pumice.controllers import admission
from pumice.controllers.admission.webhooks import OwnWebhook
from pumice.http.connection_pool import fetch
from pumice.http.listener import Handler
from pumice.http.messages import Request, Response
from pumice.live.object_cache import ObjectCache, whole
from pumice.live.watch_scopes import ADMISSION, followed, scopes
from pumice.live.webhooks.review import AdmissionReview, NotAReview, judged, mutated, patch, problems, read, submitted

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
        self.cache.wake = self.cache.take  # drops the changes, which are not used here
        self._transport = transport
        self._reading: asyncio.Task[None] | None = None
        self._unreadable: set[str] = set()  #: kinds that may not even be listed
        self.following = followed(transport, self.cache, scopes(ADMISSION))

    def routes(self, hooks: Sequence[OwnWebhook]) -> dict[str, Handler]:
        return {hook.path: self._handler(hook) for hook in hooks}

    def _handler(self, hook: OwnWebhook) -> Handler:
        async def answer(request: Request) -> Response:
            try:
                asked = read(request.body)
            except NotAReview as error:
                return Response.text(str(error), 400)
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
            except (KubeError, msgspec.DecodeError) as error:
                if isinstance(error, ApiError) and error.code == 403:
                    self._unreadable.add(kind)
                else:
                    log.warning("%s, which the rules look up, cannot be read: %s", scope.resource.plural, error)

    async def _read_kind(self, kind: str, scope: ListScope) -> None:
        known, there = list(self.cache.all(kind)), set()  # what comes while the list is read may be too new for it
        async for page in self._transport.pages(scope):
            for raw in page.items:
                subject = whole(as_dict(raw), scope.resource)
                there.add(uid_of(subject))
                self.cache.put(kind, subject)
        for subject in known:
            if uid_of(subject) not in there:
                self.cache.removed(kind, key_of(subject), uid_of(subject))
