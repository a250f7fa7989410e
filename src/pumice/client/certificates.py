"""Certificates that we make ourselves, for servers that get none from elsewhere: an authority, and the certificates that it signs.

The keys are elliptic (P-256), which are small and quick to make. The time is an argument; certificates are valid from an hour before it,
for clocks that are behind.

A server keeps its authority in its directory (`kept_authority`) and presents a pair that this authority signed (`server_context`).
"""

import datetime
import ipaddress
import os
import ssl
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pumice.api import InputError
from pumice.client.tls import KeyPair

DAY_S = 86400.0


class Authority:
    """A certificate authority: a new one, or the one whose certificate and key were `kept`. It issues certificates for `days` from `now`.
    If less than a tenth of these days is left to a kept one, it has a new certificate for the same key: who trusts the old one trusts what
    it issues until the old one ends.

    Raises ValueError if the kept certificate or key is damaged, or if they do not belong together.
    """

    def __init__(self, now: float, days: int, name: str = "pumice", kept: KeyPair | None = None) -> None:
        begin = datetime.datetime.fromtimestamp(now, datetime.UTC)
        self._validity = begin - datetime.timedelta(hours=1), begin + datetime.timedelta(days=days)
        self._days = days
        if kept is None:
            self._key = ec.generate_private_key(ec.SECP256R1())
            self._name = _name(name)
            self._certificate = self._made()
        else:
            self._key, self._certificate = _read(kept)
            self._name = self._certificate.subject
            if self.ends_soon(now):
                self._certificate = self._made()

    def ends_soon(self, now: float) -> bool:
        """Whether less than a tenth of its days is left: another is to be made of its `pair`."""
        return self._certificate.not_valid_after_utc.timestamp() < now + self._days * DAY_S / 10

    @property
    def pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def pair(self) -> KeyPair:
        """The authority's certificate and key, which are to be kept."""
        return KeyPair(self.pem, private_pem(self._key))

    def issue(self, common_name: str, *hosts: str, groups: tuple[str, ...] = ()) -> KeyPair:
        """A signed certificate and its key, for a server (with hosts) or a user (with groups)."""
        key = ec.generate_private_key(ec.SECP256R1())
        built = self._begin(_name(common_name, *groups), key)
        if hosts:
            built = built.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
        uses = [*([ExtendedKeyUsageOID.SERVER_AUTH] if hosts else []), ExtendedKeyUsageOID.CLIENT_AUTH]
        built = built.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        built = built.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        built = built.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        certificate = built.sign(self._key, hashes.SHA256())
        return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), private_pem(key))

    def sign(self, request: bytes, usages: Collection[str], now: float, seconds: float) -> bytes:
        """The certificate that a signing request asks for, in PEM; it does not outlive the authority."""
        asked = x509.load_pem_x509_csr(request)
        begin = datetime.datetime.fromtimestamp(now, datetime.UTC)
        end = min(begin + datetime.timedelta(seconds=seconds), self._certificate.not_valid_after_utc)
        key, serial = asked.public_key(), x509.random_serial_number()
        built = x509.CertificateBuilder(self._name, asked.subject, key, serial, begin - datetime.timedelta(minutes=5), end)
        signs, encrypts = ("digital signature" in usages, "key encipherment" in usages)
        if signs or encrypts:  # an extension that allows nothing makes the certificate invalid
            built = built.add_extension(x509.KeyUsage(signs, False, encrypts, False, False, False, False, False, False), critical=True)
        named = {"client auth": ExtendedKeyUsageOID.CLIENT_AUTH, "server auth": ExtendedKeyUsageOID.SERVER_AUTH}
        built = built.add_extension(x509.ExtendedKeyUsage([found for name, found in named.items() if name in usages]), critical=False)
        built = built.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        built = built.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        for extension in asked.extensions:
            if isinstance(extension.value, x509.SubjectAlternativeName):
                built = built.add_extension(extension.value, critical=False)
        return built.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _made(self) -> x509.Certificate:
        built = self._begin(self._name, self._key).add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        return built.add_extension(usage, critical=True).sign(self._key, hashes.SHA256())

    def _begin(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        begin, end = self._validity
        built = x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number(), begin, end)
        return built.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)


def subject_of(request: bytes) -> tuple[str, tuple[str, ...]]:
    """The common name and the organizations that a signing request states, in PEM. Raises ValueError if it is none."""
    asked = x509.load_pem_x509_csr(request)
    if not asked.is_signature_valid:
        raise ValueError("its signature does not fit its key")
    names = [str(each.value) for each in asked.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = tuple(str(each.value) for each in asked.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))
    return names[-1] if names else "", groups


def signed_by(authority: bytes, certificate: bytes) -> bytes:
    """A certificate, given in DER, as PEM. Raises ValueError if none of the certificates in `authority` has signed it."""
    read = x509.load_der_x509_certificate(certificate)
    for one in x509.load_pem_x509_certificates(authority):
        with suppress(ValueError, TypeError, InvalidSignature):
            read.verify_directly_issued_by(one)
            return read.public_bytes(serialization.Encoding.PEM)
    raise ValueError("its certificate was not signed by the authority")


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, plain)


def _read(kept: KeyPair) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    try:
        certificate = x509.load_pem_x509_certificate(kept.certificate)
        public, key = certificate.public_key(), serialization.load_pem_private_key(kept.key, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError(f"it or {kept.source} is damaged") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("not a key of an elliptic curve")
    if key.public_key() != public:
        raise ValueError(f"not the key of {kept.source}")
    return key, certificate


def _name(common_name: str, *groups: str) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


VALID_DAYS = 3650


def make_authority(now: float, kept: KeyPair | None = None) -> Authority:
    return Authority(now, VALID_DAYS, "pumice-ca", kept)


def kept_authority(directory: Path, now: float) -> Authority:
    """The directory's own authority, made on first use: earlier kubeconfigs still trust the server. Raises InputError if damaged."""
    certificate, key = directory / "ca.crt", directory / "ca.key"
    if not (certificate.exists() and key.exists()):
        made = make_authority(now).pair
        write_private(key, made.key)
        write_private(certificate, made.certificate)
    kept = KeyPair(certificate.read_bytes(), key.read_bytes(), certificate.name)
    try:
        authority = Authority(now, VALID_DAYS, kept=kept)
    except ValueError as error:
        advice = "put it back from a copy, or remove ca.crt and ca.key for a new authority, to which clients need a new kubeconfig"
        raise InputError(f"{error}; {advice}", where=str(key)) from None
    if authority.pem != kept.certificate:
        write_private(certificate, authority.pem)
    return authority


def server_context(pair: KeyPair, directory: Path, users: bytes = b"") -> ssl.SSLContext:
    """The TLS context of a server that presents the pair. The pair is written into `directory`, because OpenSSL reads files only. Clients
    may present certificates of the authority `users`, if there is one."""
    path = directory / "server.pem"
    write_private(path, pair.certificate + pair.key)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols(["http/1.1"])
    made.load_cert_chain(path)
    if users:
        made.verify_mode = ssl.CERT_OPTIONAL
        made.load_verify_locations(cadata=users.decode())
    return made


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner may read, from its first byte on."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
