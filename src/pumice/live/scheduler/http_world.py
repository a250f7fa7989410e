"""A world in which extenders can be reached over HTTP; what that takes is loaded when there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pumice.scheduler.framework.world import Nowhere

if TYPE_CHECKING:
    from pumice.live.scheduler.extenders import HttpExtender


class HttpWorld(Nowhere):
    """Extenders over HTTP, nothing else. They are known from cycle to cycle; `heard` is told which of them stop answering, and why."""

    def __init__(self, heard: Callable[[str, str], object] = lambda name, why: None) -> None:
        self._heard = heard
        self._known: dict[tuple[str, float, str], HttpExtender] = {}

    def extender(self, url: str, timeout_s: float, options: dict[str, Any]) -> HttpExtender:
        """Asked for once a cycle."""
        from pumice.live.scheduler.extenders import HttpExtender

        key = (url, timeout_s, repr(options))
        if key not in self._known:
            self._known[key] = HttpExtender(url, timeout_s, options, self._heard)
        self._known[key].begin()
        return self._known[key]
