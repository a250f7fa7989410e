"""Certificates of our own making, for servers that nobody else issues one to: an authority, and what it signs.

Elliptic keys (P-256), which are small and quick to make. The time is an argument; certificates begin an hour before it, for clocks that
are behind.
"""

from __future__ import annotations

import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pumice.kube.tls import KeyPair


class Authority:
    """A certificate authority that signs for as long as it is in memory."""

    def __init__(self, now: float, days: int, name: str = "pumice") -> None:
        begin = datetime.datetime.fromtimestamp(now, datetime.UTC)
        self._validity = begin - datetime.timedelta(hours=1), begin + datetime.timedelta(days=days)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        built = self._begin(self._name, self._key).add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        self._certificate = built.add_extension(usage, critical=True).sign(self._key, hashes.SHA256())
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, common_name: str, *hosts: str, groups: tuple[str, ...] = ()) -> KeyPair:
        """A certificate for a server (with hosts) or a user (with groups)."""
        key = ec.generate_private_key(ec.SECP256R1())
        built = self._begin(_name(common_name, *groups), key)
        if hosts:
            built = built.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
        built = built.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        certificate = built.sign(self._key, hashes.SHA256())
        return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), private_pem(key))

    def _begin(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        begin, end = self._validity
        built = x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number(), begin, end)
        return built.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, plain)


def _name(common_name: str, *groups: str) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
