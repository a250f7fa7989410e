"""Instants and durations as Kubernetes and Go write them, in seconds; spans of time as kubectl prints them: 45s, 2m30s, 5h, 3d4h, 2y."""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import TypeVar

_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}

T = TypeVar("T")


class Duration(float):
    """A number of seconds that prints as a duration."""

    def __str__(self) -> str:
        return f"{float(self):g}s"


@lru_cache(maxsize=1024)
def instant(text: str) -> float:
    """The seconds since 1970 of a time in RFC 3339. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def instant_or(text: str | None, unknown: T) -> float | T:
    """The seconds since 1970 of a time; `unknown` if it is missing or no valid time, so that its object can still be read."""
    try:
        return instant(text) if text else unknown
    except ValueError:
        return unknown


def rfc3339(seconds: float) -> str:
    """The time as Kubernetes prints it, to the second, from seconds since 1970."""
    return _printed(int(seconds // 1))


def micro_time(seconds: float) -> str:
    """The time as Kubernetes prints a MicroTime."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@lru_cache(maxsize=1024)
def _printed(second: int) -> str:
    """The time as text. It is cached, since many objects are written within one second."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")  # years of three digits, too


def duration(text: str) -> float:
    """The seconds of a Go duration such as "1h2m3.5s". Raises ValueError."""
    sign, body = (-1.0, text[1:]) if text[:1] == "-" else (1.0, text.removeprefix("+"))
    if body == "0":
        return 0.0
    seconds, position = 0.0, 0
    while position < len(body) or not body:
        part = _PART.match(body, position)
        if part is None:
            raise ValueError(f'"{text}" is not a duration; write one such as "30s", "5m" or "1h30m"')
        seconds, position = seconds + float(part[1]) * _SECONDS[part[2]], part.end()
    return sign * seconds


def span(seconds: float) -> str:
    """A span of time as kubectl prints it: with two units if the first is small, else with one."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 120:
        return f"{max(whole, 0)}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 8 * 365:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def age(timestamp: str | None, now: float) -> str:
    if not timestamp:
        return "<unknown>"
    try:
        return span(now - instant(timestamp))
    except ValueError:
        return "<invalid>"
