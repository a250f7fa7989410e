"""The webhook server: HTTPS for API servers, certificates that are renewed and rules that are read again while it runs."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack

import msgspec

from pumice.api.errors import InputError
from pumice.api.kinds import ObjectRef
from pumice.client.access import Access
from pumice.client.client import Client, ClientLimits
from pumice.client.tls import present
from pumice.client.transport import KubeError
from pumice.controllers import admission
from pumice.http.listener import Listener
from pumice.live.lifecycle import Clock, WallClock, first, probes, synced, told_to_end
from pumice.live.webhooks.certificates import CertificateSource, ClusterSecret, Files, ServedCertificates
from pumice.live.webhooks.hooks import Caller, Webhook, register
from pumice.live.webhooks.review import AdmissionAnswers

log = logging.getLogger(__name__)

LARGEST_BODY = 16 * 1024 * 1024  #: an object may have 3 MiB, and comes twice
CHECKED_EVERY_S = 60.0  #: files, rules and the Secret
SYNC_TIMEOUT_S = 60.0


class WebhookSettings(msgspec.Struct):
    """Everything that flags say."""

    hooks: tuple[Webhook, ...]
    rules: Callable[[], admission.Settings]  #: reads the configuration. Raises InputError
    address: tuple[str, int] = ("", 8443)
    caller: Caller = Caller()
    files: tuple[str, str, str] | None = None  #: certificate, key, authority; None: a Secret of our own
    secret: str = "volcano-admission-secret"
    qps: float = 50.0
    burst: float = 100.0
    healthz_address: str = ""
    scheduler: str = ""  #: where it says what can never run; empty: nobody is warned
    hosts: tuple[str, ...] = ()  #: names for our certificate, the first of them its own


class WebhookReplica:
    """`serve` returns when it was told to end."""

    def __init__(self, access: Access, settings: WebhookSettings, clock: Clock | None = None) -> None:
        self._access = access
        self._settings = settings
        self._clock: Clock = clock or WallClock()
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._served: ServedCertificates | None = None
        self._registered = b""
        self.port = 0
        self.listening = asyncio.Event()

    async def serve(self) -> None:
        settings = self._settings
        rules = settings.rules()
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(Client(self._access, limits=ClientLimits(settings.qps, settings.burst)))
            if settings.healthz_address:
                await stack.enter_async_context(Listener(settings.healthz_address, probes(self)))
            ended = stack.enter_context(told_to_end())
            await first(self._work(client, AdmissionAnswers(client, rules, settings.scheduler)), ended.wait())

    async def _work(self, client: Client, rules: AdmissionAnswers) -> None:
        following = [asyncio.create_task(reflector.run()) for reflector in rules.following.values()]
        try:
            await synced((), rules.following.values(), SYNC_TIMEOUT_S)
            source = self._source(client)
            self._take_over(await source.current())
            host, port = self._settings.address
            served = Listener(f"{host}:{port}", rules.routes(self._settings.hooks), self._tls, largest_body=LARGEST_BODY)
            async with served:
                self.port = served.port
                await self._register(client)
                self.listening.set()
                log.info("%d webhooks are served on port %d", len(self._settings.hooks), self.port)
                await first(self._keep(client, source, rules), *following)
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)

    def _source(self, client: Client) -> CertificateSource:
        settings = self._settings
        if settings.files is not None:
            return Files(*settings.files)
        return ClusterSecret(client, ObjectRef(settings.secret, settings.caller.namespace), settings.hosts, self._clock)

    async def _keep(self, client: Client, source: CertificateSource, rules: AdmissionAnswers) -> None:
        """Notice new certificates and new rules. What cannot be read leaves the old ones in force."""
        while True:
            await self._clock.sleep(CHECKED_EVERY_S)
            try:
                served = await source.current()
                if served != self._served:
                    self._take_over(served)
                await self._register(client)
                rules.rules = self._settings.rules()
            except (InputError, KubeError) as error:
                log.error("%s", error)

    def _take_over(self, served: ServedCertificates) -> None:
        """Serve this pair on connections that come from now on."""
        present(self._tls, served.pair)
        self._served = served

    async def _register(self, client: Client) -> None:
        assert self._served is not None
        settings, authority = self._settings, self._served.authority
        if settings.caller.known:  # again and again: an upgrade of the chart empties what we wrote
            await register(client, settings.hooks, settings.caller, authority, create=authority != self._registered)
            self._registered = authority

    def alive(self) -> str:
        return ""

    def ready(self) -> str:
        return "" if self.listening.is_set() else "the webhooks are not served yet"
