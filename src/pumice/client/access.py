"""How one user reaches one API server: the resolved outcome of a kubeconfig or of the pod we run in.

`Access` is a value but for its credentials, which may change while we run (token files are rotated, plugins' tokens expire). Whoever
sends a request asks the credentials for the header each time; they answer from memory almost always.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import msgspec

from pumice.client.tls import KeyPair, Trust

TOKEN_FILE_AGE_S = 60.0  #: a token file is read again after so long; the kubelet rotates them


class TimeSource(Protocol):
    """Seconds, since 1970 or since whenever."""

    def __call__(self) -> float: ...


class Keys(Protocol):
    """Where a client certificate comes from."""

    def current(self) -> KeyPair:
        """The same object as long as it is the same certificate."""

    def look_now(self) -> None:
        """It was refused."""


class Credentials(Protocol):
    """What proves who we are."""

    async def authorization(self) -> str:
        """The value of the Authorization header, empty for none."""

    def key_pair(self) -> KeyPair | None:
        """The client certificate to present; the same object as long as it is the same certificate."""

    def refused(self) -> None:
        """The server answered 401: what is remembered is worth nothing."""


class Access(msgspec.Struct, frozen=True):
    """Everything a client needs to know to speak with a server."""

    server: str  #: URL without a slash at its end
    credentials: Credentials
    trust: Trust = Trust()
    namespace: str = "default"
    proxy: str = ""
    headers: tuple[tuple[str, str], ...] = ()  #: impersonation; a name may stand several times


class Fixed:
    """A header that does not change, and perhaps a certificate. With neither: anonymous."""

    def __init__(self, header: str = "", keys: Keys | None = None) -> None:
        self._header = header
        self._keys = keys

    async def authorization(self) -> str:
        return self._header

    def key_pair(self) -> KeyPair | None:
        return self._keys.current() if self._keys else None

    def refused(self) -> None:
        if self._keys:
            self._keys.look_now()


class TokenFile:
    """A bearer token in a file that somebody rotates."""

    def __init__(self, path: Path, clock: TimeSource, keys: Keys | None = None) -> None:
        self._path = path
        self._clock = clock
        self._keys = keys
        self._header = ""
        self._read_at = float("-inf")

    async def authorization(self) -> str:
        now = self._clock()
        if now - self._read_at >= TOKEN_FILE_AGE_S:
            self._read(now)
        return self._header

    def key_pair(self) -> KeyPair | None:
        return self._keys.current() if self._keys else None

    def refused(self) -> None:
        self._read_at = float("-inf")
        if self._keys:
            self._keys.look_now()

    def _read(self, now: float) -> None:
        """A file that is gone or empty for a moment (it is being replaced) leaves the old token in force."""
        try:
            token = self._path.read_text().strip()
        except OSError:
            if not self._header:
                raise
            return
        if token:
            self._header = f"Bearer {token}"
            self._read_at = now
