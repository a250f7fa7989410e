"""TLS: whom we trust, and the certificate we present.

Python's ssl reads certificates of our own from files only, so key material that came as data lies in a private file for the moment of
loading.
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

import msgspec

from pumice.api.errors import InputError


class Trust(msgspec.Struct, frozen=True):
    """How the server is to be recognised."""

    ca_pem: bytes = b""  #: empty: the machine's own authorities
    server_name: str = ""  #: the name its certificate must have, if not the URL's
    insecure: bool = False


class KeyPair(msgspec.Struct, frozen=True):
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes
    source: str = ""  #: where they stand, for messages

    def current(self) -> KeyPair:
        """Itself: it does not change."""
        return self

    def look_now(self) -> None:
        """There is nowhere to look."""


def context(trust: Trust, pair: KeyPair | None, where: str = "") -> ssl.SSLContext:
    """Raises InputError if a certificate cannot be used."""
    try:
        made = ssl.create_default_context(cadata=trust.ca_pem.decode("ascii") if trust.ca_pem else None)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise InputError(f"the certificate authority is not PEM ({error})", where=where) from None
    if trust.insecure:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    # Clusters made by hand often have authorities without the key usage extension, which Python 3.13 refuses by default and Go does not.
    made.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if pair:
        present(made, pair)
    return made


def present(made: ssl.SSLContext, pair: KeyPair) -> None:
    """Show this certificate on connections that come from now on. Raises InputError."""
    with tempfile.TemporaryDirectory(prefix="pumice-") as folder:
        file = Path(folder, "pair.pem")
        file.touch(mode=0o600)
        file.write_bytes(pair.certificate + b"\n" + pair.key)
        try:
            made.load_cert_chain(file)
        except (ssl.SSLError, OSError) as error:
            raise InputError(f"the certificate and key cannot be used ({error})", where=pair.source) from None
