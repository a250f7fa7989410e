"""Certificates for a server: an authority of its own, and a certificate for its addresses."""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pumice.api.errors import InputError

_VALID = datetime.timedelta(days=3650)


class Pair(NamedTuple):
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes


def make_authority(now: datetime.datetime) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("pumice-ca")
    builder = _builder(name, name, key, now).add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    return _signed(builder.add_extension(usage, critical=True), key, key)


def kept_authority(directory: Path, now: datetime.datetime) -> Pair:
    """The directory's own authority, made on first use: kubeconfigs written earlier go on trusting the server."""
    certificate, key = directory / "ca.crt", directory / "ca.key"
    if not (certificate.exists() and key.exists()):
        made = make_authority(now)
        write_private(key, made.key)
        write_private(certificate, made.certificate)
    pair = Pair(certificate.read_bytes(), key.read_bytes())
    damaged = _damaged(pair)
    if damaged:
        advice = "put it back from a copy, or remove ca.crt and ca.key for a new authority, to which clients need a new kubeconfig"
        raise InputError(f"{damaged}; {advice}", where=str(directory / "ca.key"))
    return pair


def _damaged(pair: Pair) -> str:
    """What is wrong with an authority that was read; empty if nothing is."""
    try:
        public = x509.load_pem_x509_certificate(pair.certificate).public_key()
        signer = serialization.load_pem_private_key(pair.key, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "it or ca.crt is damaged"
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        return "not a key of an elliptic curve"
    return "" if signer.public_key() == public else "not the key of ca.crt"


def make_server_pair(authority: Pair, hosts: list[str], now: datetime.datetime) -> Pair:
    """For these host names and addresses, signed by the authority."""
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    signer = serialization.load_pem_private_key(authority.key, None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_name("pumice"), issuer.subject, key, now)
    builder = builder.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    return _signed(builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False), key, signer)


def context(pair: Pair, directory: Path) -> ssl.SSLContext:
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


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime.datetime) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(now + _VALID)


def _signed(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey) -> Pair:
    certificate = builder.sign(signer, hashes.SHA256())
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Pair(certificate.public_bytes(serialization.Encoding.PEM), text)
