"""Header lines, and the one of them that proves who asks."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from urllib.parse import SplitResult, unquote


def head_of(headers: Iterable[tuple[str, str]]) -> bytes:
    """Raises ValueError for what would break out of its line."""
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
