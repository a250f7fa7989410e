"""CEL's functions on timestamps and durations, exact to the nanosecond."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from pumice.api.cel.errors import EvaluationError
from pumice.api.cel.functions import function, method
from pumice.api.cel.library.operators import moment
from pumice.api.cel.values import Instant, Span

SECOND = 10**9
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d{1,30}))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII)
_PART = re.compile(r"(?:([0-9]{1,30})(?:\.([0-9]{0,30}))?|\.([0-9]{1,30}))(ns|us|µs|μs|ms|s|m|h)")
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND}
_ZONE = re.compile(r"([+-]?)(\d{1,2}):(\d\d)", re.ASCII)
_START = datetime(1970, 1, 1, tzinfo=UTC)


function("timestamp(timestamp) timestamp", "duration(duration) duration")(lambda value: value)
function("timestamp(int) timestamp")(lambda seconds: moment(seconds * SECOND))


@function("timestamp(string) timestamp")
def instant(text: str) -> Instant:
    """The instant that the text means, in RFC 3339. Raises EvaluationError."""
    match = _INSTANT.fullmatch(text)
    try:
        assert match is not None
        at = datetime.fromisoformat(match[1]).replace(tzinfo=UTC) - _START
    except (AssertionError, ValueError):
        raise EvaluationError("type conversion error from 'string' to 'google.protobuf.Timestamp'") from None
    offset = (int(match[4]) * 60 + int(match[5])) * (-1 if match[3] == "-" else 1) if match[3] else 0
    seconds = at.days * 86400 + at.seconds - offset * 60
    return moment(seconds * SECOND + int((match[2] or "0").ljust(9, "0")[:9]), offset)


function("duration(int) duration")(Span)


@function("duration(string) duration")
def span(text: str) -> Span:
    """The duration that the text means, written as in Go. Raises EvaluationError."""
    body = text[1:] if text[:1] in ("-", "+") else text
    total, position = 0, 0
    while position < len(body) or not body:
        part = _PART.match(body, position)
        if part is None:
            if body == "0":
                break
            raise EvaluationError("type conversion error from 'string' to 'google.protobuf.Duration'")
        total += int(part[1] or 0) * _UNITS[part[4]]
        fraction = part[2] or part[3] or ""
        total += int(fraction or 0) * _UNITS[part[4]] // 10 ** len(fraction)
        position = part.end()
    if total >= 2**63:
        raise EvaluationError("type conversion error from 'string' to 'google.protobuf.Duration'")
    return Span(-total if text[:1] == "-" else total)


function("int(timestamp) int")(lambda value: value.ns // SECOND)
function("int(duration) int")(lambda value: value.ns)


def _fraction(ns: int) -> str:
    return f".{ns:09}".rstrip("0") if ns else ""


@function("string(timestamp) string")
def instant_text(value: Instant) -> str:
    local = _START + timedelta(seconds=value.ns // SECOND, minutes=value.offset)
    zone = f"{'-' if value.offset < 0 else '+'}{abs(value.offset) // 60:02}:{abs(value.offset) % 60:02}" if value.offset else "Z"
    return local.replace(tzinfo=None).isoformat(timespec="seconds") + _fraction(value.ns % SECOND) + zone


@function("string(duration) string")
def span_text(value: Span) -> str:
    return f"{'-' if value.ns < 0 else ''}{abs(value.ns) // SECOND}{_fraction(abs(value.ns) % SECOND)}s"


def _local(value: Instant, zone: str) -> datetime:
    """The local time of the instant in this time zone. Raises EvaluationError."""
    at = _START + timedelta(microseconds=value.ns // 1000)
    match = _ZONE.fullmatch(zone)
    try:
        if match:
            minutes = (int(match[2]) * 60 + int(match[3])) * (-1 if match[1] == "-" else 1)
            return at + timedelta(minutes=minutes)
        return at if zone in ("", "UTC") else at.astimezone(_zone(zone)).replace(tzinfo=UTC)
    except (LookupError, ValueError, OverflowError, OSError):
        raise EvaluationError(f"unknown time zone {zone}") from None


def _zone(name: str) -> Any:
    from zoneinfo import ZoneInfo

    return ZoneInfo(name)


def _part(name: str, read: Callable[[datetime], int]) -> None:
    @method(f"{name}(timestamp) int", f"{name}(timestamp, string) int")
    def part(value: Instant, zone: str = "UTC") -> int:
        return read(_local(value, zone))


_part("getFullYear", lambda at: at.year)
_part("getMonth", lambda at: at.month - 1)
_part("getDate", lambda at: at.day)
_part("getDayOfMonth", lambda at: at.day - 1)
_part("getDayOfWeek", lambda at: at.isoweekday() % 7)
_part("getDayOfYear", lambda at: at.timetuple().tm_yday - 1)
_part("getHours", lambda at: at.hour)
_part("getMinutes", lambda at: at.minute)
_part("getSeconds", lambda at: at.second)
_part("getMilliseconds", lambda at: at.microsecond // 1000)


def _whole(name: str, unit: int) -> None:
    @method(f"{name}(duration) int")
    def whole(value: Span) -> int:
        return abs(value.ns) // unit * (-1 if value.ns < 0 else 1)


_whole("getHours", 3600 * SECOND)
_whole("getMinutes", 60 * SECOND)
_whole("getSeconds", SECOND)
_whole("getMilliseconds", 10**6)
