"""The webhook server: HTTPS for API servers, with certificates that are renewed and rules that are read again while it runs.

`ServedCertificates` are the pair of certificate and key that is served, and the authority that API servers are to trust. They come from
files that somebody else maintains (read again when they change), or from a Secret of the cluster that is created and renewed here and that
replicas share. A new authority is put before the old one in the bundle, so that replicas which still serve the old pair stay trusted.
"""

import asyncio
import base64
import logging
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Protocol

import msgspec
from cryptography import x509

from pumice.api import InputError
from pumice.api.kinds import SECRETS, ObjectRef
from pumice.api.plural import counted
from pumice.client.access import Access
from pumice.client.certificates import Authority
from pumice.client.client import Backoff, Client
from pumice.client.failures import KubeError, despite
from pumice.client.rate_limit import ClientLimits
from pumice.client.tls import KeyPair, present, usable
from pumice.client.transport import Transport, as_dict
from pumice.controllers import admission
from pumice.controllers.admission.webhooks import HOOKS, ClientConfig, OwnWebhook
from pumice.http.listener import Listener
from pumice.live.cache_sync import synced
from pumice.live.clock import Clock, WallClock
from pumice.live.health_and_metrics import probes
from pumice.live.lifecycle import end_signal, first
from pumice.live.webhooks.admission_answers import AdmissionAnswers
from pumice.live.webhooks.hooks import register

log = logging.getLogger(__name__)

VALID_DAYS = 365
UNRENEWED_DAYS = 3650  #: where nobody renews the certificates
RENEWED_S = 60 * 86400.0  #: before the certificate expires
CERTIFICATE, KEY, AUTHORITY = "tls.crt", "tls.key", "ca.crt"  #: keys of the Secret, as Volcano has them


class ServedCertificates(msgspec.Struct, frozen=True):
    pair: KeyPair
    authority: bytes  #: one or more certificates in PEM


class CertificateSource(Protocol):
    async def current(self) -> ServedCertificates:
        """The certificates to serve from now on. Raises InputError and KubeError."""


class Files:
    """Certificates in mounted files."""

    def __init__(self, certificate: str, key: str, authority: str) -> None:
        self._paths = [Path(certificate), Path(key), Path(authority)]

    async def current(self) -> ServedCertificates:
        try:
            certificate, key, authority = (path.read_bytes() for path in self._paths)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=str(error.filename)) from None
        return ServedCertificates(KeyPair(certificate, key, source=str(self._paths[0])), authority)


class ClusterSecret:
    """Certificates in a Secret that belongs to us."""

    def __init__(self, transport: Transport, ref: ObjectRef, hosts: tuple[str, ...], clock: Clock, valid_days: int = VALID_DAYS) -> None:
        self._transport = transport
        self._ref = ref
        self._hosts = hosts
        self._clock = clock
        self._valid_days = valid_days

    async def ensure(self) -> None:
        """Create the Secret if there is none. An existing Secret may belong to somebody else, and stays. Raises KubeError."""
        if await self._read() is None:
            await self._write(None, b"")

    async def current(self) -> ServedCertificates:
        secret = await self._read()
        if secret is None:
            await self._write(None, b"")
        else:
            served = _served(secret)
            if served is not None and _lasts(served, self._hosts, self._clock.now() + RENEWED_S):
                return served
            await self._write(secret, served.authority if served is not None else b"")
        made = await self._read()
        served = _served(made) if made is not None else None
        if served is None:
            raise InputError("the Secret was made and cannot be read", where=str(self._ref))
        return served

    async def _read(self) -> dict[str, object] | None:
        with despite(404):
            return as_dict(await self._transport.get(SECRETS, self._ref))
        return None

    async def _write(self, old: dict[str, object] | None, trusted: bytes) -> None:
        """Create or renew the Secret. If another replica was faster, that replica's Secret counts."""
        now = self._clock.now()
        authority = Authority(now, self._valid_days, "pumice-webhooks")
        pair = authority.issue(self._hosts[0], *self._hosts)
        data = {CERTIFICATE: pair.certificate, KEY: pair.key, AUTHORITY: authority.pem + _still_valid(trusted, now)}
        encoded = {name: base64.b64encode(content).decode() for name, content in data.items()}
        body = {"metadata": {"name": self._ref.name, "namespace": self._ref.namespace}, "type": "Opaque", **(old or {}), "data": encoded}
        with despite(409):
            if old is None:
                await self._transport.create(SECRETS, body, self._ref.namespace)
            else:
                await self._transport.update(SECRETS, self._ref, body)
            log.info("certificates for %s were made, valid for %d days, in Secret %s", self._hosts[0], self._valid_days, self._ref)


def _served(secret: dict[str, object]) -> ServedCertificates | None:
    data = secret.get("data")
    if not isinstance(data, dict) or not all(data.get(name) for name in (CERTIFICATE, KEY, AUTHORITY)):
        return None
    certificate, key, authority = (base64.b64decode(data[name]) for name in (CERTIFICATE, KEY, AUTHORITY))
    return ServedCertificates(KeyPair(certificate, key, source="Secret"), authority)


def _lasts(served: ServedCertificates, hosts: tuple[str, ...], until: float) -> bool:
    """Whether the certificate is for the first of these hosts, and valid beyond the instant `until`."""
    try:
        certificate = x509.load_pem_x509_certificate(served.pair.certificate)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return False
    known = {*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))}
    return certificate.not_valid_after_utc.timestamp() > until and hosts[0] in known


def _still_valid(bundle: bytes, now: float) -> bytes:
    """The newest authority of a bundle, which is its first. Empty if it has expired."""
    try:
        found = x509.load_pem_x509_certificates(bundle) if bundle else []
    except ValueError:
        return b""
    if not found or found[0].not_valid_after_utc.timestamp() <= now:
        return b""
    end = bundle.index(b"-----END CERTIFICATE-----") + len(b"-----END CERTIFICATE-----\n")
    return bundle[:end]


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
