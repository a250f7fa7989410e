"""TLS: which servers we trust, and the client certificate that we present.

Python's ssl reads client certificates from files only, so key material that was given as data is in a private file while it is loaded.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from pumice.api import InputError
from pumice.client.renewed_files import RenewedFiles


class Trust(msgspec.Struct, frozen=True):
    """How the server's certificate is verified."""

    ca_pem: bytes = b""  #: the certificate authorities; empty: those of the machine
    server_name: str = ""  #: the name its certificate must have, if not the URL's
    insecure: bool = False

    def current(self) -> Trust:
        """This trust: it does not change."""
        return self


class KeyPair(msgspec.Struct, frozen=True):
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes
    source: str = ""  #: where they come from, for messages

    def current(self) -> KeyPair:
        """This key pair: it does not change."""
        return self

    def look_now(self) -> None:
        """Do nothing: there are no files to read again."""


def context(trust: Trust, pair: KeyPair | None, where: str = "") -> ssl.SSLContext:
    """The TLS context of a client. Raises InputError if a certificate cannot be used."""
    try:
        made = ssl.create_default_context(cadata=trust.ca_pem.decode("ascii") if trust.ca_pem else None)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise InputError(f"the certificate authority is not PEM ({error})", where=where) from None
    if trust.insecure:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    # Clusters made by hand often have authorities without the key usage extension, which Python 3.13 refuses by default and Go does not.
    made.verify_flags &= ~ssl.VERIFY_X509_STRICT
    # Go trusts every certificate that it is given, also one that signs nothing, such as the server's own.
    made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if pair:
        present(made, pair)
    return made


def authority_file(path: Path, read: Callable[[], Trust], clock: Callable[[], float]) -> RenewedFiles[Trust]:
    """The trust in the authorities of a file that may be renewed."""
    return RenewedFiles("certificate authority", [path], read, partial(context, pair=None, where=str(path)), clock)


def usable(pair: KeyPair) -> None:
    """Raise InputError if this certificate cannot be presented."""
    present(ssl.create_default_context(), pair)


def present(made: ssl.SSLContext, pair: KeyPair) -> None:
    """Present this certificate on connections that are made from now on. Raises InputError if it cannot be used."""
    import tempfile  # imported only if there is a client certificate

    with tempfile.TemporaryDirectory(prefix="pumice-") as folder:
        file = Path(folder, "pair.pem")
        file.touch(mode=0o600)
        file.write_bytes(pair.certificate + b"\n" + pair.key)
        try:
            made.load_cert_chain(file)
        except (ssl.SSLError, OSError) as error:
            raise InputError(f"the certificate and key cannot be used ({error})", where=pair.source) from None
