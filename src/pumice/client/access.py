"""How one user reaches one API server: the resolved outcome of a kubeconfig or of the pod we run in.

`Access` is a plain value, except for its credentials, which may change while we run (token files are rotated, tokens of exec plugins
expire). The sender of a request asks the credentials for the header each time; they answer from memory almost always.
"""

from pathlib import Path
from typing import Protocol

import msgspec

from pumice.client.tls import KeyPair, Trust

TOKEN_FILE_AGE_S = 60.0  #: a token file is read again after this time, because the kubelet rotates it


class TimeSource(Protocol):
    """A clock: it returns seconds, since 1970 or since an arbitrary moment."""

    def __call__(self) -> float: ...


class Keys(Protocol):
    """The source of a client certificate."""

    def current(self) -> KeyPair:
        """The certificate and its key: the same object as long as the certificate is the same."""

    def look_now(self) -> None:
        """Look for a new certificate at the next call of `current`: the server refused this one."""


class TrustSource(Protocol):
    """The source of the authorities that are trusted."""

    def current(self) -> Trust:
        """What is trusted now: the same object as long as it is the same."""


class Credentials(Protocol):
    """The credentials that prove to a server who we are."""

    async def authorization(self) -> str:
        """The value of the Authorization header, empty for none."""

    def key_pair(self) -> KeyPair | None:
        """The client certificate to present; the same object as long as it is the same certificate."""

    def refused(self) -> None:
        """Forget what is remembered: the server answered 401."""


class Access(msgspec.Struct, frozen=True):
    """Everything that a client needs to send requests to a server."""

    server: str  #: the URL, without a slash at its end
    credentials: Credentials
    trust: TrustSource = Trust()
    namespace: str = "default"
    proxy: str = ""
    headers: tuple[tuple[str, str], ...] = ()  #: headers for impersonation; a name may occur several times


class Fixed:
    """Credentials with a header that does not change, and perhaps a certificate. With neither, the user is anonymous."""

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


class TokenFile(Fixed):
    """Credentials with a bearer token from a file that is rotated."""

    def __init__(self, path: Path, clock: TimeSource, keys: Keys | None = None) -> None:
        super().__init__("", keys)
        self._path = path
        self._clock = clock
        self._read_at = float("-inf")

    async def authorization(self) -> str:
        now = self._clock()
        if now - self._read_at >= TOKEN_FILE_AGE_S:
            self._read(now)
        return self._header

    def refused(self) -> None:
        self._read_at = float("-inf")
        super().refused()

    def _read(self, now: float) -> None:
        """Read the token file. If it is missing or empty while it is being replaced, the old token stays; OSError if there is none."""
        try:
            token = self._path.read_text().strip()
        except OSError:
            if not self._header:
                raise
            return
        if token:
            self._header = f"Bearer {token}"
            self._read_at = now
