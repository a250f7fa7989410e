"""TLS: whom we trust, and the certificate we present.

Python's ssl reads certificates of our own from files only, so key material that came as data lies in a private file for the moment of
loading.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Sequence
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
    """A client's side of TLS. Raises InputError if a certificate cannot be used."""
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
    import tempfile  # few have a client certificate

    with tempfile.TemporaryDirectory(prefix="pumice-") as folder:
        file = Path(folder, "pair.pem")
        file.touch(mode=0o600)
        file.write_bytes(pair.certificate + b"\n" + pair.key)
        try:
            made.load_cert_chain(file)
        except (ssl.SSLError, OSError) as error:
            raise InputError(f"the certificate and key cannot be used ({error})", where=pair.source) from None


# A client certificate in files that somebody renews.
#
# The files are looked at every `LOOK_AGAIN_S`; when they are others than before, and a pair that can be used, new connections present it. A
# renewal writes one file after the other, so a pair that does not match is one that is being written: the old one stays until it does.

LOOK_AGAIN_S = 10.0
log = logging.getLogger(__name__)


class KeyFiles:
    """A certificate and its key, read again when their files change.

    `read` raises InputError; the first time here, later that only delays the change.
    """

    def __init__(self, paths: Sequence[Path], read: Callable[[], KeyPair], clock: Callable[[], float]) -> None:
        self._paths = paths
        self._read = read
        self._clock = clock
        self._seen = self._look()
        self._pair = read()
        self._looked_at = clock()

    def current(self) -> KeyPair:
        now = self._clock()
        if now - self._looked_at >= LOOK_AGAIN_S:
            self._looked_at = now
            self._take_over(self._look())
        return self._pair

    def look_now(self) -> None:
        """The server refused us: perhaps there is another one already."""
        self._looked_at = float("-inf")

    def _look(self) -> tuple[tuple[int, ...], ...]:
        try:
            found = [path.stat() for path in self._paths]
        except OSError:
            return ()
        return tuple((each.st_dev, each.st_ino, each.st_size, each.st_mtime_ns) for each in found)

    def _take_over(self, look: tuple[tuple[int, ...], ...]) -> None:
        if look in ((), self._seen):
            return
        try:
            pair = self._read()
            present(ssl.create_default_context(), pair)
        except InputError as error:
            log.warning("the changed client certificate is not used: %s", error)
            return
        self._seen, self._pair = look, pair
        log.info("the client certificate was renewed: %s", pair.source)
