"""The world of a live scheduler: measured usage, fetched in the background, and whatever extenders another world reaches.

The section `metrics:` of the configuration says where usage is measured; it is looked at before each round, so a reload counts. A source
that fails leaves the last measurements, which the engine stops believing once they are too old.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from pumice.api.times import duration
from pumice.framework.world import NOWHERE, Extender, Usage, World
from pumice.live.clock import Clock
from pumice.live.usage import UsageFailure, fetch

INTERVAL_S = 30.0
log = logging.getLogger(__name__)


class LiveWorld:
    """`nodes` is asked for the names to measure."""

    def __init__(self, clock: Clock, beyond: World = NOWHERE) -> None:
        self._clock = clock
        self._beyond = beyond
        self._usage: dict[str, Usage] = {}

    def usage(self, node: str) -> Usage | None:
        return self._usage.get(node) or self._beyond.usage(node)

    def extender(self, url: str, timeout_s: float, options: dict[str, Any]) -> Extender | None:
        return self._beyond.extender(url, timeout_s, options)

    async def run(self, section: Callable[[], Mapping[str, str]], change: Callable[..., None]) -> None:
        """`change` calls what changes the answers: no cycle sees two rounds of measurements."""
        while True:
            metrics = section()
            if metrics.get("type") and metrics.get("address"):
                try:
                    change(self._usage.update, await fetch(metrics, self._clock.now()))
                except UsageFailure as error:
                    log.warning("usage of nodes was not measured: %s", error)
            await self._clock.sleep(_interval_s(metrics))


def _interval_s(metrics: Mapping[str, str]) -> float:
    try:
        return max(1.0, duration(metrics.get("interval", "")))
    except ValueError:
        return INTERVAL_S
