"""How the server speaks TLS: the authority that its directory keeps, and the pair that it presents."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

from pumice.api.errors import InputError
from pumice.client.certificates import Authority
from pumice.client.tls import KeyPair

VALID_DAYS = 3650


def make_authority(now: float) -> Authority:
    return Authority(now, VALID_DAYS, "pumice-ca")


def kept_authority(directory: Path, now: float) -> Authority:
    """The directory's own authority, made on first use: kubeconfigs written earlier go on trusting the server."""
    certificate, key = directory / "ca.crt", directory / "ca.key"
    if not (certificate.exists() and key.exists()):
        made = make_authority(now).pair
        write_private(key, made.key)
        write_private(certificate, made.certificate)
    try:
        return Authority(now, VALID_DAYS, kept=KeyPair(certificate.read_bytes(), key.read_bytes(), certificate.name))
    except ValueError as error:
        advice = "put it back from a copy, or remove ca.crt and ca.key for a new authority, to which clients need a new kubeconfig"
        raise InputError(f"{error}; {advice}", where=str(key)) from None


def context(pair: KeyPair, directory: Path) -> ssl.SSLContext:
    """`directory` holds the pair for as long as the context is made: OpenSSL reads files only."""
    path = directory / "server.pem"
    write_private(path, pair.certificate + pair.key)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols(["http/1.1"])
    made.load_cert_chain(path)
    return made


def write_private(path: Path, data: bytes) -> None:
    """A file that only its owner may read, from its first byte on."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
