"""A world in which extenders can be called over HTTP. The client for that is loaded when there is an extender."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pumice.scheduler.framework.world import Nowhere

if TYPE_CHECKING:
    from pumice.live.scheduler.http_extenders import HttpExtender


class HttpWorld(Nowhere):
    """A world with extenders over HTTP and nothing else. They are kept from cycle to cycle. `on_failure` as for `HttpExtender`."""

    def __init__(self, on_failure: Callable[[str, str], object] = lambda name, why: None, *, acts: bool = False) -> None:
        self.acts = acts
        self._on_failure = on_failure
        self._known: dict[tuple[str, float, str], HttpExtender] = {}

    def extender(self, url: str, timeout_s: float, options: dict[str, Any]) -> HttpExtender:
        """The extender with these settings. Called once in each cycle."""
        from pumice.live.scheduler.http_extenders import HttpExtender

        key = (url, timeout_s, repr(options))
        if key not in self._known:
            self._known[key] = HttpExtender(url, timeout_s, options, self._on_failure)
        self._known[key].begin()
        return self._known[key]
