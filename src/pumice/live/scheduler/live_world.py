"""The world of a live scheduler: the measured usage of nodes, fetched in the background, and the extenders of another world.

The section `metrics:` of the configuration says where usage is measured; it is read before each round, so a reload takes effect. If a
source fails the last measurements stay, and the engine ignores them once they are too old.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from pumice.api import duration
from pumice.live.clock import Clock
from pumice.live.scheduler.usage_sources import UsageFailure, fetch
from pumice.scheduler.framework.world import NOWHERE, ExtenderService, NodeUsage, World

INTERVAL_S = 30.0
log = logging.getLogger(__name__)


class LiveWorld:
    """The measured usage of nodes. All else comes from the world `beyond`: extenders, and the usage of nodes without a measurement."""

    acts = True

    def __init__(self, clock: Clock, beyond: World = NOWHERE) -> None:
        self._clock = clock
        self._beyond = beyond
        self._usage: dict[str, NodeUsage] = {}

    def usage(self, node: str) -> NodeUsage | None:
        return self._usage.get(node) or self._beyond.usage(node)

    def extender(self, url: str, timeout_s: float, options: dict[str, Any]) -> ExtenderService | None:
        return self._beyond.extender(url, timeout_s, options)

    def measured(self, found: dict[str, NodeUsage]) -> None:
        """Take over a round of measurements. Older ones stay while they count."""
        now = self._clock.now()
        self._usage = {node: usage for node, usage in (self._usage | found).items() if usage.is_fresh(now)}

    async def run(self, section: Callable[[], Mapping[str, str]], change: Callable[..., None]) -> None:
        """Fetch usage again and again. `change` takes each round over between cycles, so that no cycle sees two rounds of measurements."""
        while True:
            metrics = section()
            if metrics.get("type") and metrics.get("address"):
                try:
                    change(self.measured, await fetch(metrics, self._clock.now()))
                except UsageFailure as error:
                    log.warning("usage of nodes was not measured: %s", error)
            await self._clock.sleep(_interval_s(metrics))


def _interval_s(metrics: Mapping[str, str]) -> float:
    try:
        return max(1.0, duration(metrics.get("interval", "")))
    except ValueError:
        return INTERVAL_S
