"""Header lines, and the one of them that proves who asks."""

from __future__ import annotations

import ipaddress
import re
from base64 import b64encode
from collections.abc import Iterable
from typing import Any
from urllib.parse import SplitResult, unquote


def head_of(headers: Iterable[tuple[str, str]]) -> bytes:
    """Header lines. Raises ValueError for what would break out of its line."""
    return "".join(map(_line, headers)).encode()


def basic(user: str, password: str) -> str:
    """The value of Authorization, or Proxy-Authorization."""
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


def basic_of(url: SplitResult) -> str:
    """The same for the user and password that stand in a URL; empty if there are none."""
    return basic(unquote(url.username), unquote(url.password or "")) if url.username else ""


def _line(header: tuple[str, str]) -> str:
    name, value = header
    if any(ord(letter) < 32 and letter != "\t" for letter in name + value):
        raise ValueError(f"the value for the header {name} has a line break or another control character in it")
    return f"{name}: {value}\r\n"


# The head of a request, read strictly: where two readers could disagree about where a request ends, or whom it is for, it is refused.
#
# Lines end with CR LF and nothing else; no other control character stands in them and none is continued on the next. A request of HTTP/1.1
# names one host. The length of a body is said once and in one way: Content-Length, or Transfer-Encoding "chunked".

MAX_HEAD = 64 * 1024
MAX_LINES = 256

_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")  #: all but the tab
_HOST = re.compile(r"[A-Za-z0-9!$%&'()*+,\-.:;=@\[\]_~]*\Z")
_ONCE = frozenset({"host", "content-length", "transfer-encoding", "content-type", "authorization", "expect", "impersonate-user"})


class Malformed(Exception):
    """Not HTTP as it should be; the connection is closed after the answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Head:
    """A request's head, and how its body is sent."""

    __slots__ = ("chunked", "framed", "headers", "keep_alive", "length", "method", "target")

    def __init__(self, text: bytes) -> None:
        first, *lines = text.split(b"\r\n")
        if len(lines) > MAX_LINES:
            raise Malformed(431, f"the head of the request has more than {MAX_LINES} lines")
        if _CONTROL.search(text.replace(b"\r\n", b"")):
            raise Malformed(400, "a control character stands in the head of the request")
        parts = first.decode("latin-1").split(" ")
        if len(parts) != 3 or parts[2] not in ("HTTP/1.0", "HTTP/1.1") or not _NAME.match(parts[0]) or not parts[1]:
            raise Malformed(400, "not an HTTP/1.1 request")
        self.method, self.target, version = parts
        self.headers: dict[str, str] = {}
        for line in lines:
            self._add(line.decode("latin-1"))
        self._check_host(version)
        self.chunked = self._is_chunked(version)
        self.length = self._length()
        self.framed = version != "HTTP/1.0"  #: the client knows chunks
        connection = self.headers.get("connection", "").lower()
        self.keep_alive = connection != "close" and (version != "HTTP/1.0" or connection == "keep-alive")

    def _add(self, line: str) -> None:
        name, colon, value = line.partition(":")
        if not colon or not _NAME.match(name):
            raise Malformed(400, "a header line is malformed")
        name, value = name.lower(), value.strip(" \t")
        if name in self.headers:
            if name in _ONCE:
                raise Malformed(400, f"the header {name} stands twice")
            value = f"{self.headers[name]}, {value}"
        self.headers[name] = value

    def _check_host(self, version: str) -> None:
        host = self.headers.get("host")
        if host is None and version == "HTTP/1.1":
            raise Malformed(400, "the header Host is missing")
        if not _HOST.match(host or ""):
            raise Malformed(400, "the header Host is malformed")

    def _is_chunked(self, version: str) -> bool:
        coding = self.headers.get("transfer-encoding")
        if coding is None:
            return False
        if version == "HTTP/1.0" or "content-length" in self.headers:
            raise Malformed(400, "Transfer-Encoding has no place beside Content-Length, or in HTTP/1.0")
        if coding.lower() != "chunked":
            raise Malformed(501, f"transfer encoding {coding} is not known")
        return True

    def _length(self) -> int:
        text = self.headers.get("content-length", "0")
        if not (text.isascii() and text.isdigit()) or len(text) > 12:
            raise Malformed(400, "the length of the body is malformed")
        return int(text)


# Whether a client sits on this machine: in its network namespace, so in the same pod, or behind kubectl port-forward.

NAMES_OF_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def is_loopback(peer: Any) -> bool:
    """`peer` is an address as sockets give it; whoever has none is a stranger."""
    try:
        address = ipaddress.ip_address(peer[0])
    except (TypeError, IndexError, ValueError):
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
