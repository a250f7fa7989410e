"""Spans of time as kubectl prints them: 45s, 2m30s, 5h, 3d4h, 2y."""

from __future__ import annotations

from pumice.api.times import instant


def span(seconds: float) -> str:
    """Two units while the first is small, one when it is large."""
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
