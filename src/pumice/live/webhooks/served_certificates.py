"""The certificates of our webhooks: the pair that is served, and the authority that API servers are to trust.

They come from files that somebody else maintains (read again when they change), or from a Secret of the cluster that is created and renewed
here and that replicas share. A new authority is put before the old one in the bundle, so that replicas which still serve the old pair stay
trusted.
"""

import base64
import logging
from pathlib import Path
from typing import Protocol

import msgspec
from cryptography import x509

from pumice.api import InputError
from pumice.api.kinds import SECRETS, ObjectRef
from pumice.client.certificates import Authority
from pumice.client.failures import despite
from pumice.client.tls import KeyPair
from pumice.client.transport import Transport, as_dict
from pumice.live.clock import Clock

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
