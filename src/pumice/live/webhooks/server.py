"""The webhook server: HTTPS for API servers, with certificates that are renewed and rules that are read again while it runs."""

import asyncio
import logging
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack

import msgspec

from pumice.api import InputError
from pumice.api.kinds import ObjectRef
from pumice.api.plural import counted
from pumice.client.access import Access
from pumice.client.client import Backoff, Client
from pumice.client.failures import KubeError
from pumice.client.rate_limit import ClientLimits
from pumice.client.tls import present, usable
from pumice.controllers import admission
from pumice.controllers.admission.webhooks import HOOKS, ClientConfig, OwnWebhook
from pumice.http.listener import Listener
from pumice.live.cache_sync import synced
from pumice.live.clock import Clock, WallClock
from pumice.live.health_and_metrics import probes
from pumice.live.lifecycle import end_signal, first
from pumice.live.webhooks.admission_answers import AdmissionAnswers
from pumice.live.webhooks.hooks import register
from pumice.live.webhooks.served_certificates import CertificateSource, ClusterSecret, Files, ServedCertificates

log = logging.getLogger(__name__)

LARGEST_BODY = 16 * 1024 * 1024  #: an object may have 3 MiB, and a review may contain it twice
CHECKED_EVERY_S = 60.0  #: how often files, rules and the Secret are checked
SYNC_TIMEOUT_S = 60.0
BACKOFF = Backoff(1.0, CHECKED_EVERY_S)  #: between looks for configurations that are missing


class WebhookSettings(msgspec.Struct):
    """All settings that come from flags."""

    #: those that are registered. The others are answered too, if Volcano has left a configuration for them: nothing could be created else
    hooks: tuple[OwnWebhook, ...]
    rules: Callable[[], admission.Settings]  #: reads the configuration. Raises InputError
    address: tuple[str, int] = ("", 8443)
    client_config: ClientConfig = ClientConfig()
    files: tuple[str, str, str] | None = None  #: certificate, key, authority; None: a Secret of our own
    secret: str = "volcano-admission-secret"
    qps: float = 50.0
    burst: float = 100.0
    healthz_address: str = ""
    scheduler: str = ""  #: the URL of the scheduler that says which jobs can never run; empty: no warnings
    hosts: tuple[str, ...] = ()  #: names for our certificate; the first is its common name


class WebhookReplica:
    """One replica of the webhook server, as a process. `serve` returns after SIGTERM or SIGINT."""

    def __init__(self, access: Access, settings: WebhookSettings, clock: Clock | None = None) -> None:
        self._access = access
        self._settings = settings
        self._clock: Clock = clock or WallClock()
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._served: ServedCertificates | None = None
        self._registered = b""
        self._missing: list[str] = []  #: the configurations that somebody else has yet to create
        self.port = 0
        self.listening = asyncio.Event()

    async def serve(self) -> None:
        settings = self._settings
        rules = settings.rules()
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(Client(self._access, limits=ClientLimits(settings.qps, settings.burst)))
            if settings.healthz_address:
                await stack.enter_async_context(Listener(settings.healthz_address, probes(self)))
            ended = stack.enter_context(end_signal())
            await first(self._work(client, AdmissionAnswers(client, rules, settings.scheduler)), ended.wait())

    async def _work(self, client: Client, rules: AdmissionAnswers) -> None:
        following = [asyncio.create_task(reflector.run()) for reflector in rules.following.values()]
        try:
            await synced((), rules.following.values(), SYNC_TIMEOUT_S)
            source = self._source(client)
            self._take_over(await source.current())
            host, port = self._settings.address
            served = Listener(f"{host}:{port}", rules.routes(tuple(HOOKS.values())), self._tls, largest_body=LARGEST_BODY)
            async with served:
                self.port = served.port
                await self._register(client)
                self.listening.set()
                log.info("%s served on port %d", counted(len(self._settings.hooks), "webhook is", "webhooks are"), self.port)
                await first(self._keep(client, source, rules), *following)
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)

    def _source(self, client: Client) -> CertificateSource:
        settings = self._settings
        if settings.files is not None:
            return Files(*settings.files)
        return ClusterSecret(client, ObjectRef(settings.secret, settings.client_config.namespace), settings.hosts, self._clock)

    async def _keep(self, client: Client, source: CertificateSource, rules: AdmissionAnswers) -> None:
        """Take over new certificates and new rules as they come. If they cannot be read, the old ones stay in force."""
        tries = 0
        while True:
            tries = tries + 1 if self._missing else 0
            await self._clock.sleep(BACKOFF.delay_s(tries, 1.0) if self._missing else CHECKED_EVERY_S)
            try:
                served = await source.current()
                if served != self._served:
                    self._take_over(served)
                await self._register(client)
                rules.rules = self._settings.rules()
            except (InputError, KubeError) as error:
                log.error("%s", error)

    def _take_over(self, served: ServedCertificates) -> None:
        """Serve this pair on connections that come from now on. If it cannot be used, as while its files are written one after the other,
        the one before is served on: it is tried out first, for a pair that does not match leaves a context without any."""
        usable(served.pair)
        present(self._tls, served.pair)
        self._served = served

    async def _register(self, client: Client) -> None:
        assert self._served is not None
        settings, authority = self._settings, self._served.authority
        if settings.client_config.known:  # again and again: an upgrade of the chart empties the authority that we wrote
            create = authority != self._registered or bool(self._missing)
            missing = await register(client, settings.hooks, settings.client_config, authority, create=create)
            if missing and missing != self._missing:
                log.info("who installs us is waited for to create these webhook configurations: %s", ", ".join(missing))
            left = [hook for hook in HOOKS.values() if hook not in settings.hooks]
            await register(client, left, settings.client_config, authority, create=False)
            self._registered, self._missing = authority, missing

    def alive(self) -> str:
        return ""

    def ready(self) -> str:
        return "" if self.listening.is_set() else "the webhooks are not served yet"
